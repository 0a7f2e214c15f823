"""Encoder from one Python value to Avro: a function for each type. `encode` is for columns.

numpy takes a hundred times as long per row for a column of one row as for a column of many.
"""

import re
import struct
from collections.abc import Callable, Collection
from typing import Any

import pyarrow as pa

from spark_kafka_source.records.varints import encode_varint
from spark_kafka_source.values.avro.fit import TIMES
from spark_kafka_source.values.avro.schema import (
    AS_A_UUID,
    MILLIS,
    UUID_PATTERN,
    ArrayType,
    AvroType,
    EnumType,
    FixedType,
    Kind,
    Logical,
    LogicalKind,
    MapType,
    Primitive,
    RecordType,
    Schema,
    UnionType,
    is_null,
    is_uuid,
)
from spark_kafka_source.values.avro.shape import MAX_PRECISION, member_names, members
from spark_kafka_source.values.fitting import below
from spark_kafka_source.values.one_value import (
    boolean,
    items_of,
    known_fields,
    moment,
    no_such_value,
    octets,
    pairs_of,
    real,
    refuse,
    text,
    unscaled,
    whole,
)
from spark_kafka_source.values.typing import AvroTyping

Write = Callable[[Any, bytearray], None]
"""Appends the bytes of a value. Raises `UnencodableRowError`."""

_AS_SPARK = AvroTyping()


def writer_of_one(
    schema: Schema, ignored: Collection[str] = (), typing: AvroTyping = _AS_SPARK
) -> Write:
    """Return a writer of values, which are as a consumer returns them.

    A whole number for a date or a time is the number in the schema's own unit. `ignored` are the
    paths of fields that may be left out.
    """
    return _Writers(schema, ignored, typing).of(schema.type, "")


class _Writers:
    def __init__(self, schema: Schema, ignored: Collection[str], typing: AvroTyping) -> None:
        self._schema, self._ignored, self._typing = schema, ignored, typing
        self._within: set[str] = set()

    def of(self, kind: AvroType, path: str) -> Write:
        definition = self._schema.definition(kind)
        if isinstance(definition, UnionType):
            return self._union(definition, path)
        if is_null(definition):
            return _null(path)
        write = self._there(definition, path)

        def checked(value: Any, out: bytearray) -> None:
            if value is None:
                refuse(path, f"null, where the schema has {kind} and no null")
            write(value, out)

        return checked

    def _there(self, definition: Any, path: str) -> Write:
        """Return the writer for values that are not None."""
        match definition:
            case RecordType():
                return self._record(definition, path)
            case ArrayType(items):
                return _list(self.of(items, f"{path}[]"), path)
            case MapType(values):
                inner = f"{path}{{}}"
                return _map(_text(inner), self.of(values, inner), path)
            case EnumType(symbols=symbols):
                return _symbol(symbols, path)
            case FixedType():
                return _fixed(definition, path)
        return _primitive(definition, path)

    def _record(self, record: RecordType, path: str) -> Write:
        if record.name in self._within:
            return self._inner_record(record, path)
        self._within.add(record.name)
        writes = [
            (field.name, self.of(field.type, below(path, field.name))) for field in record.fields
        ]
        self._within.remove(record.name)
        names = dict.fromkeys(name for name, _ in writes)
        ignored = self._ignored

        def write(value: Any, out: bytearray) -> None:
            known_fields(value, names, path, ignored)
            for name, each in writes:
                each(value.get(name), out)

        return write

    def _inner_record(self, record: RecordType, path: str) -> Write:
        """Return the writer of a record within itself. It is made once such a value comes."""
        made: list[Write] = []
        writers = _Writers(self._schema, self._ignored, self._typing)

        def write(value: Any, out: bytearray) -> None:
            if not made:
                made.append(writers._record(record, path))
            made[0](value, out)

        return write

    def _union(self, union: UnionType, path: str) -> Write:
        kinds = members(self._schema, union)
        null = [place for place, each in enumerate(union.branches) if is_null(each)]
        places = [encode_varint(union.branches.index(each)) for each in kinds]
        is_struct = len(kinds) > 1
        names = member_names(self._schema, kinds, self._typing, path)
        inner_paths = [below(path, name) if is_struct else path for name in names]
        writes = [self.of(kind, each) for kind, each in zip(kinds, inner_paths, strict=True)]
        ignored = self._ignored

        def struct_of(value: Any) -> tuple[int, Any]:
            if value is None:
                return 0, None
            known_fields(value, names, path, ignored)
            return _chosen(union, names, path, value)

        def write(value: Any, out: bytearray) -> None:
            chosen, inner = struct_of(value) if is_struct else (0, value)
            if inner is not None and kinds:
                out += places[chosen]
                writes[chosen](inner, out)
            elif inner is not None:
                no_such_value(path, inner, pa.null())
            elif null:
                out += encode_varint(null[0])
            else:
                refuse(path, f"null, where the schema has {union}")

        return write


