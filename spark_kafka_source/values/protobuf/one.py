"""Encoder from one Python value to Protobuf: a function for each type. `encode` is for columns.

Values are checked strictly, by the rules of `fit`. A message may hold itself: its writers are made
once for each message, when a value first needs them. The module is long because Protobuf has many
types, and each has its function.
"""

import struct
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from operator import index
from typing import Any, NamedTuple, NoReturn

import pyarrow as pa

from spark_kafka_source.records.varints import encode_varint
from spark_kafka_source.values.errors import quoted
from spark_kafka_source.values.fitting import below
from spark_kafka_source.values.one_value import items_of, known_fields, pairs_of, real, refuse
from spark_kafka_source.values.protobuf.encode import (
    NOT_64_BITS,
    NULL,
    no_symbol,
    numbering,
    several,
)
from spark_kafka_source.values.protobuf.fit import described_value, how_given
from spark_kafka_source.values.protobuf.program import MAX_NESTING
from spark_kafka_source.values.protobuf.schema import (
    MESSAGES,
    Enum,
    Field,
    Kind,
    Message,
    Schema,
    Wire,
    tag_of,
    varint_of,
    wire_of,
)
from spark_kafka_source.values.protobuf.well_known import (
    DURATION,
    in_bounds,
    is_moment,
    is_wrapper,
    out_of_bounds,
)


class At(NamedTuple):
    """Place of a message: its path, and how many messages deep it is."""

    path: str
    depth: int

    def of(self, name: str) -> str:
        """Return the path of a field. A wrapper's value, without a name, has the same path."""
        return below(self.path, name) if name else self.path


Write = Callable[[Any, bytearray, At], None]
"""Appends the bytes of a value in the message at a place. Raises `UnencodableRowError`."""
Octets = Callable[[Any, At], bytes | bytearray]
"""Returns the bytes of a value without tag and size."""

_ALL = (1 << 64) - 1
_REALS = pa.float64(), pa.float32()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICRO, _NANOS = timedelta(microseconds=1), 1_000_000_000
_MOST_SHOWN = 100
_RANGES = {
    Kind.INT32: range(-(1 << 31), 1 << 31),
    Kind.SINT32: range(-(1 << 31), 1 << 31),
    Kind.SFIXED32: range(-(1 << 31), 1 << 31),
    Kind.INT64: range(-(1 << 63), 1 << 63),
    Kind.SINT64: range(-(1 << 63), 1 << 63),
    Kind.SFIXED64: range(-(1 << 63), 1 << 63),
    # A negative number stands for its bits, as it is read without `upcast.unsigned.ints`.
    Kind.UINT32: range(-(1 << 31), 1 << 32),
    Kind.FIXED32: range(-(1 << 31), 1 << 32),
    Kind.UINT64: range(-(1 << 63), 1 << 64),
    Kind.FIXED64: range(-(1 << 63), 1 << 64),
}


def writer_of_one(
    schema: Schema, message: Message, ignored: Collection[str] = ()
) -> Callable[[Any], bytes]:
    """Return the encoder of one value as a message. A dict stands for a message.

    `ignored` are paths of fields that are left out if the message does not have them.
    """
    write = _Writers(schema, frozenset(ignored)).message(message)
    return lambda value: bytes(write(value, At("", 1)))


