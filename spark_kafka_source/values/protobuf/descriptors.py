"""Schemas from a serialized `FileDescriptorSet`, as `protoc --descriptor_set_out` writes it.

A descriptor set is itself a Protobuf message. Only a few of its fields matter here:
https://github.com/protocolbuffers/protobuf/blob/v36.0/src/google/protobuf/descriptor.proto.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import MappingProxyType

from spark_kafka_source.values.errors import SchemaError, quoted
from spark_kafka_source.values.protobuf.schema import (
    MESSAGES,
    Enum,
    Field,
    Kind,
    Message,
    Schema,
    can_be_packed,
)
from spark_kafka_source.values.protobuf.wire import WireError, wire_fields

MAX_DESCRIPTOR_BYTES = 8 << 20
MAX_DEPTH = 64
"""The deepest nesting of message definitions."""
MAX_NAME_CHARACTERS = 1024
MAX_NAMES = 200_000
"""The most messages, fields, enums and enum values, together."""
MAX_NUMBER = (1 << 29) - 1

_REQUIRED, _REPEATED = 2, 3
_LAST = "All imports are in the descriptor set, or are references of the schema"
_EDITIONS = (1000, 1001)
"""The editions 2023 and 2024, which do not differ in the features used here."""


@dataclass(frozen=True, slots=True)
class Features:
    """Features that can differ between files, https://protobuf.dev/editions/features/."""

    implicit: bool = False
    required: bool = False
    closed: bool = False
    packed: bool = True
    delimited: bool = False

    def changed(self, options: "Part", number: int) -> "Features":
        """Return the features of an inner element.

        `number` is the field of its options for them.
        """
        changes = options.part(number)
        presence, enum = changes.number(1), changes.number(2)
        encoding, delimited = changes.number(3), changes.number(5)
        return Features(
            presence == 2 if presence else self.implicit,
            presence == 3 if presence else self.required,
            enum == 2 if enum else self.closed,
            encoding == 1 if encoding else self.packed,
            delimited == 2 if delimited else self.delimited,
        )


_PROTO2 = Features(closed=True, packed=False)
_PROTO3 = Features(implicit=True)


class Part:
    """Message of a descriptor: its fields by number."""

    def __init__(self, data: bytes) -> None:
        self._fields: dict[int, list[int | bytes]] = {}
        for number, value in wire_fields(data):
            self._fields.setdefault(number, []).append(value)

    def number(self, number: int, default: int = 0) -> int:
        """Return the last integer of this field, of 32 bits."""
        value = self._fields.get(number, [default])[-1]
        if not isinstance(value, int):
            raise WireError(f"field {number} is no integer")
        low = value & 0xFFFFFFFF
        return low - (1 << 32) if low >> 31 else low

    def has(self, number: int) -> bool:
        """Whether the field was written."""
        return number in self._fields

    def octets(self, number: int) -> bytes:
        """Return the last bytes of this field, or empty bytes."""
        value = self._fields.get(number, [b""])[-1]
        if not isinstance(value, bytes):
            raise WireError(f"field {number} is an integer")
        return value

    def all(self, number: int) -> Iterator[bytes]:
        """Yield all bytes of a repeated field."""
        for value in self._fields.get(number, []):
            if not isinstance(value, bytes):
                raise WireError(f"field {number} is an integer")
            yield value

    def part(self, number: int) -> "Part":
        """Return the inner message, merged from all of this field."""
        return Part(b"".join(self.all(number)))

    def parts(self, number: int) -> Iterator["Part"]:
        """Yield all inner messages of a repeated field."""
        return map(Part, self.all(number))

    def text(self, number: int) -> str:
        """Return the text of this field."""
        try:
            return self.octets(number).decode()
        except UnicodeDecodeError as error:
            raise WireError(f"field {number} is no text") from error


def parse_descriptors(data: bytes) -> Schema:
    """Return the types of all files. The last file is the main one, which imports the others.

    Raises `SchemaError` for bytes that are not a descriptor set, and for an unusable set.
    """
    if len(data) > MAX_DESCRIPTOR_BYTES:
        found = f"a descriptor set of {len(data)} bytes"
        raise SchemaError("", found, f"Use at most {MAX_DESCRIPTOR_BYTES}")
    files = _Files()
    try:
        for file in Part(data).parts(1):
            files.file(file)
    except WireError as error:
        expected = "It is what `protoc --descriptor_set_out --include_imports` writes"
        raise SchemaError("", f"no descriptor set: {error}", expected) from error
    return files.schema()


@dataclass(frozen=True, slots=True)
class _Scope:
    """Properties of a message that its fields need."""

    name: str
    features: Features
    oneofs: tuple[Features, ...]
    is_entry: bool


