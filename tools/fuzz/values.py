"""Malformed Avro. A row equals fastavro's result, or is bad, and does not change other rows.

The first byte of an input selects the writer's and the reader's schema.
"""

import os
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from spark_kafka_source.values import Decoded, Encoded
from spark_kafka_source.values.avro import Program, ReaderSchema, decode
from tests.values.avro_oracle import agrees, laid, plain, program, written
from tests.values.avro_schemas import logical
from tests.values.engines import using
from tools.fuzz.batches import KERNELS_OPTION

_ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B", "C"]}
_INNER = {
    "type": "record",
    "name": "Inner",
    "fields": [
        {"name": "x", "type": "double"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}
_FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "long"},
    {"name": "name", "type": ["null", "string"]},
    {"name": "kind", "type": _ENUM},
    {"name": "at", "type": logical("long", "timestamp-millis")},
    {"name": "price", "type": logical("bytes", "decimal", precision=20, scale=2)},
    {"name": "inner", "type": ["null", _INNER]},
    {"name": "map", "type": {"type": "map", "values": {"type": "array", "items": "int"}}},
    {"name": "flag", "type": "boolean"},
    {"name": "none", "type": {"type": "array", "items": "null"}},
    {"name": "hash", "type": {"type": "fixed", "name": "F", "size": 3}},
    {"name": "some", "type": ["float", "string", "null"]},
]
_WHOLE = {"type": "record", "name": "R", "fields": _FIELDS}
_FEWER = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "map", "type": {"type": "map", "values": {"type": "array", "items": "long"}}},
        {"name": "kind", "type": {**_ENUM, "symbols": ["B", "D"], "default": "D"}},
        {"name": "added", "type": {"type": "array", "items": "string"}, "default": ["x"]},
        {"name": "id", "type": "double"},
    ],
}
_NESTED: dict[str, Any] = {"type": "array", "items": "int"}
for _ in range(5):
    _NESTED = {"type": "array", "items": _NESTED}

_ROW = {
    "id": 1 << 40, "name": "né", "kind": "B", "at": -1, "price": b"\x01\x00", "flag": True,
    "inner": {"x": 1.5, "tags": ["a", "", "b" * 70]}, "map": {"k": [1, -2], "l": []},
    "none": [None, None], "hash": b"abc", "some": 1.5,
}  # fmt: skip
_EMPTY: dict[str, Any] = {
    "id": 0, "name": None, "kind": "A", "at": 0, "price": b"\x00", "flag": False, "inner": None,
    "map": {}, "none": [], "hash": b"\0\0\0", "some": None,
}  # fmt: skip


@dataclass(frozen=True)
class Pair:
    """A writer's schema, a reader's schema, and valid values of the writer's schema."""

    writer: Any
    reader: Any
    values: tuple[Any, ...]

    @cache  # noqa: B019  # there are a few, for good
    def ready(self) -> tuple[ReaderSchema, Program, tuple[bytes, ...]]:
        return *program(self.writer, self.reader), tuple(written(self.writer, self.values))

    __hash__ = object.__hash__


PAIRS = (
    Pair(_WHOLE, _WHOLE, (_ROW, _EMPTY)),
    Pair(_WHOLE, _FEWER, (_ROW, _EMPTY)),
    Pair(_NESTED, _NESTED, ([[[[[[1], []]]]]], [])),
    Pair("string", "string", ("né", "")),
    Pair(["null", "long"], ["null", "long"], (None, -1)),
)


ENGINES = (
    "waves",
    "plain",
    "compiled" if os.environ.get(KERNELS_OPTION) == "compiled" else "as written",
)


def avro(data: bytes) -> None:
    """The engines agree. A bad row is null, and does not change the other rows."""
    pair = PAIRS[data[0] % len(PAIRS)] if data else PAIRS[0]
    row = data[1:]
    reader, resolved, good = pair.ready()
    rows = [good[0], row, *good]
    found = [_decoded(reader, resolved, rows, engine) for engine in ENGINES]
    for each in found:
        each.array.validate(full=True)
        values = plain(each.array)
        assert not each.status[[0, 2, 3]].any()
        assert values[0] == values[2]
        agrees(pair.writer, pair.reader, rows, each.status, values)
        assert each.array.equals(found[0].array) or "nan" in str(values)
        assert np.array_equal(each.status, found[0].status)
        assert each.paths == found[0].paths


def _decoded(reader: ReaderSchema, resolved: Program, rows: list[bytes], engine: str) -> Decoded:
    with using(engine):
        return decode(reader.layout, [resolved], Encoded(*laid(rows)))


def avro_seeds() -> list[bytes]:
    """Return valid values of each pair."""
    return [bytes([place]) + row for place, pair in enumerate(PAIRS) for row in pair.ready()[2]]
