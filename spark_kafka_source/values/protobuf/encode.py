"""Encoder from Arrow to Protobuf, a column at a time: fields make columns, which Arrow joins.

It walks the plan of `fit`, and converts no value. Fields are in the order of their numbers, as
other writers put them. A null is not written. Neither is a proto3 value of 0, or an empty one, in a
field without presence.
"""

from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_kafka_source.records.varints import Integers
from spark_kafka_source.values.errors import quoted
from spark_kafka_source.values.fitting import converted, refuse_rows
from spark_kafka_source.values.octets import unzigzag
from spark_kafka_source.values.protobuf.bytes_columns import (
    Mask,
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
from spark_kafka_source.values.protobuf.fit import (
    UNSIGNED,
    Entry,
    Moment,
    Node,
    Nothing,
    Part,
    Scalar,
    Struct,
    Wrapped,
)
from spark_kafka_source.values.protobuf.schema import Enum, Kind, Message, Wire, tag_of, wire_of
from spark_kafka_source.values.protobuf.well_known import in_bounds, is_moment, out_of_bounds

NULL = "null, where Protobuf has none"
NOT_32_BITS = "no number of 32 bits without a sign"
NOT_64_BITS = "no number of 64 bits without a sign"

_A_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_WIDTHS = {
    Kind.BOOL: "u1",
    Kind.FLOAT: "<f4",
    Kind.DOUBLE: "<f8",
    Kind.FIXED32: "<i4",
    Kind.SFIXED32: "<i4",
    Kind.FIXED64: "<i8",
    Kind.SFIXED64: "<i8",
}
_ZIGZAG = (Kind.SINT32, Kind.SINT64)
_MOST_NAMES, _MOST_DIGITS = 20, 10


def encode(plan: Struct | Nothing, array: pa.Array, prefix: bytes = b"") -> pa.BinaryArray:
    """Encode each row of a column by the plan for its type, with `prefix` before it.

    Raises `UnencodableRowError` for rows that the message has no place for: a null as a row, an
    item or a required field, a symbol or a number that the field does not have, or several members
    of a oneof.
    """
    if not len(array):
        return pa.array([], pa.binary())
    rows = np.arange(len(array))
    _refuse_nulls(array, rows, plan.path)
    return joined(len(array), prefix, _value(plan, array, rows))


def numbering(enum: Enum) -> Callable[[str | int], int | None]:
    """Return a function from a symbol or a number to the number, or None if there is none.

    An open enum also has numbers without a symbol, given as numbers or as their digits.
    """
    known = dict(enum.values)
    numbers_known = frozenset(known.values())

    def number(value: str | int) -> int | None:
        if isinstance(value, str):
            if value in known or enum.closed:
                return known.get(value)
            return _digits(value)
        is_known = value in numbers_known if enum.closed else -1 << 31 <= value < 1 << 31
        return value if is_known else None

    return number


def _digits(text: str) -> int | None:
    """Return the number of 32 bits that `str` shows as this text, or None."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS):
        return None
    number = int(text)
    return number if str(number) == text and -1 << 31 <= number < 1 << 31 else None


def no_symbol(value: object, enum: Enum) -> str:
    """Return the reason that refuses a value of an enum."""
    names = [name for name, _ in enum.values]
    listed = ", ".join(names[:_MOST_NAMES]) + (", ..." if len(names) > _MOST_NAMES else "")
    return f"{quoted(value)} is none of the symbols {listed}"


def several(names: Iterable[str], message: Message) -> str:
    """Return the reason that refuses several members of a oneof."""
    return f"several of {', '.join(names)}, of which {message} has one"


def _value(node: Node, array: pa.Array, rows: Integers) -> pa.Array:
    """Encode values without tag and size. None may be null. `rows` has the row of each."""
    match node:
        case Struct():
            return _message(node, array, rows)
        case Scalar():
            return _scalar(node, array, rows)
        case Moment():
            return _moment(node, array, rows)
        case Wrapped(value):
            return _field(value, array, rows)
        case Entry(key, value):
            keys, items = pc.struct_field(array, 0), pc.struct_field(array, 1)
            _refuse_nulls(items, rows, value.path)
            return joined(len(array), _tagged(key, keys, rows), _tagged(value, items, rows))
    return refuse_rows(node.path, rows, NULL)


def _message(node: Struct, array: pa.Array, rows: Integers) -> pa.BinaryArray:
    for members in node.oneofs:
        count = sum(valid(pc.struct_field(array, member.place)).astype(int) for member in members)
        reason = several((member.field.name for member in members), node.message)
        _refuse_some(np.asarray(count) > 1, node.path, rows, reason)
    if is_moment(node.message):
        _check_moment(node, array, rows)
    parts = [_field(part, pc.struct_field(array, part.place), rows) for part in node.parts]
    return joined(len(array), *parts)


def _field(part: Part, array: pa.Array, rows: Integers) -> pa.Array:
    if part.field.repeated:
        return _items(part, array, rows)
    if part.field.required:
        _refuse_nulls(array, rows, part.path)
    there = valid(array)
    if not part.field.presence and isinstance(part.node, Scalar):
        there &= _is_set(part.node, array)
    if not there.any():
        return joined(len(array))
    some = array if there.all() else array.filter(pa.array(there))
    return spread(_tagged(part, some, rows[there]), there)


def _tagged(part: Part, array: pa.Array, rows: Integers) -> pa.Array:
    """Encode each value with its tag before it. A group also has an end tag."""
    field, value = part.field, _value(part.node, array, rows)
    if field.kind is Kind.GROUP:
        tags = (tag_of(field.number, wire) for wire in (Wire.GROUP, Wire.END_GROUP))
        return joined(len(array), next(tags), value, next(tags))
    tag = tag_of(field.number, wire_of(field.kind))
    if wire_of(field.kind) is Wire.SIZED:
        return joined(len(array), tag, _sizes(value), value)
    return joined(len(array), tag, value)


def _items(part: Part, array: pa.Array, rows: Integers) -> pa.Array:
    """Encode lists or maps. A map is a list of entries."""
    array = _filled(array)
    first, stop = array.offsets[0].as_py(), array.offsets[-1].as_py()
    if isinstance(part.node, Entry):
        pairs = array.keys.slice(first, stop - first), array.items.slice(first, stop - first)
        items = pa.StructArray.from_arrays(pairs, ["key", "value"])
    else:
        items = array.values.slice(first, stop - first)
    if not len(items):
        return joined(len(array))
    of = owners(array, rows)
    _refuse_nulls(items, of, f"{part.path}[]")
    if not part.field.packed:
        return put_together(array, _tagged(part, items, of))
    packed = put_together(array, _value(part.node, items, of))
    there = pc.binary_length(packed).to_numpy() > 0
    some = packed.filter(pa.array(there))
    tagged = joined(len(some), tag_of(part.field.number, Wire.SIZED), _sizes(some), some)
    return spread(tagged, there)


def _scalar(node: Scalar, array: pa.Array, rows: Integers) -> pa.Array:
    array = converted(array, node.arrow, rows, node.path)
    width = _WIDTHS.get(node.kind)
    match node.kind:
        case Kind.STRING | Kind.BYTES:
            return array.cast(pa.binary())
        case Kind.BOOL | Kind.DOUBLE | Kind.FLOAT:
            return fixed_width(array.to_numpy(zero_copy_only=False).astype(width))
    values = _integers(node, array, rows) if node.enum is None else _enum(node, array, rows)
    if width is not None:
        return fixed_width(values.astype(width))
    return integers(values) if node.kind in _ZIGZAG else _unsigned(values)


def _is_set(node: Scalar, array: pa.Array) -> Mask:
    """Return which values are not the default. Null counts as set here."""
    if node.enum is not None and pa.types.is_string(array.type):
        zeros = [name for name, number in node.enum.values if number == 0]
        zero = pc.is_in(array, value_set=pa.array([*zeros, "0"]))
    else:
        zero = pc.fill_null(_is_zero(array), False)
    mask: Mask = ~zero.to_numpy(zero_copy_only=False)
    return mask


def _is_zero(array: pa.Array) -> pa.Array:
    """Return which values are 0 or empty."""
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return pc.equal(pc.binary_length(array), 0)
    if pa.types.is_boolean(kind):
        return pc.invert(array)
    if pa.types.is_floating(kind):
        # -0.0 is not the default: it has a bit set.
        array = array.view(pa.from_numpy_dtype(np.dtype(f"i{kind.bit_width // 8}")))
    return pc.equal(array, pa.scalar(0, array.type))


def _integers(node: Scalar, array: pa.Array, rows: Integers) -> Integers:
    """Return the values as 64 bits. The numbers of unsigned types must be in their range."""
    if node.arrow == UNSIGNED:
        bits = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2)
        bits = bits[array.offset : array.offset + len(array)]
        _refuse_some(bits[:, 1] != 0, node.path, rows, NOT_64_BITS)
        return bits[:, 0]
    values = numbers(array, pa.int32() if node.arrow == pa.int32() else pa.int64())
    if node.kind not in (Kind.UINT32, Kind.FIXED32):
        return values
    if node.arrow == pa.int64():
        _refuse_some((values < 0) | (values >= 1 << 32), node.path, rows, NOT_32_BITS)
    return values & 0xFFFFFFFF


def _enum(node: Scalar, array: pa.Array, rows: Integers) -> Integers:
    """Return the numbers of symbols, which may be given as numbers themselves."""
    assert node.enum is not None  # noqa: S101  # It is the plan of an enum.
    encoded = array.dictionary_encode()
    values = encoded.dictionary.to_pylist()
    places = encoded.indices.to_numpy()
    as_numbers = list(map(numbering(node.enum), values))
    for place, number in enumerate(as_numbers):
        if number is None:
            refuse_rows(node.path, rows[places == place], no_symbol(values[place], node.enum))
    found_numbers: Integers = np.array(as_numbers, np.int64)[places]
    return found_numbers


def _unsigned(values: Integers) -> pa.BinaryArray:
    """Encode varints of 64 bits, without zigzag."""
    return integers(unzigzag(np.ascontiguousarray(values).view(np.uint64)))


def _sizes(array: pa.BinaryArray) -> pa.BinaryArray:
    return _unsigned(wide(pc.binary_length(array).to_numpy()))


def _moment(node: Moment, array: pa.Array, rows: Integers) -> pa.BinaryArray:
    """Encode seconds and nanoseconds. In a negative duration both are negative or 0."""
    ticks, a_second = numbers(array, pa.int64()), _A_SECOND[array.type.unit]
    seconds = ticks // a_second
    if pa.types.is_duration(array.type):
        seconds = seconds + ((seconds < 0) & (ticks % a_second != 0))
    nanos = (ticks - seconds * a_second) * (_A_SECOND["ns"] // a_second)
    _refuse_out_of_bounds(node, seconds, nanos, rows)
    parts = []
    for number, values in enumerate((seconds, nanos), 1):
        there = values != 0
        if there.any():
            tag = tag_of(number, Wire.VARINT)
            tagged = joined(int(there.sum()), tag, _unsigned(values[there]))
            parts.append(spread(tagged, there))
    return joined(len(array), *parts)


def _check_moment(node: Struct, array: pa.Array, rows: Integers) -> None:
    """Refuse structs of seconds and nanos that are out of bounds. Null stands for 0."""
    values = {number: np.zeros(len(array), np.int64) for number in (1, 2)}
    for part in node.parts:
        given = pc.fill_null(pc.struct_field(array, part.place), 0)
        values[part.field.number] = numbers(
            converted(given, pa.int64(), rows, part.path), pa.int64()
        )
    _refuse_out_of_bounds(node, values[1], values[2], rows)


def _refuse_out_of_bounds(
    node: Struct | Moment, seconds: Integers, nanos: Integers, rows: Integers
) -> None:
    bad = ~in_bounds(node.message, seconds, nanos)
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        reason = out_of_bounds(node.message, int(seconds[first]), int(nanos[first]))
        refuse_rows(node.path, rows[bad], reason)


def _filled(array: pa.Array) -> pa.Array:
    """Replace null lists and maps by empty ones."""
    return pc.fill_null(array, []) if array.null_count else array


def _refuse_nulls(array: pa.Array, rows: Integers, path: str) -> None:
    if array.null_count:
        _refuse_some(~valid(array), path, rows, NULL)


def _refuse_some(bad: Mask, path: str, rows: Integers, reason: str) -> None:
    if bad.any():
        refuse_rows(path, rows[bad], reason)
