"""Random Protobuf files, random evolutions, and valid, odd and broken bytes of messages."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from google.protobuf import (
    any_pb2,
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    message_factory,
    timestamp_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor import FieldDescriptor as F

from tests.values.protobuf_wire import parts, tag, varint

FieldProto = descriptor_pb2.FieldDescriptorProto
SCALARS = [kind for kind in range(1, 19) if kind not in (F.TYPE_GROUP, F.TYPE_MESSAGE, F.TYPE_ENUM)]
ALIKE = [
    (F.TYPE_INT32, F.TYPE_INT64, F.TYPE_UINT32, F.TYPE_UINT64, F.TYPE_BOOL),
    (F.TYPE_SINT32, F.TYPE_SINT64), (F.TYPE_FIXED32, F.TYPE_SFIXED32),
    (F.TYPE_FIXED64, F.TYPE_SFIXED64), (F.TYPE_STRING, F.TYPE_BYTES), (F.TYPE_FLOAT,),
    (F.TYPE_DOUBLE,),
]  # fmt: skip
"""The kinds that may become each other, by Google's guide."""
ALIKE_OF = {kind: kinds for kinds in ALIKE for kind in kinds}
KEYS = [kind for kind in SCALARS if kind not in (F.TYPE_BYTES, F.TYPE_DOUBLE, F.TYPE_FLOAT)]
IMPORTED = (any_pb2, duration_pb2, timestamp_pb2, wrappers_pb2)
WELL_KNOWN = ("Timestamp", "Duration", "Int64Value", "StringValue", "Any")
SYNTAXES = ("proto2", "proto3", "editions")
NUMBERS = [*range(1, 19), 2047, 2048, 70_000, 40_000_000, (1 << 29) - 1]


def file_set(file: Any) -> descriptor_pb2.FileDescriptorSet:
    """Return the file with its imports."""
    found = descriptor_pb2.FileDescriptorSet()
    for module in IMPORTED:
        found.file.add().ParseFromString(module.DESCRIPTOR.serialized_pb)
    found.file.append(file)
    return found


def message_class(file: Any, name: str = "p.M0") -> Any:
    pool = descriptor_pool.DescriptorPool()
    for each in file_set(file).file:
        pool.Add(each)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


