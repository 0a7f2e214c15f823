"""Encoder from one Python value to Avro: a function for each type. `encode` is for columns.

numpy takes a hundred times as long per row for a column of one row as for a column of many.
"""

import struct
from collections.abc import Callable, Mapping
from operator import index
from typing import Any, NoReturn

import pyarrow as pa

from spark_kafka_source.records.varints import encode_varint
from spark_kafka_source.values.avro.reader import TIME, Reader, members
from spark_kafka_source.values.avro.schema import (
    ArrayType,
    AvroType,
    EnumType,
    FixedType,
    Kind,
    LogicalKind,
    MapType,
    Primitive,
    RecordType,
    Schema,
    UnionType,
    is_null,
)
from spark_kafka_source.values.columns import Column, Form
from spark_kafka_source.values.one_value import (
    converted,
    items_of,
    known_fields,
    no_such_value,
    pairs_of,
    refuse,
)

Write = Callable[[Any, bytearray], None]
"""Appends the bytes of a value. Raises `UnencodableRowError`."""

_MILLIS = (LogicalKind.TIMESTAMP_MILLIS, LogicalKind.LOCAL_TIMESTAMP_MILLIS)
_INT32, _INT64 = range(-(1 << 31), 1 << 31), range(-(1 << 63), 1 << 63)


def writer_of_one(reader: Reader) -> Write:
    """Return a writer of values, which are as `Array.to_pylist` of `reader.arrow_type` has them."""
    return _Writers(reader.schema).of(reader.schema.type, reader.layout.column)


class _Writers:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def of(self, kind: AvroType, column: Column) -> Write:
        definition = self._schema.definition(kind)
        if isinstance(definition, UnionType):
            return self._union(definition, column)
        if is_null(definition):
            return _null(column)
        write = self._there(definition, column)

        def checked(value: Any, out: bytearray) -> None:
            if value is None:
                refuse(column.path, f"null, where the schema has {kind} and no null")
            write(value, out)

        return checked

    def _there(self, definition: Any, column: Column) -> Write:
        """Return the writer for values that are not None."""
        match definition:
            case RecordType():
                return self._record(definition, column)
            case ArrayType(items):
                return _list(self.of(items, column.children[0]), column)
            case MapType(values):
                key, value = column.children
                return _map(_text(key), self.of(values, value), column)
            case EnumType(symbols=symbols):
                return _symbol(symbols, column)
            case FixedType():
                return _fixed(definition, column)
        return _primitive(definition, column)

    def _record(self, record: RecordType, column: Column) -> Write:
        pairs = zip(record.fields, column.children, strict=True)
        writes = [(field.name, self.of(field.type, child)) for field, child in pairs]
        names = dict.fromkeys(name for name, _ in writes)

        def write(value: Any, out: bytearray) -> None:
            known_fields(value, names, column.path)
            for name, each in writes:
                each(value.get(name), out)

        return write

    def _union(self, union: UnionType, column: Column) -> Write:
        found = members(self._schema, union)
        null = [place for place, each in enumerate(union.branches) if is_null(each)]
        places = [encode_varint(union.branches.index(each)) for each in found]
        choice = column.form is Form.CHOICE
        columns = column.children if choice else (column,) * len(found)
        writes = [self.of(kind, each) for kind, each in zip(found, columns, strict=True)]

        def write(value: Any, out: bytearray) -> None:
            chosen, inner = _chosen(union, column, value) if choice else (0, value)
            if inner is not None:
                out += places[chosen]
                writes[chosen](inner, out)
            elif null:
                out += encode_varint(null[0])
            else:
                refuse(column.path, f"null, where the schema has {union}")

        return write


def _chosen(union: UnionType, column: Column, value: Any) -> tuple[int, Any]:
    """Return which member of the struct is set, and its value."""
    if value is None:
        return 0, None
    known_fields(value, column.names, column.path)
    found = [(place, value.get(name)) for place, name in enumerate(column.names)]
    there = [(place, each) for place, each in found if each is not None]
    if len(there) > 1:
        refuse(column.path, f"several members, where {union} has one")
    return there[0] if there else (0, None)


def _null(column: Column) -> Write:
    def write(value: Any, out: bytearray) -> None:
        if value is not None:
            no_such_value(column.path, value, column.arrow)

    return write


def _list(item: Write, column: Column) -> Write:
    def write(value: Any, out: bytearray) -> None:
        found = items_of(value, column.path)
        if found:
            out += encode_varint(len(found))
            for each in found:
                item(each, out)
        out.append(0)

    return write


