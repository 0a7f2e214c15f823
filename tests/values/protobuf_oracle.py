"""Results of upb (in google.protobuf) in the form of our columns."""

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FieldDescriptor as F
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from spark_kafka_source.values import Decoded, Encoded, Fault
from spark_kafka_source.values.protobuf import ProtobufReader
from spark_kafka_source.values.typing import ProtobufTyping
from tests.values.avro_oracle import laid, plain
from tests.values.protobuf_schemas import file_set, message_class

__all__ = [
    "DecodeError",
    "agrees",
    "agrees_with",
    "decoded",
    "expected",
    "laid",
    "plain",
    "reader_of",
]
_MOMENTS = ("google.protobuf.Timestamp", "google.protobuf.Duration")


class TextError(Exception):
    """A string in a column is not UTF-8."""


def reader_of(file: Any, typing: ProtobufTyping | None = None, **more: Any) -> ProtobufReader:
    return ProtobufReader(file_set(file).SerializeToString(), "p.M0", typing=typing, **more)


def decoded(reader: ProtobufReader, rows: Sequence[bytes], writer: Any = None) -> Decoded:
    by = file_set(writer).SerializeToString() if writer is not None else None
    found = reader.decode([reader.program(by)], Encoded(*laid(rows)))
    found.array.validate(full=True)
    assert found.array.type == reader.arrow_type
    assert len(found.array) == len(rows)
    return found


def expected(message: Any, typing: ProtobufTyping) -> dict[str, Any]:
    """Return upb's message in the form of our columns."""
    return {
        field.name: _field(message, field, typing)
        for field in message.DESCRIPTOR.fields
        if _has_column(field)
    }


def _has_column(field: Any) -> bool:
    inner = field.message_type
    if inner and _is_entry(inner):
        return _has_column(inner.fields_by_name["value"])
    return inner is None or any(map(_has_column, inner.fields))


def _field(message: Any, field: Any, typing: ProtobufTyping) -> Any:
    found = getattr(message, field.name)
    if field.is_repeated:
        inner = field.message_type
        if inner and _is_entry(inner):
            return _map(found, inner, typing)
        return [_value(each, field, typing) for each in found]
    if field.has_presence:
        if not message.HasField(field.name) and not field.has_default_value:
            return None
    elif not typing.emit_default_values and _is_zero(found):
        return None
    return _value(found, field, typing)


def _is_entry(inner: Any) -> bool:
    return bool(inner.GetOptions().map_entry) or inner.name.endswith("Entry")


def _map(found: Any, inner: Any, typing: ProtobufTyping) -> dict[Any, Any]:
    key, value = inner.fields_by_name["key"], inner.fields_by_name["value"]
    if inner.GetOptions().map_entry:
        pairs = [(each, found[each]) for each in found]
    else:
        pairs = [(each.key, each.value) for each in found if not _has_lost(each, value)]
    by_key = {_value(one, key, typing): other for one, other in pairs}
    return {one: _value(other, value, typing) for one, other in by_key.items()}


def _has_lost(entry: Any, value: Any) -> bool:
    """Return whether the entry's value is missing in its enum."""
    closed = value.type == F.TYPE_ENUM and value.enum_type.is_closed
    unknown = {(each.field_number, each.wire_type) for each in UnknownFieldSet(entry)}
    return closed and (2, 0) in unknown


def _is_zero(value: Any) -> bool:
    if isinstance(value, float):
        return value == 0 and math.copysign(1, value) > 0
    return not value


def _value(found: Any, field: Any, typing: ProtobufTyping) -> Any:
    if field.message_type:
        return _message(found, field.message_type, typing)
    match field.type:
        case F.TYPE_ENUM:
            names = {each.number: each.name for each in reversed(field.enum_type.values)}
            return found if typing.enums_as_ints else names.get(found, str(found))
        case F.TYPE_UINT32 if typing.upcast_unsigned_ints:
            return found
        case F.TYPE_UINT64 if typing.upcast_unsigned_ints:
            return Decimal(found)
        case F.TYPE_UINT32 | F.TYPE_FIXED32:
            return int(np.uint32(found).astype(np.int32))
        case F.TYPE_UINT64 | F.TYPE_FIXED64:
            return int(np.uint64(found).astype(np.int64))
        case F.TYPE_FLOAT | F.TYPE_DOUBLE:
            return repr(float(found))
        case F.TYPE_STRING if isinstance(found, str):
            return found
        case F.TYPE_BYTES if stands_for_text(field):
            try:
                return found.decode()
            except UnicodeDecodeError as error:
                raise TextError from error
    return found


