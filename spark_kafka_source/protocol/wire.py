"""Primitive types of Kafka's protocol, and their bytes.

See https://kafka.apache.org/protocol#protocol_types, and KIP-482 for the compact forms of flexible
versions. Bad bytes raise `ValueError`, `IndexError` or `struct.error` here. The codec, which knows
the message, turns them into the package's own error.
"""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from typing import Any

ZERO_UUID = uuid.UUID(int=0)
"""Kafka's value for a missing id."""

_INT16, _INT32 = Struct(">h"), Struct(">i")
_UINT32_MAX = 0xFFFFFFFF
_WORTH_A_PIECE_BYTES = 4096


class Reader:
    """Position in the bytes of one message. It refuses to take bytes past their end."""

    __slots__ = ("data", "position")

    def __init__(self, data: memoryview) -> None:
        self.data, self.position = data, 0

    @property
    def remaining(self) -> int:
        """The number of bytes not read yet."""
        return len(self.data) - self.position

    def take(self, length: int) -> memoryview:
        """Return the next `length` bytes as a view."""
        start, end = self.position, self.position + length
        if end > len(self.data):
            raise ValueError(f"{length} bytes are announced, {self.remaining} are left")
        self.position = end
        return self.data[start:end]

    def unsigned_varint(self) -> int:
        """Read an unsigned 32-bit number: seven bits a byte, the lowest first."""
        value = 0
        for shift in (0, 7, 14, 21, 28):
            byte = self.data[self.position]
            self.position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
        else:
            raise ValueError("a varint is longer than 5 bytes")
        if value > _UINT32_MAX:
            raise ValueError(f"the varint {value} is larger than 32 bits")
        return value


class Writer(bytearray):
    """Bytes of one message so far. `pieces` returns them with the uncopied pieces in their places.

    Never shorten it: the place of an uncopied piece is a count of the bytes before it.
    """

    __slots__ = ("_apart",)

    def __init__(self, data: bytes = b"") -> None:
        super().__init__(data)
        self._apart: list[tuple[int, memoryview]] = []

    def append_uncopied(self, data: memoryview) -> None:
        """Append `data` as a piece of its own. Small data is copied, which is cheaper."""
        if len(data) < _WORTH_A_PIECE_BYTES:
            self += data
        else:
            self._apart.append((len(self), data))

    def pieces(self) -> list[memoryview]:
        """Return the message, cut around the uncopied pieces.

        Nothing can be appended after this.
        """
        copied, start = memoryview(self), 0
        pieces: list[memoryview] = []
        for position, data in self._apart:
            pieces += (copied[start:position], data)
            start = position
        return [piece for piece in (*pieces, copied[start:]) if piece]


Read = Callable[[Reader], Any]
Write = Callable[[Writer, Any], None]


def write_unsigned_varint(out: bytearray, value: int) -> None:
    """Append an unsigned varint, as `Reader.unsigned_varint` reads it."""
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def length_reader(prefix: Struct, *, flexible: bool, nullable: bool) -> Callable[[Reader], int]:
    """Return a function that reads a length or a count. It returns -1 only if `nullable`."""
    lowest = -1 if nullable else 0
    size, unpack_from = prefix.size, prefix.unpack_from

    def read_fixed(reader: Reader) -> int:
        length: int = unpack_from(reader.data, reader.position)[0]
        reader.position += size
        if length < lowest:
            raise ValueError(f"the length {length}, where {lowest} is the least")
        return length

    def read_compact(reader: Reader) -> int:
        # Fast path: nearly all lengths take one byte.
        length = reader.data[reader.position] - 1
        if length < 0x7F:
            reader.position += 1
        else:
            length = reader.unsigned_varint() - 1
        if length < lowest:
            raise ValueError("null, where there must be a value")
        return length

    return read_compact if flexible else read_fixed


def length_writer(prefix: Struct, *, flexible: bool) -> Callable[[bytearray, int], None]:
    """Return a function that writes a length for `length_reader`."""

    def write_fixed(out: bytearray, length: int) -> None:
        out += prefix.pack(length)

    def write_compact(out: bytearray, length: int) -> None:
        write_unsigned_varint(out, length + 1)

    return write_compact if flexible else write_fixed


@dataclass(frozen=True, slots=True)
class Number:
    """Type of fixed width, in the format of `struct`."""

    name: str
    layout: Struct
    default: bool | int | float = 0

    def minimum_bytes(self, *, flexible: bool) -> int:
        """Return its width."""
        return self.layout.size

    def reader(self, *, flexible: bool, nullable: bool) -> Read:
        """Return a function that reads one value."""
        size, unpack_from = self.layout.size, self.layout.unpack_from

        def read(reader: Reader) -> Any:
            position = reader.position
            reader.position = position + size
            return unpack_from(reader.data, position)[0]

        return read

    def writer(self, *, flexible: bool, nullable: bool) -> Write:
        """Return a function that appends one value."""
        pack = self.layout.pack

        def write(out: Writer, value: Any) -> None:
            out += pack(value)

        return write