class _Writers:
    """Writers of all messages of a schema."""

    def __init__(self, schema: Schema, ignored: Collection[str]) -> None:
        self._schema, self._ignored = schema, ignored
        self._made: dict[str, list[tuple[str, Write, bool]]] = {}

    def message(self, message: Message) -> Octets:
        """Return the writer of a dict. The place is that of the message itself."""
        names = dict.fromkeys(field.name for field in message.fields)
        oneofs = {
            number: [field.name for field in message.fields if field.oneof == number]
            for number in {field.oneof for field in message.fields} - {-1}
        }
        is_time = is_moment(message)

        def write(value: Any, at: At) -> bytearray:
            if not isinstance(value, Mapping):
                _refuse_message(value, message, at)
            _check_depth(at)
            if not value.keys() <= names.keys():
                known_fields(value, names, at.path, self._ignored)
            for members in oneofs.values():
                if sum(value.get(name) is not None for name in members) > 1:
                    given = [name for name in members if value.get(name) is not None]
                    refuse(at.path, several(given, message))
            out = bytearray()
            for name, each, required in self._fields(message):
                inner = value.get(name)
                if inner is not None:
                    each(inner, out, at)
                elif required:
                    refuse(at.of(name), NULL)
            if is_time:
                seconds, nanos = (index(value.get(name) or 0) for name in names)
                _check_bounds(message, seconds, nanos, at)
            return out

        return write

    def _fields(self, message: Message) -> list[tuple[str, Write, bool]]:
        """Return the writers of a message's fields, in the order of their numbers."""
        made = self._made.get(message.name)
        if made is None:
            fields = sorted(message.fields, key=lambda each: each.number)
            made = [(field.name, self._field(field), field.required) for field in fields]
            self._made[message.name] = made
        return made

    def _field(self, field: Field) -> Write:
        if not field.repeated:
            return self._single(field, field.name)
        if field.kind in MESSAGES and self._schema.messages[field.type_name].is_entry:
            return self._map(field)
        return self._list(field)

    def _single(self, field: Field, path: str) -> Write:
        octets, put = self._value(field, path), _putter(field)
        is_set = any if wire_of(field.kind) is not Wire.SIZED else len

        def write(value: Any, out: bytearray, at: At) -> None:
            data = octets(value, at)
            if field.presence or is_set(data):
                put(data, out)

        return write

    def _list(self, field: Field) -> Write:
        path = f"{field.name}[]"
        octets, put = self._value(field, path), _putter(field)
        tag = tag_of(field.number, Wire.SIZED)

        def write(value: Any, out: bytearray, at: At) -> None:
            items = items_of(value, at.of(field.name))
            if any(item is None for item in items):
                refuse(at.of(path), NULL)
            if not field.packed:
                for item in items:
                    put(octets(item, at), out)
            elif items:
                data = b"".join([octets(item, at) for item in items])
                out += tag + varint_of(len(data)) + data

        return write

    def _map(self, field: Field) -> Write:
        path, put = f"{field.name}{{}}", _putter(field)
        entry = self._schema.messages[field.type_name]
        key, item = sorted(entry.fields, key=lambda each: each.number)
        octets_of_key, octets = self._value(key, path), self._value(item, path)
        put_key, put_item = _putter(key), _putter(item)

        def write(value: Any, out: bytearray, at: At) -> None:
            inner = At(at.path, at.depth + 1)
            for name, each in pairs_of(value, at.of(field.name)):
                _check_depth(inner)
                if name is None or each is None:
                    refuse(at.of(path), NULL)
                data = bytearray()
                put_key(octets_of_key(name, inner), data)
                put_item(octets(each, inner), data)
                put(data, out)

        return write

    def _value(self, field: Field, path: str) -> Octets:
        """Return the writer of one value, which is at `path` within its message."""
        if field.kind is Kind.ENUM:
            return _symbol(self._schema.enums[field.type_name], path)
        if field.kind not in MESSAGES:
            return _SCALARS[field.kind](field, path)
        message = self._schema.messages[field.type_name]
        of_dict = self.message(message)
        of_other = self._other(message)

        def write(value: Any, at: At) -> bytes | bytearray:
            inner = At(at.of(path), at.depth + 1)
            return (of_dict if isinstance(value, Mapping) else of_other)(value, inner)

        return write

    def _other(self, message: Message) -> Octets:
        """Return the writer of a value that is no dict. The place is that of the message itself."""
        if is_moment(message):
            return _moment(message)
        if not is_wrapper(message):
            return self.message(message)
        write = self._single(message.fields[0], "")

        def wrapped(value: Any, at: At) -> bytearray:
            _check_depth(at)
            out = bytearray()
            write(value, out, at)
            return out

        return wrapped


def _check_depth(at: At) -> None:
    if at.depth > MAX_NESTING:
        refuse(at.path[:_MOST_SHOWN], f"more than {MAX_NESTING} messages within each other")


def _check_bounds(message: Message, seconds: int, nanos: int, at: At) -> None:
    if not in_bounds(message, seconds, nanos):
        refuse(at.path, out_of_bounds(message, seconds, nanos))


def _putter(field: Field) -> Callable[[bytes | bytearray, bytearray], None]:
    """Return a function that appends a value's bytes with tag and size. A group has an end tag."""
    before = tag_of(field.number, wire_of(field.kind))
    after = tag_of(field.number, Wire.END_GROUP) if field.kind is Kind.GROUP else b""
    is_sized = wire_of(field.kind) is Wire.SIZED

    def put(data: bytes | bytearray, out: bytearray) -> None:
        out += before
        if is_sized:
            out += varint_of(len(data))
        out += data
        out += after

    return put


def _number(field: Field, path: str) -> Octets:
    """Return the writer of an integer."""
    numbers, encoded = _RANGES[field.kind], _ENCODED[field.kind]
    is_wide = field.kind in (Kind.UINT64, Kind.FIXED64)

    def write(value: Any, at: At) -> bytes:
        if is_wide and isinstance(value, Decimal):
            return encoded(_whole(value, at.of(path)))
        try:
            number = index(value)
        except TypeError:
            _refuse_value(value, field, at, path)
        if number not in numbers or isinstance(value, bool):
            _refuse_value(value, field, at, path)
        return encoded(number)

    return write