@dataclass
class Files:
    """A generator of files. The main message is `M0`. A message may contain later ones."""

    random: Random
    syntax: str = ""

    def file(self) -> Any:
        self.syntax = self.syntax or self.random.choice(SYNTAXES)
        file = descriptor_pb2.FileDescriptorProto(name="f.proto", package="p", syntax=self.syntax)
        file.dependency.extend(module.DESCRIPTOR.name for module in IMPORTED)
        if self.syntax == "editions":
            file.edition = descriptor_pb2.EDITION_2023
        self.enum(file.enum_type.add(name="E"), "E", True)
        count = self.random.randint(1, 4)
        for number in range(count):
            message = file.message_type.add(name=f"M{number}")
            self.enum(message.enum_type.add(name="I"), f"I{number}", False)
            for _ in range(self.random.randint(0 if number else 1, 6)):
                self.field(message, number, count)
        return file

    def enum(self, enum: Any, prefix: str, zero: bool) -> None:
        numbers = self.random.sample([1, 2, 3, 7, -1, -(1 << 31), (1 << 31) - 1], 3)
        for place, number in enumerate([0, *numbers]):
            enum.value.add(name=f"{prefix}{place}", number=number)

    def field(self, message: Any, place: int, count: int) -> None:
        free = [n for n in NUMBERS if n not in {each.number for each in message.field}]
        small = [n for n in free if n < 16]
        number = self.random.choice(small if small and self.random.random() < 0.8 else free)
        field = message.field.add(name=f"f{len(message.field)}", number=number)
        field.label = F.LABEL_OPTIONAL
        self.kind(field, place, count)
        match self.random.choice(["one", "one", "many", "oneof", "map", "optional", "group"]):
            case "many":
                field.label = F.LABEL_REPEATED
                packable = field.type not in (F.TYPE_STRING, F.TYPE_BYTES, F.TYPE_MESSAGE)
                if packable and self.syntax != "editions" and self.random.random() < 0.5:
                    field.options.packed = self.random.random() < 0.5
            case "oneof":
                if not message.oneof_decl:
                    message.oneof_decl.add(name="choice")
                if self.real_oneof(message):
                    field.oneof_index = 0
            case "map":
                self.map(message, field)
            case "optional" if self.syntax == "proto3":
                self.optional(message, field)
            case "group" if field.type == F.TYPE_MESSAGE and self.syntax == "editions":
                field.options.features.message_encoding = 2
        if message.oneof_decl and not any(each.HasField("oneof_index") for each in message.field):
            del message.oneof_decl[:]
        if self.syntax == "proto2" and field.label == F.LABEL_OPTIONAL:
            self.default(field)
        if self.syntax == "editions" and self.random.random() < 0.2:
            self.implicit(field)

    def optional(self, message: Any, field: Any) -> None:
        """Make a field optional in proto3. Its synthetic oneof comes after the other oneofs."""
        if message.oneof_decl:
            field.proto3_optional = True
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{field.name}")
        else:
            message.oneof_decl.add(name="choice")
            field.oneof_index = 0

    def real_oneof(self, message: Any) -> bool:
        return not message.oneof_decl[0].name.startswith("_")

    def implicit(self, field: Any) -> None:
        """Give the field implicit presence, as in proto3."""
        if (
            field.label == F.LABEL_OPTIONAL
            and not field.HasField("oneof_index")
            and field.type not in (F.TYPE_MESSAGE, F.TYPE_ENUM)
        ):
            field.options.features.field_presence = 2

    def kind(self, field: Any, place: int, count: int) -> None:
        after = [f".p.M{number}" for number in range(place + 1, count)]
        match self.random.choice(["scalar", "scalar", "scalar", "message", "enum", "known"]):
            case "message" if after:
                field.type, field.type_name = F.TYPE_MESSAGE, self.random.choice(after)
            case "enum":
                field.type = F.TYPE_ENUM
                field.type_name = self.random.choice([".p.E", f".p.M{place}.I"])
            case "known":
                field.type = F.TYPE_MESSAGE
                field.type_name = f".google.protobuf.{self.random.choice(WELL_KNOWN)}"
            case _:
                field.type = self.random.choice(SCALARS)

    def map(self, message: Any, field: Any) -> None:
        """Turn the field into a map. The values have the field's former type."""
        name = f"{field.name.upper()}Entry"
        entry = message.nested_type.add(name=name)
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, label=F.LABEL_OPTIONAL, type=self.random.choice(KEYS))
        value = entry.field.add(name="value", number=2, label=F.LABEL_OPTIONAL, type=field.type)
        if field.HasField("type_name"):
            value.type_name = field.type_name
        field.label, field.type = F.LABEL_REPEATED, F.TYPE_MESSAGE
        field.type_name = f".p.{message.name}.{name}"

    def default(self, field: Any) -> None:
        if self.random.random() < 0.5 or field.type == F.TYPE_MESSAGE:
            return
        values = {F.TYPE_STRING: "né", F.TYPE_BYTES: r"\377a\n", F.TYPE_BOOL: "true"}
        if field.type == F.TYPE_ENUM:
            prefix = "E" if field.type_name == ".p.E" else f"I{field.type_name[4]}"
            field.default_value = f"{prefix}2"
        elif field.type in (F.TYPE_DOUBLE, F.TYPE_FLOAT):
            field.default_value = self.random.choice(["1.5", "-inf", "nan", "0"])
        else:
            field.default_value = values.get(field.type, "7")


def evolved(random: Random, file: Any, *, alike: bool = True) -> Any:
    """Return a file whose messages lack some fields, and have other types or counts for some.

    If `alike`, the other types are those that Google's guide allows.
    """
    found = descriptor_pb2.FileDescriptorProto.FromString(file.SerializeToString())
    for message in found.message_type:
        for place in reversed(range(len(message.field))):
            field = message.field[place]
            if random.random() < 0.2 and not field.HasField("oneof_index"):
                del message.field[place]
            elif random.random() < 0.2 and field.type in SCALARS and not field.default_value:
                field.type = random.choice(ALIKE_OF[field.type] if alike else SCALARS)
                field.options.ClearField("packed")
            elif random.random() < 0.3 and _may_be_one_or_many(field):
                many = field.label == F.LABEL_REPEATED
                field.label = F.LABEL_OPTIONAL if many else F.LABEL_REPEATED
                if file.syntax == "editions":
                    field.options.features.ClearField("field_presence")
    return found


def _may_be_one_or_many(field: Any) -> bool:
    is_sized = field.type in (F.TYPE_STRING, F.TYPE_BYTES, F.TYPE_MESSAGE)
    is_single = field.HasField("oneof_index") or field.default_value
    return is_sized and not is_single and not field.type_name.endswith("Entry")


