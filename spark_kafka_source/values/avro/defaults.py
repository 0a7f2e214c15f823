"""Defaults of fields as Avro bytes, so that they are decoded like written values.

A default is JSON, by https://avro.apache.org/docs/1.12.0/specification/#schema-record.
"""

import struct
from collections.abc import Iterator

from spark_kafka_source.records.varints import encode_varint
from spark_kafka_source.values.avro.schema import (
    NO_DEFAULT,
    ArrayType,
    AvroType,
    EnumType,
    FixedType,
    Json,
    Kind,
    MapType,
    Primitive,
    RecordType,
    Schema,
    UnionType,
)
from spark_kafka_source.values.errors import SchemaError, quoted

_INTEGERS = {Kind.INT: 31, Kind.LONG: 63}


def encode_default(schema: Schema, kind: AvroType, value: Json, path: str) -> bytes:
    """Encode a field's default. Raises `SchemaError` for a default of another type."""
    try:
        return b"".join(_parts(schema, kind, value, path))
    except RecursionError:
        raise SchemaError(path, "a default that never ends", "A type may not hold itself") from None


def _parts(  # noqa: PLR0912  # one case for each type
    schema: Schema, kind: AvroType, value: Json, path: str
) -> Iterator[bytes]:
    match schema.definition(kind), value:
        case Primitive(Kind.NULL), None:
            pass
        case Primitive(Kind.BOOLEAN), bool():
            yield b"\1" if value else b"\0"
        case Primitive(Kind.INT | Kind.LONG as number), int() if not isinstance(value, bool):
            if not -1 << _INTEGERS[number] <= value < 1 << _INTEGERS[number]:
                raise _wrong(kind, value, path)
            yield encode_varint(value)
        case Primitive(Kind.FLOAT | Kind.DOUBLE as number), int() | float() if not isinstance(
            value, bool
        ):
            yield _floating(number, value, path)
        case Primitive(Kind.STRING), str():
            yield from _sized(value.encode(errors="replace"))
        case Primitive(Kind.BYTES), str():
            yield from _sized(_latin(kind, value, path))
        case FixedType(size=size), str():
            if len(value) != size:
                raise _wrong(kind, value, path)
            yield _latin(kind, value, path)
        case EnumType(symbols=symbols), str():
            if value not in symbols:
                raise _wrong(kind, value, path)
            yield encode_varint(symbols.index(value))
        case ArrayType(items), list():
            yield encode_varint(len(value))
            for each in value:
                yield from _parts(schema, items, each, path)
            yield b"\0" if value else b""
        case MapType(values), dict():
            yield encode_varint(len(value))
            for name, each in value.items():
                yield from _sized(name.encode(errors="replace"))
                yield from _parts(schema, values, each, path)
            yield b"\0" if value else b""
        case UnionType() as union, _:
            yield from _branch(schema, union, value, path)
        case RecordType() as record, dict():
            yield from _record(schema, record, value, path)
        case _:
            raise _wrong(kind, value, path)


def _sized(data: bytes) -> Iterator[bytes]:
    yield encode_varint(len(data))
    yield data


def _floating(number: Kind, value: float, path: str) -> bytes:
    try:
        return struct.pack("<f" if number is Kind.FLOAT else "<d", value)
    except OverflowError:
        raise _wrong(Primitive(number), value, path) from None


def _latin(kind: AvroType, value: str, path: str) -> bytes:
    """Return the bytes. Each character stands for one byte, by its number."""
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        raise _wrong(kind, value, path) from None


def _branch(schema: Schema, union: UnionType, value: Json, path: str) -> Iterator[bytes]:
    """Encode with the first branch that fits. Before Avro 1.12 only the first branch could fit."""
    for place, branch in enumerate(union.branches):
        try:
            parts = encode_default(schema, branch, value, path)
        except SchemaError:
            continue
        yield encode_varint(place) + parts
        return
    raise _wrong(union, value, path)


def _record(
    schema: Schema, record: RecordType, value: dict[str, Json], path: str
) -> Iterator[bytes]:
    for field in record.fields:
        inner = f"{path}.{field.name}"
        given = value.get(field.name, field.default)
        if given is NO_DEFAULT:
            found = f"the default has no {quoted(field.name)}"
            raise SchemaError(inner, found, "It must have every field that has no default itself")
        yield from _parts(schema, field.type, given, inner)


def _wrong(kind: AvroType, value: Json, path: str) -> SchemaError:
    return SchemaError(path, f"the default {quoted(value)}", f"It must be of the type {kind}")