class _Files:
    """Reader of all files. At the end it checks that all references have a target."""

    def __init__(self) -> None:
        self._messages: dict[str, Message] = {}
        self._enums: dict[str, Enum] = {}
        self._defaults: list[tuple[str, int, str]] = []
        self._top: tuple[str, ...] = ()
        self._names = 0

    def file(self, file: Part) -> None:
        package = file.text(2)
        features = _file_features(file)
        for enum in file.parts(5):
            self._enum(enum, package, features)
        self._top = tuple(self._message(message, package, features, 1) for message in file.parts(4))

    def schema(self) -> Schema:
        """Check all references, and return the schema."""
        for message in self._messages.values():
            if message.is_entry:
                _check_entry(message)
            for field in message.fields:
                self._check_reference(message, field)
        for name, place, text in self._defaults:
            message = self._messages[name]
            field = message.fields[place]
            default = self._default(field, text, f"{name}.{field.name}")
            fields = list(message.fields)
            fields[place] = replace(field, default=default)
            self._messages[name] = replace(message, fields=tuple(fields))
        messages, enums = MappingProxyType(self._messages), MappingProxyType(self._enums)
        return Schema(messages, enums, self._top)

    def _name(self, part: Part, scope: str) -> str:
        name = part.text(1)
        self._names += 1
        if self._names > MAX_NAMES:
            raise SchemaError(scope, f"more than {MAX_NAMES} names", "Use a smaller set")
        if not name.isidentifier() or len(name) > MAX_NAME_CHARACTERS:
            raise SchemaError(scope, f"the name {quoted(name)}", "Names are letters and digits")
        return name

    def _full_name(self, part: Part, scope: str) -> str:
        name = self._name(part, scope)
        full = f"{scope}.{name}" if scope else name
        if full in self._messages or full in self._enums:
            raise SchemaError(scope, f"{quoted(full)} is defined twice", _LAST)
        return full

    def _enum(self, part: Part, scope: str, features: Features) -> None:
        full = self._full_name(part, scope)
        features = features.changed(part.part(3), 7)
        values = tuple((self._name(each, full), each.number(2)) for each in part.parts(2))
        if not values:
            raise SchemaError(full, "an enum without values", "An enum has at least one")
        self._enums[full] = Enum(full, values, features.closed)

    def _message(self, part: Part, scope: str, features: Features, depth: int) -> str:
        full = self._full_name(part, scope)
        if depth > MAX_DEPTH:
            raise SchemaError(full, "messages nested too deeply", f"Nest at most {MAX_DEPTH}")
        options = part.part(7)
        if options.number(1):
            raise SchemaError(
                full, "the wire format of message sets", "This format is not supported"
            )
        features = features.changed(options, 12)
        is_entry = bool(options.number(7))
        self._messages[full] = Message(full, (), is_entry)
        for enum in part.parts(4):
            self._enum(enum, full, features)
        within = tuple(self._message(each, full, features, depth + 1) for each in part.parts(3))
        oneofs = tuple(features.changed(each.part(2), 1) for each in part.parts(8))
        of = _Scope(full, features, oneofs, is_entry)
        fields = tuple(self._field(each, place, of) for place, each in enumerate(part.parts(2)))
        _check_fields(full, fields)
        self._messages[full] = Message(full, fields, is_entry, within)
        return full

    def _field(self, part: Part, place: int, of: _Scope) -> Field:
        name, number, type_name = self._name(part, of.name), part.number(3), part.text(6)
        path = f"{of.name}.{name}"
        if part.number(5) not in set(Kind):
            raise SchemaError(path, f"the type {part.number(5)}", "protoc writes one from 1 to 18")
        kind, options = Kind(part.number(5)), part.part(8)
        oneof = part.number(9) if part.has(9) else -1
        if oneof >= len(of.oneofs) or oneof < -1:
            raise SchemaError(path, f"oneof {oneof}", f"{of.name} has {len(of.oneofs)}")
        features = (of.oneofs[oneof] if oneof >= 0 else of.features).changed(options, 21)
        repeated = part.number(4) == _REPEATED
        if kind is Kind.MESSAGE and features.delimited and not of.is_entry:
            kind = Kind.GROUP
        packed = bool(options.number(2)) if options.has(2) else features.packed
        if part.has(7):
            self._defaults.append((of.name, place, part.text(7)))
        return Field(
            name,
            number,
            kind,
            type_name.removeprefix("."),
            repeated,
            repeated and packed and can_be_packed(kind),
            not repeated and (kind in MESSAGES or oneof >= 0 or not features.implicit),
            part.number(4) == _REQUIRED or (features.required and oneof < 0 and not repeated),
            # A proto3 `optional` has a oneof of its own, only to record its presence.
            -1 if part.number(17) else oneof,
        )

    def _check_reference(self, message: Message, field: Field) -> None:
        path = f"{message.name}.{field.name}"
        if field.kind in MESSAGES:
            there = field.type_name in self._messages
            entry = there and self._messages[field.type_name].is_entry
            if entry and not (field.repeated and field.kind is Kind.MESSAGE):
                # File features turn all messages into groups, except those of maps.
                self._ungrouped(message, field)
        elif field.kind is Kind.ENUM:
            there = field.type_name in self._enums
        else:
            return
        if not there:
            raise SchemaError(path, f"there is no type {quoted(field.type_name)}", _LAST)

    def _ungrouped(self, message: Message, field: Field) -> None:
        if not field.repeated:
            found = f"{field.type_name} is the entry of a map"
            raise SchemaError(f"{message.name}.{field.name}", found, "A map is repeated")
        fields = tuple(
            replace(each, kind=Kind.MESSAGE) if each.number == field.number else each
            for each in self._messages[message.name].fields
        )
        self._messages[message.name] = replace(self._messages[message.name], fields=fields)

    def _default(self, field: Field, text: str, path: str) -> int | bytes:
        try:
            return self._default_of(field, text)
        except (ValueError, KeyError, OverflowError) as error:
            found = f"the default {quoted(text)} of a field of {field.kind}"
            raise SchemaError(path, found, "It is a value of the field") from error

    def _default_of(self, field: Field, text: str) -> int | bytes:
        match field.kind:
            case Kind.ENUM:
                return dict(self._enums[field.type_name].values)[text]
            case Kind.BOOL:
                return {"true": 1, "false": 0}[text]
            case Kind.STRING:
                return text.encode()
            case Kind.BYTES:
                return unescaped(text)
            case Kind.DOUBLE | Kind.FLOAT:
                return int(struct.unpack("<q", struct.pack("<d", float(text)))[0])
            case Kind.MESSAGE | Kind.GROUP:
                raise ValueError(text)
            case _:
                number = int(text[:21])
                if not -1 << 63 <= number < 1 << 64:
                    raise OverflowError(text)
                return number - (1 << 64) if number >> 63 == 1 else number