def _map(key: Write, item: Write, column: Column) -> Write:
    def write(value: Any, out: bytearray) -> None:
        found = pairs_of(value, column.path)
        if found:
            out += encode_varint(len(found))
            for name, each in found:
                key(name, out)
                item(each, out)
        out.append(0)

    return write


def _symbol(symbols: tuple[str, ...], column: Column) -> Write:
    numbers: Mapping[Any, bytes] = {
        each: encode_varint(place) for place, each in enumerate(symbols)
    }

    def write(value: Any, out: bytearray) -> None:
        if not isinstance(value, str):
            no_such_value(column.path, value, column.arrow)
        if value not in numbers:
            refuse(column.path, f"{value!r} is none of the symbols {', '.join(symbols)}")
        out += numbers[value]

    return write


def _fixed(kind: FixedType, column: Column) -> Write:
    is_decimal = pa.types.is_decimal(column.arrow)

    def write(value: Any, out: bytearray) -> None:
        if is_decimal:
            try:
                out += _unscaled(value, column).to_bytes(kind.size, signed=True)
            except OverflowError:
                _not_of_the_size(kind, column)
            return
        data = _octets(value, column)
        if len(data) != kind.size:
            _not_of_the_size(kind, column)
        out += data

    return write


def _not_of_the_size(kind: FixedType, column: Column) -> NoReturn:
    refuse(column.path, f"not of the {kind.size} bytes that {kind.name} has")


def _primitive(kind: Primitive, column: Column) -> Write:
    match kind.kind:
        case Kind.BOOLEAN:
            return _boolean(column)
        case Kind.INT | Kind.LONG:
            return _integer(kind, column)
        case Kind.FLOAT | Kind.DOUBLE:
            return _float("<f" if kind.kind is Kind.FLOAT else "<d", column)
        case Kind.STRING:
            return _text(column)
    return _decimal(column) if pa.types.is_decimal(column.arrow) else _bytes(column)


def _boolean(column: Column) -> Write:
    def write(value: Any, out: bytearray) -> None:
        if not isinstance(value, bool):
            no_such_value(column.path, value, column.arrow)
        out.append(value)

    return write


def _integer(kind: Primitive, column: Column) -> Write:
    if not pa.types.is_integer(column.arrow):
        return _moment(kind, column)
    most = _INT32 if kind.kind is Kind.INT else _INT64

    def write(value: Any, out: bytearray) -> None:
        try:
            number = index(value)
        except TypeError:
            no_such_value(column.path, value, column.arrow)
        if number not in most or isinstance(value, bool):
            no_such_value(column.path, value, column.arrow)
        out += encode_varint(number)

    return write


def _moment(kind: Primitive, column: Column) -> Write:
    """Return the writer of a date or a time. Arrow converts it to a number."""
    is_millis = kind.logical is not None and kind.logical.kind in _MILLIS
    divisor = 1000 if is_millis or column.arrow == TIME else 1

    def write(value: Any, out: bytearray) -> None:
        out += encode_varint(converted(column.path, value, column.arrow).value // divisor)

    return write


def _float(form: str, column: Column) -> Write:
    pack = struct.Struct(form).pack

    def write(value: Any, out: bytearray) -> None:
        try:
            out += pack(value)
        except (OverflowError, struct.error):
            # Arrow turns a number beyond the range of a float into infinity.
            out += pack(converted(column.path, value, column.arrow).as_py())

    def checked(value: Any, out: bytearray) -> None:
        if isinstance(value, bool) or not hasattr(value, "__float__"):
            no_such_value(column.path, value, column.arrow)
        write(value, out)

    return checked


def _text(column: Column) -> Write:
    def write(value: Any, out: bytearray) -> None:
        try:
            data = str.encode(value)
        except (TypeError, UnicodeEncodeError):
            no_such_value(column.path, value, column.arrow)
        _sized(data, out)

    return write


def _decimal(column: Column) -> Write:
    def write(value: Any, out: bytearray) -> None:
        number = _unscaled(value, column)
        size = (number if number >= 0 else ~number).bit_length() // 8 + 1
        _sized(number.to_bytes(size, signed=True), out)

    return write


def _bytes(column: Column) -> Write:
    return lambda value, out: _sized(_octets(value, column), out)


def _unscaled(value: Any, column: Column) -> int:
    sign, digits, _ = converted(column.path, value, column.arrow).as_py().as_tuple()
    number = int("".join(map(str, digits)))
    return -number if sign else number


def _octets(value: Any, column: Column) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        no_such_value(column.path, value, column.arrow)
    return bytes(value)


def _sized(data: bytes, out: bytearray) -> None:
    out += encode_varint(len(data))
    out += data
