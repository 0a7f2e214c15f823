"""Malformed Protobuf. A row equals upb's result, or is bad, and does not change other rows.

The first byte of an input of `protobuf` selects the file. `descriptors` fuzzes files' descriptors.
"""

from functools import cache
from random import Random
from typing import Any

from spark_kafka_source.values import Decoded, Encoded, SchemaError
from spark_kafka_source.values.protobuf import ProtobufReader, parse_descriptors
from tests.values.avro_oracle import laid, plain
from tests.values.engines import using
from tests.values.protobuf_oracle import agrees_with, lenient, reader_of
from tests.values.protobuf_schemas import SYNTAXES, Files, file_set, filled, message_class

_FILES = 9


@cache
def _file(number: int) -> tuple[Any, ProtobufReader, tuple[bytes, ...]]:
    """A file, and valid messages of it."""
    random = Random(number)
    file = Files(random, SYNTAXES[number % len(SYNTAXES)]).file()
    kind = message_class(file)
    rows = tuple(filled(random, kind()).SerializeToString() for _ in range(2))
    return file, reader_of(file), rows


@cache
def _classes(number: int) -> tuple[Any, Any]:
    file, _, _ = _file(number)
    return message_class(file), message_class(lenient(file))


def protobuf(data: bytes) -> None:
    """All engines agree. A bad row is null, and does not change the other rows."""
    number = data[0] % _FILES if data else 0
    _, reader, good = _file(number)
    rows = [good[0], data[1:], *good]
    found = [_decoded(reader, rows, engine) for engine in ("waves", "walk", "as written")]
    for each in found:
        each.array.validate(full=True)
        values = plain(each.array)
        assert values[0] == values[2]
        assert each.status[0] == each.status[2]
        agrees_with(_classes(number), rows, each)
        assert repr(values) == repr(plain(found[0].array))


def _decoded(reader: ProtobufReader, rows: list[bytes], engine: str) -> Decoded:
    with using(engine):
        return reader.decode([reader.program()], Encoded(*laid(rows)))


def protobuf_seeds() -> list[bytes]:
    """Return valid messages of each file."""
    return [bytes([number]) + row for number in range(_FILES) for row in _file(number)[2]]


def descriptors(data: bytes) -> None:
    """The result is a schema, or a `SchemaError` with a text of readable length."""
    try:
        schema = parse_descriptors(data)
        for name in (*schema.top, None):
            ProtobufReader(data, name).program()
    except SchemaError as error:
        assert len(str(error)) < 2000


def descriptor_seeds() -> list[bytes]:
    """Return the descriptors of each file, without its imports."""
    seeds = []
    for number in range(_FILES):
        found = file_set(_file(number)[0])
        del found.file[:-1]
        seeds.append(found.SerializeToString())
    return seeds
