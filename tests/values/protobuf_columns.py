"""Random Arrow types and values for a message, and what upb must find in the bytes of them."""

import datetime
import struct
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf.descriptor import FieldDescriptor as F

SMALL = [pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16()]
WIDE = [*SMALL, pa.int64(), pa.uint32()]
UNSIGNED32 = [*SMALL, pa.uint32(), pa.int64()]
UNSIGNED64 = [*WIDE, pa.uint64(), pa.decimal128(20), pa.decimal128(9)]
TEXTS = [pa.string(), pa.large_string()]
OCTETS = [pa.binary(), pa.large_binary(), pa.binary(3)]
RIGHT: dict[int, list[pa.DataType]] = {
    **dict.fromkeys((F.TYPE_INT32, F.TYPE_SINT32, F.TYPE_SFIXED32), SMALL),
    **dict.fromkeys((F.TYPE_INT64, F.TYPE_SINT64, F.TYPE_SFIXED64), WIDE),
    **dict.fromkeys((F.TYPE_UINT32, F.TYPE_FIXED32), UNSIGNED32),
    **dict.fromkeys((F.TYPE_UINT64, F.TYPE_FIXED64), UNSIGNED64),
    F.TYPE_BOOL: [pa.bool_()],
    F.TYPE_FLOAT: [pa.float32(), pa.float16(), pa.int16()],
    F.TYPE_DOUBLE: [pa.float64(), pa.float32(), pa.int32()],
    F.TYPE_STRING: TEXTS,
    F.TYPE_BYTES: OCTETS,
    F.TYPE_ENUM: [*TEXTS, *SMALL],
}
MOMENTS = {
    "google.protobuf.Timestamp": [pa.timestamp(unit, "UTC") for unit in ("s", "ms", "us", "ns")],
    "google.protobuf.Duration": [pa.duration(unit) for unit in ("s", "ms", "us", "ns")],
}
OTHERS = [
    pa.int64(), pa.uint64(), pa.float64(), pa.string(), pa.binary(), pa.bool_(), pa.date32(),
    pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.duration("us"), pa.time64("us"),
    pa.decimal128(38, 2), pa.list_(pa.string()), pa.map_(pa.string(), pa.int32()),
    pa.struct([("value", pa.int32())]), pa.struct([]), pa.null(),
]  # fmt: skip


def is_map(field: Any) -> bool:
    return bool(field.message_type and field.message_type.GetOptions().map_entry)


def type_of(random: Random, message: Any, wrong: float = 0.02) -> pa.DataType:
    """Return the type of a struct for a message. Each field is wrong with this likelihood."""
    fields = [
        (_name(random, field, wrong), _field(random, field, wrong))
        for field in message.fields
        if random.random() < 0.8
    ]
    random.shuffle(fields)
    return pa.struct(fields)


def _name(random: Random, field: Any, wrong: float) -> str:
    return field.name.upper() if random.random() < wrong / 4 else str(field.name)


def _field(random: Random, field: Any, wrong: float) -> pa.DataType:
    if random.random() < wrong:
        return random.choice(OTHERS)
    if is_map(field):
        key, value = (field.message_type.fields_by_name[each] for each in ("key", "value"))
        return pa.map_(_one(random, key, wrong), _one(random, value, wrong))
    one = _one(random, field, wrong)
    if not field.is_repeated:
        return one
    return random.choice([pa.list_, pa.large_list])(one)


def _one(random: Random, field: Any, wrong: float) -> pa.DataType:
    inner = field.message_type
    if inner is None:
        return random.choice(RIGHT[field.type])
    if inner.full_name in MOMENTS and random.random() < 0.7:
        return random.choice(MOMENTS[inner.full_name])
    if inner.full_name.endswith("Value") and random.random() < 0.5:
        return _one(random, inner.fields_by_name["value"], wrong)
    return type_of(random, inner, wrong)


def value_of(random: Random, kind: pa.DataType, null: float = 0.15) -> Any:
    """Return a random value of a type, None with this likelihood."""
    if random.random() < null or pa.types.is_null(kind):
        return None
    if pa.types.is_struct(kind):
        return {each.name: value_of(random, each.type) for each in kind}
    if pa.types.is_map(kind):
        count = random.randint(0, 3)
        pairs = [
            (value_of(random, kind.key_type, 0), value_of(random, kind.item_type, 0.01))
            for _ in range(count)
        ]
        return list({repr(key): (key, value) for key, value in pairs}.values())
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        count = random.choice([0, 1, 3])
        return [value_of(random, kind.value_type, 0.01) for _ in range(count)]
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return _leaf(random, kind)