def _file_features(file: Part) -> Features:
    """Return the features of a file, from its syntax or edition and its options."""
    match file.text(12):
        case "" | "proto2":
            return _PROTO2
        case "proto3":
            return _PROTO3
        case "editions" if file.number(14) in _EDITIONS:
            return Features().changed(file.part(8), 50)
        case syntax:
            found = f"the syntax {quoted(syntax)}, edition {file.number(14)}, of {file.text(1)!r}"
            raise SchemaError("", found, "proto2, proto3 and the editions 2023 and 2024 are read")


def _check_fields(name: str, fields: tuple[Field, ...]) -> None:
    numbers, names = set[int](), set[str]()
    for field in fields:
        path = f"{name}.{field.name}"
        if not 0 < field.number <= MAX_NUMBER:
            raise SchemaError(path, f"the number {field.number}", f"It is from 1 to {MAX_NUMBER}")
        if field.number in numbers or field.name in names:
            raise SchemaError(path, "its name or number is another field's", "Each has its own")
        numbers.add(field.number)
        names.add(field.name)


_KEYS = set(Kind) - {*MESSAGES, Kind.ENUM, Kind.BYTES, Kind.DOUBLE, Kind.FLOAT}


def _check_entry(message: Message) -> None:
    """Check that an entry has a key and a value: the fields 1 and 2."""
    fields = {field.number: field for field in message.fields if not field.repeated}
    if len(message.fields) != 2 or fields.keys() != {1, 2} or fields[1].kind not in _KEYS:
        raise SchemaError(message.name, "no entry of a map", "It has a key and a value")


_ESCAPES = {
    "n": 10, "r": 13, "t": 9, '"': 34, "'": 39, "\\": 92, "a": 7, "b": 8, "f": 12, "v": 11, "?": 63,
}  # fmt: skip


def unescaped(text: str) -> bytes:
    """Undo protoc's escapes, as in C: octal, hexadecimal or a letter after `\\`."""
    octets = bytearray()
    at = 0
    while at < len(text):
        if text[at] != "\\":
            octets += text[at].encode()
            at += 1
        elif text[at + 1 : at + 2] in _ESCAPES:
            octets.append(_ESCAPES[text[at + 1]])
            at += 2
        else:
            hexadecimal = text[at + 1 : at + 2] in ("x", "X")
            digits = text[at + 2 : at + 4] if hexadecimal else text[at + 1 : at + 4]
            octets.append(int(digits, 16 if hexadecimal else 8))
            at += 4
    return bytes(octets)
