"""Encoder from Arrow to Protobuf, a column at a time: fields make columns, which Arrow joins.

Fields are in the order of their numbers, as other writers put them. A null is not written. Neither
is a proto3 value of 0, or an empty one, in a field without presence.
"""

from typing import NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_kafka_source.records import UnencodableRowError
from spark_kafka_source.records.varints import Integers
from spark_kafka_source.values.bytes_columns import (
    Mask,
    cast,
    fixed_width,
    integers,
    joined,
    numbers,
    owners,
    put_together,
    spread,
    valid,
    wide,
)
from spark_kafka_source.values.columns import Column, Form
from spark_kafka_source.values.octets import unzigzag
from spark_kafka_source.values.protobuf.reader import ProtobufReader
from spark_kafka_source.values.protobuf.schema import (
    MESSAGES,
    Field,
    Kind,
    Message,
    Schema,
    Wire,
    tag_of,
    wire_of,
)

_MICROS = 1_000_000
_ZERO = b"\0"


def encode(reader: ProtobufReader, array: pa.Array, prefix: bytes = b"") -> pa.BinaryArray:
    """Encode each row as the message of `reader`, with `prefix` before it.

    `array` has the type `reader.arrow_type`, or a type that casts to it. Raises `ColumnTypeError`
    for any other type, and `UnencodableRowError` for rows that the message has no place for: a null
    as a row, an item or a required field, a symbol or a number that the field does not have, or
    several members of a oneof.
    """
    array = cast(array, reader.arrow_type, "the message")
    if not len(array):
        return pa.array([], pa.binary())
    column, rows = reader.table.layout.column, np.arange(len(array))
    _refuse_nulls(array, rows, column.path)
    encoded = _Encoder(reader.schema).message(reader.message, column, array, rows)
    return joined(len(array), prefix, encoded)