def _chosen(union: UnionType, names: Collection[str], path: str, value: Any) -> tuple[int, Any]:
    """Return which member of the struct is set, and its value."""
    values = [(place, value.get(name)) for place, name in enumerate(names)]
    there = [(place, each) for place, each in values if each is not None]
    if len(there) > 1:
        refuse(path, f"several members, where {union} has one")
    return there[0] if there else (0, None)


def _null(path: str) -> Write:
    def write(value: Any, out: bytearray) -> None:
        if value is not None:
            no_such_value(path, value, pa.null())

    return write


def _list(item: Write, path: str) -> Write:
    def write(value: Any, out: bytearray) -> None:
        items = items_of(value, path)
        if items:
            out += encode_varint(len(items))
            for each in items:
                item(each, out)
        out.append(0)

    return write


def _map(key: Write, item: Write, path: str) -> Write:
    def write(value: Any, out: bytearray) -> None:
        entries = pairs_of(value, path)
        if entries:
            out += encode_varint(len(entries))
            for name, each in entries:
                key(name, out)
                item(each, out)
        out.append(0)

    return write


def _symbol(symbols: tuple[str, ...], path: str) -> Write:
    numbers = {each: encode_varint(place) for place, each in enumerate(symbols)}

    def write(value: Any, out: bytearray) -> None:
        if not isinstance(value, str):
            no_such_value(path, value, pa.string())
        if value not in numbers:
            refuse(path, f"{value!r} is none of the symbols {', '.join(symbols)}")
        out += numbers[value]

    return write


def _fixed(kind: FixedType, path: str) -> Write:
    is_decimal = kind.logical is not None and kind.logical.kind is LogicalKind.DECIMAL
    digits = _unscaled(kind.logical, path) if kind.logical and is_decimal else None

    def bytes_of(value: Any) -> bytes:
        if digits is None:
            return octets(value, path)
        number = digits(value)
        fits = number.bit_length() < 8 * kind.size or number == -(1 << 8 * kind.size - 1)
        return number.to_bytes(kind.size, signed=True) if fits else b""

    def write(value: Any, out: bytearray) -> None:
        data = bytes_of(value)
        if len(data) != kind.size:
            refuse(path, f"not of the {kind.size} bytes that {kind.name} has")
        out += data

    return write


def _primitive(kind: Primitive, path: str) -> Write:
    match kind.kind:
        case Kind.BOOLEAN:
            return lambda value, out: out.append(boolean(value, path))
        case Kind.INT | Kind.LONG:
            return _integer(kind, path)
        case Kind.FLOAT | Kind.DOUBLE:
            return _float(kind.kind is Kind.FLOAT, path)
        case Kind.STRING:
            return _uuid(path) if is_uuid(kind) else _text(path)
    return _decimal(kind, path) if kind.logical else _bytes(path)


def _integer(kind: Primitive, path: str) -> Write:
    arrow = pa.int32() if kind.kind is Kind.INT else pa.int64()
    logical = None if kind.logical is None else kind.logical.kind
    time = TIMES.get(logical) if logical else None
    divisor = 1000 if logical in MILLIS else 1

    def number(value: Any) -> int:
        if time is None or isinstance(value, int):
            return whole(value, arrow, path)
        return moment(value, time, path) // divisor

    return lambda value, out: out.extend(encode_varint(number(value)))


def _float(is_short: bool, path: str) -> Write:
    pack = struct.Struct("<f" if is_short else "<d").pack
    arrow = pa.float32() if is_short else pa.float64()
    return lambda value, out: out.extend(pack(real(value, arrow, path)))


def _text(path: str) -> Write:
    return lambda value, out: _sized(text(value, path), out)


def _uuid(path: str) -> Write:
    is_one = re.compile(UUID_PATTERN).fullmatch

    def write(value: Any, out: bytearray) -> None:
        data = text(value, path)
        if not is_one(value):
            refuse(path, f"{value!r} is no UUID, {AS_A_UUID}")
        _sized(data, out)

    return write


def _bytes(path: str) -> Write:
    return lambda value, out: _sized(octets(value, path), out)


def _decimal(kind: Primitive, path: str) -> Write:
    assert kind.logical is not None  # noqa: S101  # Only a decimal is logical bytes.
    digits = _unscaled(kind.logical, path)

    def write(value: Any, out: bytearray) -> None:
        number = digits(value)
        size = (number if number >= 0 else ~number).bit_length() // 8 + 1
        _sized(number.to_bytes(size, signed=True), out)

    return write


def _unscaled(logical: Logical, path: str) -> Callable[[Any], int]:
    """Return a function from a decimal to its digits. No column has more than 38 of them."""
    if logical.precision > MAX_PRECISION:
        return lambda value: refuse(path, f"{logical} has more digits than {MAX_PRECISION}")
    arrow = pa.decimal128(logical.precision, logical.scale)
    return lambda value: unscaled(value, arrow, path)


def _sized(data: bytes, out: bytearray) -> None:
    out += encode_varint(len(data))
    out += data
