"""The codec of all messages in all versions, compiled from their declarations.

The layout is https://kafka.apache.org/protocol, with KIP-482 for flexible versions and tagged
fields. For each struct and version the codec makes a list of functions once, one for each field.
"""

import struct
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NoReturn, TypeVar

from spark_kafka_source.errors import LocalError, ProtocolError, UnsupportedVersionError
from spark_kafka_source.protocol.declaration import (
    Array,
    Kind,
    Message,
    WireField,
    is_flexible,
    versions,
    wire_fields,
)
from spark_kafka_source.protocol.wire import (
    INT8,
    INT32,
    Number,
    Read,
    Reader,
    Write,
    Writer,
    length_reader,
    length_writer,
    write_unsigned_varint,
)

M = TypeVar("M", bound=Message)

# The byte before a nullable struct.
_NULL, _PRESENT = -1, 1
_read_presence = INT8.reader(flexible=True, nullable=False)
_write_presence = INT8.writer(flexible=True, nullable=False)


def encode(message: Message, version: int) -> bytes:
    """Encode a message in one version, without header.

    Raises `UnsupportedVersionError` if the version does not exist, or lacks a field that is set and
    not ignorable. Raises `LocalError` for a value of another type than its field.
    """
    out = Writer()
    encode_into(out, message, version)
    return b"".join(out.pieces())


def encode_into(out: Writer, message: Message, version: int) -> None:
    """Append the bytes of `encode` to `out`. On an error `out` may hold a part of them."""
    flexible = _check_version(type(message), version)
    _writer(type(message), version, flexible, nullable=False)(out, message)


def decode(message_type: type[M], version: int, data: bytes | memoryview) -> M:
    """Decode a message from all of `data`. Records are views of `data`. Raises `ProtocolError`."""
    message, rest = decode_prefix(message_type, version, data)
    if rest:
        what = f"{message_type.__name__} v{version}"
        raise ProtocolError(f"{what}: {len(rest)} bytes are left over after the message")
    return message


def decode_prefix(
    message_type: type[M], version: int, data: bytes | memoryview
) -> tuple[M, memoryview]:
    """Decode a message at the start of `data`. Also return the rest. Raises `ProtocolError`."""
    flexible = _check_version(message_type, version)
    reader = Reader(memoryview(data))
    try:
        message: M = _reader(message_type, version, flexible, nullable=False)(reader)
    except (ValueError, IndexError, struct.error) as error:
        # Short data shows up as a read past its end. So complete data needs no checks.
        reason = error if isinstance(error, ValueError) else "the data ends within a field"
        where = f"{message_type.__name__} v{version}, at byte {reader.position} of {len(data)}"
        raise ProtocolError(f"{where}: {reason}") from error
    return message, reader.data[reader.position :]


def _check_version(message_type: type[Message], version: int) -> bool:
    if version not in versions(message_type):
        problem = f"{message_type.__name__} has no version {version}"
        raise UnsupportedVersionError(f"{problem}; there are {versions(message_type)}")
    return is_flexible(message_type, version)


# -- reading -----------------------------------------------------------------------------------


@cache
def _struct_reader(struct_type: type, version: int, flexible: bool) -> Read:
    fields = wire_fields(struct_type)
    reads = [_field_reader(field, version, flexible) for field in fields]
    if not flexible:
        return lambda reader: struct_type(*[read(reader) for read in reads])
    tagged = {
        field.tag: (field.name, _value_reader(field, version, flexible))
        for field in fields
        if version in field.tagged
    }

    def read_struct(reader: Reader) -> Any:
        value = struct_type(*[read(reader) for read in reads])
        count = reader.unsigned_varint()
        if count:
            _read_tagged(reader, count, tagged, value)
        return value

    return read_struct


def _field_reader(field: WireField, version: int, flexible: bool) -> Read:
    if version in field.versions and version not in field.tagged:
        return _value_reader(field, version, flexible)
    default = field.default
    return lambda _: default()


def _value_reader(field: WireField, version: int, flexible: bool) -> Read:
    return _reader(field.kind, version, flexible, version in field.nullable)


def _reader(kind: Kind, version: int, flexible: bool, nullable: bool) -> Read:
    if isinstance(kind, Array):
        return _array_reader(kind.element, version, flexible, nullable)
    if isinstance(kind, type):
        read = _struct_reader(kind, version, flexible)
        return partial(_read_nullable, read) if nullable else read
    return kind.reader(flexible=flexible, nullable=nullable)


def _read_nullable(read: Read, reader: Reader) -> Any:
    presence = _read_presence(reader)
    if presence not in (_NULL, _PRESENT):
        raise ValueError(f"a struct that may be null begins with {presence}")
    return read(reader) if presence == _PRESENT else None


def _array_reader(element: Kind, version: int, flexible: bool, nullable: bool) -> Read:
    read_length = length_reader(INT32.layout, flexible=flexible, nullable=nullable)
    read_elements = _elements_reader(element, version, flexible)
    minimum_bytes = max(_minimum_bytes(element, version, flexible), 1)

    def read_array(reader: Reader) -> Any:
        count = read_length(reader)
        if count <= 0:
            return [] if count == 0 else None
        if count * minimum_bytes > reader.remaining:
            raise ValueError(f"{count} elements are announced, {reader.remaining} bytes are left")
        return read_elements(reader, count)

    return read_array