def _whole(value: Decimal, path: str) -> int:
    """Return the number of a decimal, which has 64 bits and no sign, as it is read."""
    if not value.is_finite() or value != value.to_integral_value() or not 0 <= value <= _ALL:
        refuse(path, NOT_64_BITS)
    return int(value)


def _boolean(field: Field, path: str) -> Octets:
    def write(value: Any, at: At) -> bytes:
        if not isinstance(value, bool):
            _refuse_value(value, field, at, path)
        return b"\1" if value else b"\0"

    return write


def _real(field: Field, path: str) -> Octets:
    is_single = field.kind is Kind.FLOAT
    pack, kind = struct.Struct("<f" if is_single else "<d").pack, _REALS[is_single]
    return lambda value, at: pack(real(value, kind, at.of(path)))


def _text(field: Field, path: str) -> Octets:
    def write(value: Any, at: At) -> bytes:
        try:
            return str.encode(value)
        except (TypeError, UnicodeEncodeError):
            _refuse_value(value, field, at, path)

    return write


def _bytes(field: Field, path: str) -> Octets:
    def write(value: Any, at: At) -> bytes:
        if not isinstance(value, bytes | bytearray | memoryview):
            _refuse_value(value, field, at, path)
        return bytes(value)

    return write


def _symbol(enum: Enum, path: str) -> Octets:
    number_of = numbering(enum)

    def write(value: Any, at: At) -> bytes:
        number = None
        if isinstance(value, str):
            number = number_of(value)
        elif not isinstance(value, bool) and hasattr(value, "__index__"):
            number = number_of(index(value))
        if number is None:
            refuse(at.of(path), no_symbol(value, enum))
        return varint_of(number)

    return write


def _moment(message: Message) -> Octets:
    """Return the writer of a datetime or timedelta, with its nanoseconds if pandas made it."""
    is_duration = message.name == DURATION

    def write(value: Any, at: At) -> bytes:
        _check_depth(at)
        if is_duration and isinstance(value, timedelta):
            nanos = value // _MICRO * 1000 + getattr(value, "nanoseconds", 0)
            return _seconds(message, nanos, at)
        # pandas' NaT is a datetime, and not equal to itself.
        if is_duration or not isinstance(value, datetime) or value != value:  # noqa: PLR0124
            _refuse_message(value, message, at)
        if value.utcoffset() is None:
            refuse(at.path, f"{_shown(value)} has no time zone. Give it a time zone")
        nanos = (value - _EPOCH) // _MICRO * 1000 + getattr(value, "nanosecond", 0)
        return _seconds(message, nanos, at)

    return write


def _seconds(message: Message, nanos: int, at: At) -> bytes:
    """Encode nanoseconds. In a negative duration both parts are negative or 0."""
    seconds, rest = divmod(nanos, _NANOS)
    if message.name == DURATION and seconds < 0 and rest:
        seconds, rest = seconds + 1, rest - _NANOS
    _check_bounds(message, seconds, rest, at)
    encoded = b"\x08" + varint_of(seconds) if seconds else b""
    return encoded + b"\x10" + varint_of(rest) if rest else encoded


def _fixed(size: int) -> Callable[[int], bytes]:
    mask = (1 << 8 * size) - 1
    return lambda value: (value & mask).to_bytes(size, "little")


def _refuse_value(value: object, field: Field, at: At, path: str) -> NoReturn:
    refuse(at.of(path), f"{_shown(value)} is no {described_value(field)}")


def _refuse_message(value: object, message: Message, at: At) -> NoReturn:
    refuse(at.path, f"{_shown(value)} is no {message.name}. Give {how_given(message)}")


def _shown(value: object) -> str:
    return f"{quoted(value)} ({type(value).__name__})"


_ENCODED: dict[Kind, Callable[[int], bytes]] = {
    Kind.INT32: varint_of,
    Kind.INT64: varint_of,
    Kind.UINT32: lambda value: varint_of(value & 0xFFFFFFFF),
    Kind.UINT64: varint_of,
    Kind.SINT32: encode_varint,
    Kind.SINT64: encode_varint,
    Kind.FIXED32: _fixed(4),
    Kind.SFIXED32: _fixed(4),
    Kind.FIXED64: _fixed(8),
    Kind.SFIXED64: _fixed(8),
}
_SCALARS: dict[Kind, Callable[[Field, str], Octets]] = {
    **dict.fromkeys(_ENCODED, _number),
    Kind.BOOL: _boolean,
    Kind.FLOAT: _real,
    Kind.DOUBLE: _real,
    Kind.STRING: _text,
    Kind.BYTES: _bytes,
}
