"""Apicurio's and Glue's conventions, compared row by row with plain Python, and hints at them."""

import zlib
from itertools import product
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.registry import (
    ApicurioFraming,
    ApicurioId,
    ColumnRowHeaders,
    Framed,
    Framing,
    GlueFraming,
    Misframed,
    Part,
    SchemaKey,
)
from spark_kafka_source.registry import other_framings as module
from tests.registry.framing_oracle import laid
from tests.registry.test_framing import GUID, Headers, column

NAMES = [f"apicurio.{part}.{kind}" for part, kind in product(("key", "value"), (
    "globalId", "contentId", "encoding",
))]  # fmt: skip
Rows = list[tuple[bytes | None, Headers]]


def glue(value: bytes, packed: bytes | None = None, guid: UUID = GUID) -> bytes:
    body = value if packed is None else packed
    return bytes([3, 0 if packed is None else 5]) + guid.bytes + body


def cut(row: bytes, size: int) -> bytes:
    return row[: len(row) - size]


VALUES = st.binary(max_size=9)
NUMBERS = st.sampled_from([1, 5, 1 << 40, (1 << 64) - 1])
IDS = st.builds(lambda number: number.to_bytes(8, "big"), NUMBERS)
GLUE = st.one_of(
    st.builds(glue, VALUES, st.none(), st.sampled_from([GUID, UUID(int=1)])),
    st.builds(
        lambda value, more: glue(b"", zlib.compress(value) + more),
        VALUES,
        st.sampled_from([b"", b"!"]),
    ),
    st.builds(lambda value, byte: b"\3" + bytes([byte]) + value, VALUES, st.integers(0, 255)),
    st.builds(glue, VALUES, VALUES),
)
APICURIO = st.builds(lambda id, value: b"\0" + id + value, IDS, VALUES)
WRITTEN = st.one_of(
    st.none(), st.binary(max_size=24), st.builds(cut, GLUE | APICURIO, st.integers(0, 12)), GLUE
)
HEADERS = st.none() | st.dictionaries(
    st.sampled_from(NAMES), st.one_of(IDS, VALUES, st.just(b"JSON"), st.just(b"BINARY"))
).map(lambda headers: list(headers.items()))

Expected = tuple[SchemaKey, bytes] | Misframed


def plain_glue(row: bytes) -> Expected:
    if len(row) < 18:
        return Misframed.SHORT
    if row[0] != 3:
        return Misframed.MAGIC
    if row[1] not in (0, 5):
        return Misframed.COMPRESSION
    key, value = SchemaKey(UUID(bytes=row[2:18])), row[18:]
    if row[1] == 5:
        try:
            stream = zlib.decompressobj()
            value = stream.decompress(value)
        except zlib.error:
            return Misframed.ZLIB
        if stream.unused_data or not stream.eof:
            return Misframed.ZLIB
    return key, value


def plain_apicurio(row: bytes, headers: Headers, framing: ApicurioFraming) -> Expected:
    held: dict[str, Any] = {}
    for name, value in headers or []:
        held[name.removeprefix(f"apicurio.{framing.part.name.lower()}.")] = value
    for kind in ("contentId", "globalId"):
        if kind in held:
            id, value = held[kind], row
            if len(id) != 8:
                return Misframed.SHORT if len(id) < 8 else Misframed.TRAILING
            break
    else:
        kind, id, value = framing.kind, row[1:9], row[9:]
        if len(row) < 9:
            return Misframed.SHORT
        if row[0]:
            return Misframed.MAGIC
    if held.get("encoding") == b"JSON":
        return Misframed.ENCODING
    return SchemaKey(ApicurioId(kind, int.from_bytes(id, "big"))), value


def framed(framing: Framing, rows: Rows) -> tuple[Framed, list[bytes]]:
    """Return the rows, and the bytes of each value."""
    data, starts, ends, null = laid([row for row, _ in rows])
    headers = ColumnRowHeaders(column([each for _, each in rows]))
    found = framing.frame(data, starts, ends, null=null, headers=headers)
    inside = data if found.data is None else bytes(found.data)
    behind = ends if found.ends is None else found.ends
    return found, [inside[at:end] for at, end in zip(found.starts, behind, strict=True)]


FRAMINGS = [
    GlueFraming(),
    *(ApicurioFraming(part, kind) for part in Part for kind in ("globalId", "contentId")),
]


@given(st.sampled_from(FRAMINGS), st.lists(st.tuples(WRITTEN, HEADERS), max_size=8))
def test_every_row_is_what_it_is_by_itself(framing: Framing, rows: Rows) -> None:
    found, values = framed(framing, rows)
    assert len(set(found.keys)) == len(found.keys)
    for number, (row, headers) in enumerate(rows):
        place = int(found.key_of[number])
        if row is None:
            assert (place, found.status[number]) == (-1, Misframed.OK)
            continue
        if isinstance(framing, ApicurioFraming):
            expected = plain_apicurio(row, headers, framing)
        else:
            expected = plain_glue(row)
        if isinstance(expected, Misframed):
            assert (place, found.status[number]) == (-1, expected)
            assert found.reason(number)
        else:
            assert (found.keys[place], values[number]) == expected


def test_one_value_has_a_bound_when_inflated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_INFLATED", 100)
    monkeypatch.setattr(module, "_INFLATED_AT_ONCE", 7)
    packed = [zlib.compress(bytes(size)) for size in (100, 101, 100_000, 50)]
    rows: Rows = [(glue(b"", each), None) for each in (*packed, packed[0][:-1], b"{")]
    found, values = framed(GlueFraming(), rows)
    assert [len(values[at]) for at in (0, 3)] == [100, 50]
    long, other = (
        "a value of more than 100 bytes when inflated",
        "a value that is not in zlib's format",
    )
    fine = "nothing is wrong"
    reasons = [fine, long, long, fine, other, other]
    assert [found.reason(row) for row in range(len(rows))] == reasons
    assert found.data is not None
    assert len(found.data) < 1_000