def stands_for_text(field: Any) -> bool:
    """Return whether the field replaces a string, in a file of `lenient`."""
    return bool(field.json_name.startswith("text"))


def _message(found: Any, inner: Any, typing: ProtobufTyping) -> Any:
    if inner.full_name in _MOMENTS:
        nanos = found.nanos
        return found.seconds * 1_000_000 + (nanos // 1000 if nanos >= 0 else -(-nanos // 1000))
    if typing.unwrap_primitive_wrapper_types and inner.full_name.endswith("Value"):
        return _value(found.value, inner.fields_by_name["value"], typing)
    return expected(found, typing)


def lenient(file: Any) -> Any:
    """Return the file with bytes for strings, entries for maps, and only fields with columns.

    So upb checks neither texts nor the contents of messages without columns.
    """
    found = descriptor_pb2.FileDescriptorProto.FromString(file.SerializeToString())
    for message in found.message_type:
        known = message_class(file, f"p.{message.name}").DESCRIPTOR.fields_by_name
        for place in reversed(range(len(message.field))):
            if not _has_column(known[message.field[place].name]):
                message.field[place].ClearField("oneof_index")
                del message.field[place]
        _without_empty_oneofs(message)
        for each in [message, *message.nested_type]:
            for field in each.field:
                if field.type == F.TYPE_STRING:
                    field.type, field.json_name = F.TYPE_BYTES, f"text{field.name}"
                    if field.default_value:
                        field.default_value = r"n\303\251"
        for each in message.nested_type:
            each.options.ClearField("map_entry")
    return found


def _without_empty_oneofs(message: Any) -> None:
    used = sorted({each.oneof_index for each in message.field if each.HasField("oneof_index")})
    kept = [message.oneof_decl[place].name for place in used]
    del message.oneof_decl[:]
    for name in kept:
        message.oneof_decl.add(name=name)
    for each in message.field:
        if each.HasField("oneof_index"):
            each.oneof_index = used.index(each.oneof_index)


def agrees(
    file: Any, rows: Sequence[bytes], found: Decoded, typing: ProtobufTyping | None = None
) -> None:
    """Check that each row equals upb's result, or is malformed; see `agrees_with`."""
    agrees_with((message_class(file), message_class(lenient(file))), rows, found, typing)


def agrees_with(
    classes: tuple[Any, Any],
    rows: Sequence[bytes],
    found: Decoded,
    typing: ProtobufTyping | None = None,
) -> None:
    """Check that each row equals upb's result, or is malformed for upb or for our columns.

    upb drops a map's entry with unknown fields. Java (and so Spark) keeps it. So where both
    results differ, the check compares maps as their entries.
    """
    typing = typing or ProtobufTyping()
    strict, loose = classes
    for place, (row, value) in enumerate(zip(rows, plain(found.array), strict=True)):
        fault = Fault(found.status[place])
        assert (value is None) == bool(fault)
        try:
            wanted = expected(loose.FromString(row), typing)
        except DecodeError:
            assert fault, f"upb does not take {row.hex()}: {value}"
            continue
        except TextError:
            assert fault, row.hex()
            continue
        if fault is Fault.TIMESTAMP:
            assert _is_beyond(wanted)
        elif fault is Fault.TEXT:
            with pytest.raises(DecodeError):  # upb also checks a key that a later key replaces.
                strict.FromString(row)
        elif fault is Fault.TAG:
            assert 0 in row  # In upb a tag of 0 ends the message, and the rest is ignored.
        else:
            assert not fault, f"upb takes {row.hex()}, of which {found.reason(place)}"
            if value != wanted:
                wanted = expected(strict.FromString(row), typing)
            assert value == wanted, f"{row.hex()}: {value} is not {wanted}"


def _is_beyond(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_is_beyond, [*value, *value.values()]))
    if isinstance(value, list):
        return any(map(_is_beyond, value))
    return isinstance(value, int) and not -1 << 63 <= value < 1 << 63