def _elements_reader(
    element: Kind, version: int, flexible: bool
) -> Callable[[Reader, int], list[Any]]:
    if isinstance(element, Number):
        return partial(_read_numbers, element.layout)
    read = _reader(element, version, flexible, nullable=False)
    return lambda reader, count: [read(reader) for _ in range(count)]


def _read_numbers(layout: struct.Struct, reader: Reader, count: int) -> list[Any]:
    position = reader.position
    reader.position += count * layout.size
    return list(struct.unpack_from(f">{count}{layout.format[-1]}", reader.data, position))


def _read_tagged(
    reader: Reader, count: int, tagged: dict[int | None, tuple[str, Read]], value: Any
) -> None:
    """Set the tagged fields that this package knows, and skip all others."""
    previous = -1
    for _ in range(count):
        tag, size = reader.unsigned_varint(), reader.unsigned_varint()
        if tag <= previous:
            raise ValueError(f"tag {tag} comes after tag {previous}")
        previous, start = tag, reader.position
        known = tagged.get(tag)
        if known is None:
            reader.take(size)
            continue
        setattr(value, known[0], known[1](reader))
        if reader.position - start != size:
            raise ValueError(f"tag {tag} announces {size} bytes, has {reader.position - start}")


def _minimum_bytes(kind: Kind, version: int, flexible: bool) -> int:
    """Return the fewest bytes of one value of this kind."""
    if isinstance(kind, Array):
        return 1 if flexible else INT32.layout.size
    if not isinstance(kind, type):
        return kind.minimum_bytes(flexible=flexible)
    return flexible + sum(
        _minimum_bytes_of_field(field, version, flexible)
        for field in wire_fields(kind)
        if version in field.versions and version not in field.tagged
    )


def _minimum_bytes_of_field(field: WireField, version: int, flexible: bool) -> int:
    is_nullable_struct = isinstance(field.kind, type) and version in field.nullable
    return 1 if is_nullable_struct else _minimum_bytes(field.kind, version, flexible)


# -- writing -----------------------------------------------------------------------------------


@cache
def _struct_writer(struct_type: type, version: int, flexible: bool) -> Write:
    fields = wire_fields(struct_type)
    must_be_default = [
        (field.name, field.default())
        for field in fields
        if version not in field.versions and not field.ignorable
    ]
    plain = [
        _field_writer(struct_type, field, version, flexible)
        for field in fields
        if version in field.versions and version not in field.tagged
    ]
    write_tagged = _tagged_writer(struct_type, version) if flexible else None

    def write_struct(out: Writer, value: Any) -> None:
        for name, default in must_be_default:
            if getattr(value, name) != default:
                raise UnsupportedVersionError(
                    f"{struct_type.__name__}.{name} is set, which version {version} does not have"
                )
        for write in plain:
            write(out, value)
        if write_tagged:
            write_tagged(out, value)

    return write_struct


def _field_writer(struct_type: type, field: WireField, version: int, flexible: bool) -> Write:
    name = field.name
    write = _writer(field.kind, version, flexible, version in field.nullable)

    def write_field(out: Writer, struct_value: Any) -> None:
        value = getattr(struct_value, name)
        try:
            write(out, value)
        except (ValueError, TypeError, AttributeError, struct.error) as error:
            _refuse(f"{struct_type.__name__}.{name} in version {version}", field, value, error)

    return write_field


def _refuse(where: str, field: WireField, value: object, error: Exception) -> NoReturn:
    # The text does not show the value: it may be a secret.
    if value is not None:
        raise LocalError(f"{where}: {error}") from error
    raise (UnsupportedVersionError if field.nullable else LocalError)(f"{where} cannot be null")


def _writer(kind: Kind, version: int, flexible: bool, nullable: bool) -> Write:
    if isinstance(kind, Array):
        return _array_writer(kind.element, version, flexible, nullable)
    if isinstance(kind, type):
        write = _struct_writer(kind, version, flexible)
        return partial(_write_nullable, write) if nullable else write
    return kind.writer(flexible=flexible, nullable=nullable)


def _write_nullable(write: Write, out: Writer, value: Any) -> None:
    _write_presence(out, _NULL if value is None else _PRESENT)
    if value is not None:
        write(out, value)


def _array_writer(element: Kind, version: int, flexible: bool, nullable: bool) -> Write:
    write_length = length_writer(INT32.layout, flexible=flexible)
    write = _writer(element, version, flexible, nullable=False)

    def write_array(out: Writer, values: Any) -> None:
        if values is None and nullable:
            write_length(out, -1)
            return
        write_length(out, len(values))
        for value in values:
            write(out, value)

    return write_array


def _tagged_writer(struct_type: type, version: int) -> Write:
    fields = [field for field in wire_fields(struct_type) if version in field.tagged]
    # Kafka omits default values, and requires ascending tags.
    tagged = [
        (field.tag or 0, field.name, field.default(), write)
        for field in sorted(fields, key=lambda field: field.tag or 0)
        for write in [_field_writer(struct_type, field, version, flexible=True)]
    ]

    def write_tagged(out: Writer, value: Any) -> None:
        present = [row for row in tagged if getattr(value, row[1]) != row[2]]
        write_unsigned_varint(out, len(present))
        for tag, _, _, write in present:
            tail = Writer()
            write(tail, value)
            body = b"".join(tail.pieces())
            write_unsigned_varint(out, tag)
            write_unsigned_varint(out, len(body))
            out += body

    return write_tagged