def _leaf(random: Random, kind: pa.DataType) -> Any:
    if pa.types.is_integer(kind):
        bits, signed = kind.bit_width, pa.types.is_signed_integer(kind)
        number = random.choice([0, 1, 2, 127, random.getrandbits(bits), (1 << bits) - 1])
        number &= (1 << bits) - 1
        return number - (1 << bits) if signed and number >> (bits - 1) else number
    if pa.types.is_floating(kind):
        return random.choice([0.0, -0.0, 1.5, -2.25, float("inf"), float("nan")])
    if pa.types.is_decimal(kind):
        numbers = [0, 5, -1, 10**9 - 1, (1 << 64) - 1, 10**20 - 1]
        return Decimal(random.choice([n for n in numbers if n < 10**kind.precision // 100]))
    if pa.types.is_boolean(kind):
        return random.random() < 0.5
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return random.choice(["", "a", "né", "E0", "E1", "E2", "I01", "I12", "7", "-1", "x" * 150])
    if pa.types.is_fixed_size_binary(kind):
        return random.randbytes(kind.byte_width)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return random.choice([b"", b"\0", random.randbytes(200)])
    if pa.types.is_date(kind):
        return datetime.date(2026, 1, 2)
    ticks = random.choice([0, 1, -1, 86_399, random.randint(-(10**10), 10**10)])
    return pa.scalar(ticks, pa.int64()).cast(kind) if pa.types.is_temporal(kind) else None


def meant(field: Any, value: Any, kind: pa.DataType) -> Any:
    """Return what the bytes of a field must say, in a form that `found` also has."""
    if value is None:
        return [] if field.is_repeated else _absent(field)
    if is_map(field):
        key, item = (field.message_type.fields_by_name[each] for each in ("key", "value"))
        return sorted(
            (repr(_meant(key, one, kind.key_type)), repr(_meant(item, other, kind.item_type)))
            for one, other in value
        )
    if field.is_repeated:
        return [_meant(field, each, kind.value_type) for each in value]
    return _meant(field, value, kind)


def _absent(field: Any) -> Any:
    """Return what `found` has for a field that was not written."""
    if field.has_presence:
        return None
    zeros = {F.CPPTYPE_STRING: "", F.CPPTYPE_BOOL: False}
    if field.type == F.TYPE_BYTES:
        return b""
    if field.cpp_type in (F.CPPTYPE_DOUBLE, F.CPPTYPE_FLOAT):
        return repr(0.0)
    return zeros.get(field.cpp_type, 0)


def _meant(field: Any, value: Any, kind: pa.DataType) -> Any:
    inner = field.message_type
    if inner is not None:
        if pa.types.is_struct(kind):
            given = {each.name: each.type for each in kind}
            return {
                each.name: meant(each, value.get(each.name), given.get(each.name, pa.null()))
                for each in inner.fields
            }
        if pa.types.is_temporal(kind):
            nanos = value.value * {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}[kind.unit]
            seconds = nanos // 10**9
            if nanos < 0 and nanos % 10**9 and inner.name == "Duration":
                seconds += 1
            return {"seconds": seconds, "nanos": nanos - seconds * 10**9}
        return {"value": _meant(inner.fields_by_name["value"], value, kind)}
    return _scalar(field, value)


def _scalar(field: Any, value: Any) -> Any:
    match field.type:
        case F.TYPE_ENUM if isinstance(value, str):
            known = field.enum_type.values_by_name
            return known[value].number if value in known else int(value)
        case F.TYPE_UINT32 | F.TYPE_FIXED32:
            return int(value) % (1 << 32)
        case F.TYPE_UINT64 | F.TYPE_FIXED64:
            return int(value) % (1 << 64)
        case F.TYPE_FLOAT:
            return repr(struct.unpack("<f", struct.pack("<f", value))[0])
        case F.TYPE_DOUBLE:
            return repr(float(value))
    return value


def found(message: Any) -> dict[str, Any]:
    """Return all that upb's message says."""
    return {field.name: _found(message, field) for field in message.DESCRIPTOR.fields}


def _found(message: Any, field: Any) -> Any:
    value = getattr(message, field.name)
    if is_map(field):
        item = field.message_type.fields_by_name["value"]
        key = field.message_type.fields_by_name["key"]
        return sorted((repr(_shown(key, each)), repr(_shown(item, value[each]))) for each in value)
    if field.is_repeated:
        return [_shown(field, each) for each in value]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _shown(field, value)


def _shown(field: Any, value: Any) -> Any:
    if field.message_type:
        return found(value)
    return repr(float(value)) if isinstance(value, float) else value


def python(value: Any, kind: pa.DataType) -> Any:
    """Return a drawn value as a program gives it to `one`. Raises `ValueError` if it cannot."""
    if isinstance(value, pa.Scalar):
        if value.type.unit == "ns" and value.value % 1000:
            raise ValueError("no such datetime")
        return value.cast(pa.duration("us") if pa.types.is_duration(kind) else _US).as_py()
    if isinstance(value, dict):
        return {each.name: python(value[each.name], each.type) for each in kind}
    if pa.types.is_map(kind) and value is not None:
        return [(python(a, kind.key_type), python(b, kind.item_type)) for a, b in value]
    if isinstance(value, list):
        return [python(each, kind.value_type) for each in value]
    return value


_US = pa.timestamp("us", "UTC")


def as_arrow(value: Any, kind: pa.DataType) -> Any:
    """Return a drawn value in a form from which `pa.array` makes one of exactly this type."""
    if isinstance(value, pa.Scalar):
        return value.value
    if isinstance(value, dict):
        return {each.name: as_arrow(value[each.name], each.type) for each in kind}
    if pa.types.is_map(kind) and value is not None:
        return [(as_arrow(a, kind.key_type), as_arrow(b, kind.item_type)) for a, b in value]
    if isinstance(value, list):
        return [as_arrow(each, kind.value_type) for each in value]
    if pa.types.is_float16(kind) and value is not None:
        return np.float16(value)  # An older Arrow takes only numpy's own.
    return value
