"""Protobuf descriptors as values, https://protobuf.dev/reference/protobuf/google.protobuf/.

Messages and enums have full names, without a leading dot, and refer to each other by these names.
So a message may contain itself, and every value here is finite.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from spark_kafka_source.values.errors import SchemaError, UnresolvableError


class Kind(IntEnum):
    """Types of fields, by their numbers in descriptors."""

    DOUBLE = 1
    FLOAT = 2
    INT64 = 3
    UINT64 = 4
    INT32 = 5
    FIXED64 = 6
    FIXED32 = 7
    BOOL = 8
    STRING = 9
    GROUP = 10
    MESSAGE = 11
    BYTES = 12
    UINT32 = 13
    ENUM = 14
    SFIXED32 = 15
    SFIXED64 = 16
    SINT32 = 17
    SINT64 = 18

    def __str__(self) -> str:
        return self.name.lower()


class Wire(IntEnum):
    """Wire types, in the tag before a value, https://protobuf.dev/programming-guides/encoding/."""

    VARINT = 0
    FIXED64 = 1
    SIZED = 2
    GROUP = 3
    END_GROUP = 4
    FIXED32 = 5


_FIXED32 = (Kind.FLOAT, Kind.FIXED32, Kind.SFIXED32)
_FIXED64 = (Kind.DOUBLE, Kind.FIXED64, Kind.SFIXED64)
_SIZED = (Kind.STRING, Kind.BYTES, Kind.MESSAGE)
MESSAGES = (Kind.MESSAGE, Kind.GROUP)
_SHORT = [bytes([each]) for each in range(128)]


def wire_of(kind: Kind) -> Wire:
    """Return the wire type of one value."""
    if kind in _FIXED32:
        return Wire.FIXED32
    if kind in _FIXED64:
        return Wire.FIXED64
    if kind in _SIZED:
        return Wire.SIZED
    return Wire.GROUP if kind is Kind.GROUP else Wire.VARINT


def can_be_packed(kind: Kind) -> bool:
    """Whether many values of this kind may be packed into one."""
    return wire_of(kind) in (Wire.VARINT, Wire.FIXED32, Wire.FIXED64)


def tag_of(number: int, wire: Wire) -> bytes:
    """Return the tag before a value."""
    return varint_of(number << 3 | wire)


def varint_of(value: int) -> bytes:
    """Encode a number of 64 bits, without zigzag. A negative one takes ten bytes."""
    if 0 <= value < 128:
        return _SHORT[value]
    left, septets = value & (1 << 64) - 1, bytearray()
    while left > 127:
        septets.append(left & 127 | 128)
        left >>= 7
    septets.append(left)
    return bytes(septets)


def sized(number: int, value: bytes | str) -> bytes:
    """Encode a field of bytes: tag, size and value."""
    data = value.encode() if isinstance(value, str) else value
    return tag_of(number, Wire.SIZED) + varint_of(len(data)) + data


@dataclass(frozen=True, slots=True)
class Field:
    """Field of a message."""

    name: str
    number: int
    kind: Kind
    type_name: str = ""
    """The full name of its message, group or enum."""
    repeated: bool = False
    packed: bool = False
    """Whether a writer of this schema packs the values. Readers accept both forms."""
    presence: bool = True
    """Whether an unwritten value can be told from a written default value."""
    required: bool = False
    """Whether a writer must write the field. Readers take it as optional."""
    oneof: int = -1
    """The number of its oneof in the message, or -1."""
    default: int | bytes | None = None
    """The default in a proto2 schema. A double is given as its bits, an enum as its number."""


@dataclass(frozen=True, slots=True)
class Message:
    """Message: fields in the order of their declaration."""

    name: str
    fields: tuple[Field, ...]
    is_entry: bool = False
    """Whether it is a map's entry, with a key and a value."""
    messages: tuple[str, ...] = ()
    """The names of the messages defined in it, in order."""

    def __str__(self) -> str:
        return f"message {self.name}"


@dataclass(frozen=True, slots=True)
class Enum:
    """Enum: names with numbers. Several names may share a number."""

    name: str
    values: tuple[tuple[str, int], ...]
    closed: bool
    """Whether a number without a name counts as not written, as in proto2."""

    def __str__(self) -> str:
        return f"enum {self.name}"


@dataclass(frozen=True, slots=True)
class Schema:
    """Types of a file and of the files that it imports."""

    messages: Mapping[str, Message]
    enums: Mapping[str, Enum]
    top: tuple[str, ...]
    """The names of the file's own top messages, in order."""

    def message(self, name: str) -> Message:
        """Return the message with this full name."""
        named = self.messages.get(name.removeprefix("."))
        if named is None or named.is_entry:
            known = ", ".join(name for name in self.top[:20]) or "no message"
            raise SchemaError("", f"there is no message {name!r:.200}", f"The file has {known}")
        return named

    def chosen(self, name: str | None) -> Message:
        """Return the message with this full name, or the first one of the file."""
        return self.message(name) if name else self.indexed(())

    def indexed(self, indexes: Sequence[int], *, entries: bool = False) -> Message:
        """Return the message at Confluent's message indexes: `[1, 0]` is the first in the second.

        Entries of maps are messages in descriptors, but not in texts. They have an index only with
        `entries`: Confluent's clients for Python and Go count them, the client for Java does not.
        """
        names, chosen = self.top, None
        for index in indexes or (0,):
            if not 0 <= index < len(names):
                shown = f"message indexes {list(indexes)[:20]}"
                expected = f"There are {len(names)} messages at the last of them"
                raise UnresolvableError("", shown, expected)
            chosen = self.messages[names[index]]
            names = chosen.messages if entries else self._without_entries(chosen)
        assert chosen is not None  # noqa: S101  # There is an index.
        return chosen

    def _without_entries(self, message: Message) -> tuple[str, ...]:
        return tuple(name for name in message.messages if not self.messages[name].is_entry)

    def indexes(self, name: str) -> tuple[int, ...]:
        """Return the message indexes of a message of the file itself, counted as in Java."""
        name = self.message(name).name
        way: list[int] = []
        names = self.top
        while True:
            for index, each in enumerate(names):
                if name == each or name.startswith(f"{each}."):
                    way.append(index)
                    names = self._without_entries(self.messages[each])
                    break
            else:
                expected = "Only messages of the file itself have indexes"
                raise SchemaError("", f"message {name} is imported", expected)
            if name == each:
                return tuple(way)