class _Encoder:
    """Encoder that walks messages, columns and arrays. `rows` has the row of each element."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def message(
        self, message: Message, column: Column, array: pa.Array, rows: Integers
    ) -> pa.BinaryArray:
        """Encode structs. None of them may be null."""
        places = {name: place for place, name in enumerate(column.names)}
        fields = [each for each in message.fields if each.name in places]
        _check_oneofs(message, fields, array, rows, column.path)
        parts = [
            self._field(each, column.children[place], pc.struct_field(array, place), rows)
            for each in sorted(fields, key=lambda each: each.number)
            for place in (places[each.name],)
        ]
        return joined(len(array), *parts)

    def _field(self, field: Field, column: Column, array: pa.Array, rows: Integers) -> pa.Array:
        if column.form is Form.MAP:
            return self._map(field, column, array, rows)
        if field.repeated:
            return self._list(field, column, array, rows)
        if field.required:
            _refuse_nulls(array, rows, column.path)
        there = valid(array)
        if not field.presence:
            there &= self._is_set(field, array)
        if not there.any():
            return joined(len(array))
        some = array if there.all() else array.filter(pa.array(there))
        return spread(self._tagged(field, column, some, rows[there]), there)

    def _tagged(self, field: Field, column: Column, array: pa.Array, rows: Integers) -> pa.Array:
        """Encode each value with its tag before it. A group also has an end tag."""
        value = self._value(field, column, array, rows)
        if field.kind is Kind.GROUP:
            tags = (tag_of(field.number, wire) for wire in (Wire.GROUP, Wire.END_GROUP))
            return joined(len(array), next(tags), value, next(tags))
        tag = tag_of(field.number, wire_of(field.kind))
        if wire_of(field.kind) is Wire.SIZED:
            return joined(len(array), tag, _sizes(value), value)
        return joined(len(array), tag, value)

    def _value(self, field: Field, column: Column, array: pa.Array, rows: Integers) -> pa.Array:
        """Encode values without tag and size."""
        if field.kind not in MESSAGES:
            return self._scalar(field, column, array, rows)
        message = self._schema.messages[field.type_name]
        if column.form is Form.STRUCT:
            return self.message(message, column, array, rows)
        if column.form is Form.MOMENT:
            return _moment(array)
        wrapped = message.fields[0]
        return self._field(wrapped, column, array, rows)

    def _list(self, field: Field, column: Column, array: pa.Array, rows: Integers) -> pa.Array:
        items, of = array.flatten(), owners(_filled(array), rows)
        if not len(items):
            return joined(len(array))
        inner = column.children[0]
        _refuse_nulls(items, of, inner.path)
        if not field.packed:
            return put_together(_filled(array), self._tagged(field, inner, items, of))
        packed = put_together(_filled(array), self._scalar(field, inner, items, of))
        there = pc.binary_length(packed).to_numpy() > 0
        some = packed.filter(pa.array(there))
        tagged = joined(len(some), tag_of(field.number, Wire.SIZED), _sizes(some), some)
        return spread(tagged, there)

    def _map(self, field: Field, column: Column, array: pa.Array, rows: Integers) -> pa.Array:
        array = _filled(array)
        first, stop = array.offsets[0].as_py(), array.offsets[-1].as_py()
        keys = array.keys.slice(first, stop - first)
        items = array.items.slice(first, stop - first)
        if not len(keys):
            return joined(len(array))
        of, inner = owners(array, rows), column.children[1]
        _refuse_nulls(items, of, inner.path)
        entry = {each.number: each for each in self._schema.messages[field.type_name].fields}
        key = self._tagged(entry[1], column.children[0], keys, of)
        value = self._tagged(entry[2], inner, items, of)
        body = joined(len(keys), key, value)
        tag = tag_of(field.number, Wire.SIZED)
        return put_together(array, joined(len(keys), tag, _sizes(body), body))

    def _scalar(self, field: Field, column: Column, array: pa.Array, rows: Integers) -> pa.Array:
        match field.kind:
            case Kind.STRING | Kind.BYTES:
                return array.cast(pa.binary())
            case Kind.BOOL:
                return fixed_width(array.to_numpy(zero_copy_only=False).astype(np.uint8))
            case Kind.DOUBLE | Kind.FLOAT:
                width = "<f4" if field.kind is Kind.FLOAT else "<f8"
                return fixed_width(array.to_numpy(zero_copy_only=False).astype(width))
        values = (
            self._enum(field, column, array, rows)
            if field.kind is Kind.ENUM
            else _integers(field, column, array, rows)
        )
        return _number_bytes(field.kind, values)

    def _is_set(self, field: Field, array: pa.Array) -> Mask:
        """Return which values are not the default. Null counts as set here."""
        if field.kind is Kind.ENUM and pa.types.is_string(array.type):
            values = self._schema.enums[field.type_name].values
            zeros = [name for name, number in values if number == 0]
            zero = pc.is_in(array, value_set=pa.array([*zeros, "0"]))
        else:
            zero = pc.fill_null(_is_zero(array), False)
        found: Mask = ~zero.to_numpy(zero_copy_only=False)
        return found

    def _enum(self, field: Field, column: Column, array: pa.Array, rows: Integers) -> Integers:
        """Return the numbers of symbols. A number without a symbol is a text with its digits."""
        enum = self._schema.enums[field.type_name]
        known = dict(enum.values)
        found = array.dictionary_encode()
        values = found.dictionary.to_pylist()
        as_numbers = [
            each if isinstance(each, int) else known.get(each, _number(each)) for each in values
        ]
        for place, number in enumerate(as_numbers):
            if number is None or (enum.closed and number not in known.values()):
                of = rows[found.indices.to_numpy() == place]
                names = ", ".join(list(known)[:20])
                _refuse(column.path, of, f"{values[place]!r} is none of the symbols {names}")
        found_numbers: Integers = np.array(as_numbers, np.int64)[found.indices.to_numpy()]
        return found_numbers


def _number_bytes(kind: Kind, values: Integers) -> pa.BinaryArray:
    match kind:
        case Kind.SINT32 | Kind.SINT64:
            return integers(values)
        case Kind.FIXED32 | Kind.SFIXED32:
            return fixed_width(values.astype("<i4"))
        case Kind.FIXED64 | Kind.SFIXED64:
            return fixed_width(values.astype("<i8"))
    return _unsigned(values)


def _number(text: str) -> int | None:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 10):
        return None
    return int(text) if -1 << 31 <= int(text) < 1 << 31 else None


def _integers(field: Field, column: Column, array: pa.Array, rows: Integers) -> Integers:
    """Return the values as 64 bits. Values of uint32 must fit 32 bits."""
    if column.form is Form.UNSIGNED:
        bits = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2)
        bits = bits[array.offset : array.offset + len(array)]
        _refuse_some(bits[:, 1] != 0, column.path, rows, "no number of 64 bits without a sign")
        return bits[:, 0]
    values = numbers(array, pa.int64() if column.form is Form.INT64 else pa.int32())
    if field.kind is not Kind.UINT32:
        return values
    if column.form is Form.INT64:
        beyond = (values < 0) | (values >= 1 << 32)
        _refuse_some(beyond, column.path, rows, "no number of 32 bits without a sign")
    return values & 0xFFFFFFFF


def _unsigned(values: Integers) -> pa.BinaryArray:
    """Encode varints of 64 bits, without zigzag."""
    return integers(unzigzag(np.ascontiguousarray(values).view(np.uint64)))


def _sizes(array: pa.BinaryArray) -> pa.BinaryArray:
    return _unsigned(wide(pc.binary_length(array).to_numpy()))


def _moment(array: pa.Array) -> pa.BinaryArray:
    """Encode seconds and nanoseconds. In a negative duration both are negative or 0."""
    micros = numbers(array, pa.int64())
    seconds = micros // _MICROS
    if pa.types.is_duration(array.type):
        seconds = seconds + ((seconds < 0) & (micros % _MICROS != 0))
    nanos = (micros - seconds * _MICROS) * 1000
    parts = []
    for number, values in enumerate((seconds, nanos), 1):
        there = values != 0
        if there.any():
            tag = tag_of(number, Wire.VARINT)
            found = joined(int(there.sum()), tag, _unsigned(values[there]))
            parts.append(spread(found, there))
    return joined(len(array), *parts)


def _is_zero(array: pa.Array) -> pa.Array:
    """Return which values are 0 or empty."""
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return pc.equal(pc.binary_length(array), 0)
    if pa.types.is_boolean(kind):
        return pc.invert(array)
    if pa.types.is_floating(kind):
        # -0.0 is not the default: it has a bit set.
        array = array.view(pa.int64() if pa.types.is_float64(kind) else pa.int32())
    return pc.equal(array, pa.scalar(0, array.type))


def _filled(array: pa.Array) -> pa.Array:
    """Replace null lists and maps by empty ones."""
    return pc.fill_null(array, []) if array.null_count else array


def _check_oneofs(
    message: Message, fields: list[Field], array: pa.Array, rows: Integers, path: str
) -> None:
    for oneof in {each.oneof for each in fields} - {-1}:
        members = [each.name for each in fields if each.oneof == oneof]
        count = sum(valid(pc.struct_field(array, name)).astype(np.int8) for name in members)
        reason = f"several of {', '.join(members)}, of which {message} has one"
        _refuse_some(np.asarray(count) > 1, path, rows, reason)


def _refuse_nulls(array: pa.Array, rows: Integers, path: str) -> None:
    if array.null_count:
        _refuse_some(~valid(array), path, rows, "null, where Protobuf has none")


def _refuse_some(bad: Mask, path: str, rows: Integers, reason: str) -> None:
    if bad.any():
        _refuse(path, rows[bad], reason)


def _refuse(path: str, rows: Integers, reason: str) -> NoReturn:
    where = f"{path}: " if path else ""
    raise UnencodableRowError(np.unique(rows).tolist(), where + reason)