def filled(random: Random, message: Any, depth: int = 0) -> Any:
    """Return the message with values in most fields."""
    for field in message.DESCRIPTOR.fields:
        if random.random() < 0.3 + 0.1 * depth:
            continue
        entry = field.message_type and field.message_type.GetOptions().map_entry
        if entry:
            _fill_map(random, message, field, depth)
        elif field.is_repeated:
            many = getattr(message, field.name)
            for _ in range(random.choice([0, 1, 2, 5, 20])):
                if field.message_type:
                    filled(random, many.add(), depth + 1)
                else:
                    many.append(value(random, field))
        elif field.message_type:
            inner = getattr(message, field.name)
            inner.SetInParent()
            filled(random, inner, depth + 1)
        else:
            setattr(message, field.name, value(random, field))
    return message


def _fill_map(random: Random, message: Any, field: Any, depth: int) -> None:
    key, item = (field.message_type.fields_by_name[name] for name in ("key", "value"))
    many = getattr(message, field.name)
    for _ in range(random.randint(0, 3)):
        if item.message_type:
            filled(random, many[value(random, key)], depth + 1)
        else:
            many[value(random, key)] = value(random, item)


_BITS = {
    F.TYPE_INT32: (32, True), F.TYPE_SINT32: (32, True), F.TYPE_SFIXED32: (32, True),
    F.TYPE_UINT32: (32, False), F.TYPE_FIXED32: (32, False),
    F.TYPE_INT64: (64, True), F.TYPE_SINT64: (64, True), F.TYPE_SFIXED64: (64, True),
    F.TYPE_UINT64: (64, False), F.TYPE_FIXED64: (64, False),
}  # fmt: skip


def value(random: Random, field: Any) -> Any:
    """Return a random value of a scalar field."""
    if field.type in _BITS:
        bits, signed = _BITS[field.type]
        number = random.choice([0, 1, 127, 128, 300, random.getrandbits(bits), (1 << bits) - 1])
        return number - (1 << bits) if signed and number >> (bits - 1) else number
    match field.type:
        case F.TYPE_BOOL:
            return random.random() < 0.5
        case F.TYPE_STRING:
            return random.choice(["", "a", "né", "\U0001f600" * 40, "k" * 130])
        case F.TYPE_BYTES:
            return random.randbytes(random.choice([0, 1, 3, 200]))
        case F.TYPE_ENUM:
            return random.choice(field.enum_type.values).number
    return random.choice([0.0, -0.0, 1.5, -1e30, float("inf"), float("nan")])


def odd(random: Random, data: bytes, descriptor: Any, depth: int = 0) -> bytes:
    """Return the fields in another order, some twice, with unknown fields between them."""
    found = [b"".join(_odd_field(random, each, descriptor, depth)) for each in parts(data)]
    if random.random() < 0.5:
        random.shuffle(found)
    if found and random.random() < 0.4:
        found.append(random.choice(found))
    if random.random() < 0.3:
        found.insert(random.randint(0, len(found)), unknown(random))
    return b"".join(found)


def _odd_field(
    random: Random, part: tuple[int, int, Any], descriptor: Any, depth: int
) -> Iterator[bytes]:
    number, wire, content = part
    field = descriptor.fields_by_number.get(number) if descriptor else None
    inner = field.message_type if field else None
    match wire:
        case 0 if random.random() < 0.1:
            yield tag(number, 0) + varint(content, longer=random.randint(0, 3))
        case 0:
            yield tag(number, 0) + varint(content)
        case 2 if inner and depth < 5:
            data = odd(random, content, inner, depth + 1)
            yield tag(number, 2) + varint(len(data)) + data
        case 2 if field and field.is_repeated and field.type == F.TYPE_INT32 and content[-1] < 128:
            # Split some of the packed values into single ones.
            if random.random() < 0.5:
                yield tag(number, 2) + varint(len(content)) + content
            yield tag(number, 0) + varint(5)
            yield tag(number, 2) + b"\0"
        case 2:
            yield tag(number, 2) + varint(len(content)) + content
        case 3:
            yield tag(number, 3) + odd(random, content, inner, depth + 1) + tag(number, 4)
        case _:
            yield tag(number, wire) + content


def unknown(random: Random) -> bytes:
    """Return a field of any wire type. Its number may belong to another field."""
    number = random.choice([*NUMBERS, 19, 2049])
    contents = [
        (0, varint(random.getrandbits(64))), (1, bytes(8)), (2, b"\x03abc"), (5, bytes(4)),
        (3, tag(19, 0) + b"\x05" + tag(7, 3) + tag(7, 4) + tag(number, 4)),
    ]  # fmt: skip
    wire, content = random.choice(contents)
    return tag(number, wire) + content