@dataclass(frozen=True, slots=True)
class Identifier:
    """Sixteen bytes: the id of a topic or a directory."""

    name: str = "uuid"
    default: uuid.UUID = ZERO_UUID

    def minimum_bytes(self, *, flexible: bool) -> int:
        """Return its width."""
        return 16

    def reader(self, *, flexible: bool, nullable: bool) -> Read:
        """Return a function that reads one value."""
        return lambda reader: uuid.UUID(bytes=bytes(reader.take(16)))

    def writer(self, *, flexible: bool, nullable: bool) -> Write:
        """Return a function that appends one value."""

        def write(out: Writer, value: uuid.UUID) -> None:
            out += value.bytes

        return write


def _text(data: memoryview) -> str:
    return str(data, "utf-8")


def _utf8(value: str) -> bytes:
    return value.encode()


def _unchanged(data: Any) -> Any:
    return data


@dataclass(frozen=True, slots=True)
class Sized:
    """A length, then that many bytes."""

    name: str
    prefix: Struct
    default: str | bytes | None
    from_wire: Callable[[memoryview], Any]
    to_wire: Callable[[Any], Any]
    never_compact: bool = False

    def minimum_bytes(self, *, flexible: bool) -> int:
        """Return the least width of its length."""
        return 1 if self._compact(flexible) else self.prefix.size

    def reader(self, *, flexible: bool, nullable: bool) -> Read:
        """Return a function that reads one value, or None."""
        compact, from_wire = self._compact(flexible), self.from_wire
        read_length = length_reader(self.prefix, flexible=compact, nullable=nullable)

        def read(reader: Reader) -> Any:
            length = read_length(reader)
            return None if length < 0 else from_wire(reader.take(length))

        return read

    def writer(self, *, flexible: bool, nullable: bool) -> Write:
        """Return a function that appends one value, or None if `nullable`."""
        write_length = length_writer(self.prefix, flexible=self._compact(flexible))
        to_wire = self.to_wire

        def write(out: Writer, value: Any) -> None:
            if value is None and nullable:
                write_length(out, -1)
                return
            data = to_wire(value)
            write_length(out, len(data))
            out += data

        return write

    def _compact(self, flexible: bool) -> bool:
        return flexible and not self.never_compact


@dataclass(frozen=True, slots=True)
class Uncopied:
    """A length, then that many bytes. They are not copied, neither when read nor when written."""

    name: str
    view: Sized
    default: None = None

    def minimum_bytes(self, *, flexible: bool) -> int:
        """Return the least width of its length."""
        return self.view.minimum_bytes(flexible=flexible)

    def reader(self, *, flexible: bool, nullable: bool) -> Read:
        """Return a function that reads one value as a view of the message, or None."""
        return self.view.reader(flexible=flexible, nullable=nullable)

    def writer(self, *, flexible: bool, nullable: bool) -> Write:
        """Return a function that appends a value, whole or in pieces, or None if `nullable`."""
        write_length = length_writer(self.view.prefix, flexible=flexible)

        def write(out: Writer, value: Any) -> None:
            if value is None and nullable:
                write_length(out, -1)
                return
            pieces = [memoryview(each) for each in (value if type(value) is tuple else (value,))]
            write_length(out, sum(map(len, pieces)))
            for piece in pieces:
                out.append_uncopied(piece)

        return write


BOOLEAN = Number("bool", Struct(">?"), default=False)
INT8 = Number("int8", Struct(">b"))
INT16 = Number("int16", _INT16)
UINT16 = Number("uint16", Struct(">H"))
INT32 = Number("int32", _INT32)
UINT32 = Number("uint32", Struct(">I"))
INT64 = Number("int64", Struct(">q"))
FLOAT64 = Number("float64", Struct(">d"), default=0.0)
UUID = Identifier()
STRING = Sized("string", _INT16, "", _text, _utf8)
NEVER_COMPACT_STRING = Sized("string", _INT16, "", _text, _utf8, never_compact=True)
BYTES = Sized("bytes", _INT32, b"", bytes, _unchanged)
# Records are not copied: they stay in the response, or in the memory of the request's caller.
RECORDS = Uncopied("records", Sized("records", _INT32, None, _unchanged, _unchanged))

Records = bytes | bytearray | memoryview
"""Record batches. Decoding returns a `memoryview`; encoding takes any of these types."""

RecordsInPieces = Records | tuple[Records, ...]
"""Record batches to encode, whole or in pieces, which are not copied together."""

Primitive = Number | Identifier | Sized | Uncopied
