"""Schemas from descriptors and from texts, errors, and the indexes of messages."""

import importlib.util
import subprocess
import tempfile
from itertools import product
from random import Random
from typing import Any

import pytest
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FieldDescriptor as F

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.values import SchemaError, SchemaText, SchemaType, UnresolvableError
from spark_kafka_source.values.protobuf import (
    ProtobufReader,
    message_indexes,
    parse_descriptors,
    read_message_indexes,
    text,
)
from spark_kafka_source.values.protobuf.descriptors import MAX_DEPTH, MAX_DESCRIPTOR_BYTES
from spark_kafka_source.values.protobuf.schema import Field, Kind
from tests.values.protobuf_schemas import ALIKE_OF, IMPORTED, SCALARS, Files, file_set
from tests.values.protobuf_wire import number as n
from tests.values.protobuf_wire import sized
from tests.values.test_protobuf_cases import descriptors

Message = descriptor_pb2.DescriptorProto


def a_file(**more: Any) -> Any:
    return descriptor_pb2.FileDescriptorProto(name="f.proto", package="p", syntax="proto3", **more)


def field(name: str = "v", number: int = 1, kind: int = F.TYPE_INT32, **more: Any) -> Any:
    return descriptor_pb2.FieldDescriptorProto(
        name=name, number=number, type=kind, **{"label": F.LABEL_OPTIONAL} | more
    )


def parsed(*files: Any) -> Any:
    return parse_descriptors(
        descriptor_pb2.FileDescriptorSet(file=files).SerializeToString(deterministic=True)
    )


def of(*fields: Any, name: str = "M", **more: Any) -> Any:
    return a_file(message_type=[Message(name=name, field=fields, **more)])


def nested(depth: int) -> Any:
    message = Message(name="M")
    for _ in range(depth):
        message = Message(name="M", nested_type=[message])
    return a_file(message_type=[message])


def test_presence_and_packing_are_those_of_the_syntax() -> None:
    many = field("many", 2)
    many.label = F.LABEL_REPEATED
    file = of(field(), many, field("choice", 3, oneof_index=0))
    file.message_type[0].oneof_decl.add(name="one")
    (v, items, choice) = parsed(file).messages["p.M"].fields
    assert (v.presence, items.packed, choice.presence, choice.oneof) == (False, True, True, 0)
    file.syntax = "proto2"
    (v, items, choice) = parsed(file).messages["p.M"].fields
    assert (v.presence, items.packed, choice.presence, choice.oneof) == (True, False, True, 0)
    file.syntax, file.edition = "editions", descriptor_pb2.EDITION_2023
    (v, items, _) = parsed(file).messages["p.M"].fields
    assert (v.presence, items.packed) == (True, True)
    file.options.features.field_presence = 2
    file.options.features.repeated_field_encoding = 2
    (v, items, choice) = parsed(file).messages["p.M"].fields
    assert (v.presence, items.packed, choice.presence) == (False, False, True)


DEFAULTS: list[tuple[int, str, Any]] = [
    (F.TYPE_INT32, "-7", -7),
    (F.TYPE_UINT64, str((1 << 64) - 1), -1),
    (F.TYPE_BOOL, "true", 1),
    (F.TYPE_STRING, "né", "né".encode()),
    (F.TYPE_BYTES, r"\377\x41a\n\"\\", b'\xffAa\n"\\'),
    (F.TYPE_DOUBLE, "1.5", 0x3FF8000000000000),
    (F.TYPE_DOUBLE, "-inf", -(1 << 52)),
]


@pytest.mark.parametrize(("kind", "written", "found"), DEFAULTS)
def test_defaults(kind: int, written: str, found: Any) -> None:
    file = of(field(kind=kind, default_value=written))
    file.syntax = "proto2"
    assert parsed(file).messages["p.M"].fields == (Field("v", 1, Kind(kind), default=found),)


REFUSED: list[tuple[Any, str]] = [
    (nested(MAX_DEPTH), "messages nested too deeply"),
    (of(field(number=0)), r"at p\.M\.v: the number 0"),
    (of(field(number=1 << 29)), r"at p\.M\.v: the number 536870912"),
    (of(field(number=-1)), r"at p\.M\.v: the number -1"),
    (of(field(), field()), r"at p\.M\.v: its name or number is another field's"),
    (of(field(kind=F.TYPE_MESSAGE, type_name=".p.X")), r"at p\.M\.v: there is no type 'p\.X'"),
    (of(field(kind=F.TYPE_ENUM, type_name=".p.M")), r"at p\.M\.v: there is no type 'p\.M'"),
    (of(field(oneof_index=1)), r"at p\.M\.v: oneof 1"),
    (of(field(default_value="x")), r"at p\.M\.v: the default 'x' of a field of int32"),
    (of(field(default_value="9" * 30)), r"at p\.M\.v: the default '9999"),
    (of(field(kind=F.TYPE_BYTES, default_value="\\")), r"at p\.M\.v: the default"),
    (of(field("a b")), "the name 'a b'"),
    (of(field("a" * 2000)), "the name 'aaa"),
    (of(options=descriptor_pb2.MessageOptions(message_set_wire_format=True)), "message sets"),
    (of(options=descriptor_pb2.MessageOptions(map_entry=True)), "no entry of a map"),
    (a_file(message_type=[Message(name="M"), Message(name="M")]), "'p.M' is defined twice"),
    (a_file(enum_type=[descriptor_pb2.EnumDescriptorProto(name="E")]), "an enum without values"),
    (descriptor_pb2.FileDescriptorProto(syntax="proto4"), "the syntax 'proto4'"),
    (descriptor_pb2.FileDescriptorProto(syntax="editions", edition=9999), "edition 9999"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "message"), REFUSED)
def test_what_is_refused(file: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message) as caught:
        parsed(file)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "data",
    [b"x", b"\xff" * 11, sized(1, b"\x08\x01" + b"\x0a"), n(1, 5), b"\x0b\x0c",
     b"\x0a\x05ab", b"\0\0", sized(1, sized(4, sized(1, b"\xff")))],
)  # fmt: skip
def test_bytes_that_are_no_descriptors_are_refused(data: bytes) -> None:
    with pytest.raises(SchemaError, match="no descriptor set"):
        parse_descriptors(data)


def test_descriptors_have_a_bound() -> None:
    with pytest.raises(SchemaError, match="bytes"):
        parse_descriptors(bytes(MAX_DESCRIPTOR_BYTES + 1))


def test_few_messages_do_not_become_many_columns() -> None:
    messages = [
        Message(name=f"M{place}", field=[
            field(name, number, F.TYPE_MESSAGE, type_name=f".p.M{place + 1}")
            for number, name in enumerate("ab", 1)
        ])
        for place in range(40)
    ]  # fmt: skip
    file = a_file(message_type=[*messages, Message(name="M40", field=[field()])])
    data = file_set(file).SerializeToString()
    with pytest.raises(SchemaError, match="more than 10000 columns"):
        ProtobufReader(data, "p.M0")


def test_a_message_that_is_not_there_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"there is no message 'p\.Xyz'\. The file has p.Plain"):
        ProtobufReader(descriptors(), "p.Xyz")


def proto_text(content: str, *references: tuple[str, str]) -> SchemaText:
    return SchemaText(SchemaType.PROTOBUF, content, references)


def test_a_text_and_what_it_imports() -> None:
    inner = 'syntax = "proto3"; package q; message In { int32 v = 1; }'
    between = 'syntax = "proto3"; import public "deep/in.proto";'
    outer = 'syntax = "proto3"; import "b.proto"; message M { q.In in = 1; }'
    by = ProtobufReader(proto_text(outer, ("deep/in.proto", inner), ("b.proto", between)))
    assert str(by.arrow_type) == "struct<in: struct<v: int32>>"
    assert by.message.name == "M"


TEXTS: list[tuple[SchemaText, str]] = [
    (proto_text("message"), "the schema:1:8"),
    (proto_text('syntax = "proto3"; import "x.proto";'), r"x\.proto: File not found"),
    (proto_text("", ("../x.proto", "")), "an import by the name '../x.proto'"),
    (proto_text("", ("/etc/x.proto", "")), "an import by the name '/etc/x.proto'"),
    (proto_text("", ("a/../../x.proto", "")), "an import by the name"),
    (proto_text("", ("a\0b", "")), "an import by the name"),
    (proto_text("", ("", "")), "an import by the name ''"),
    (proto_text("", *((f"{place}", "") for place in range(1001))), "1001 references"),
    (proto_text("/" * (4 << 20) + "/"), "4194305 characters"),
    (SchemaText(SchemaType.AVRO, '"int"'), "a schema of AVRO"),
    (proto_text('syntax = "proto3";'), "message indexes"),
]


@pytest.mark.parametrize(("schema", "message"), TEXTS)
def test_texts_that_are_refused(schema: SchemaText, message: str) -> None:
    with pytest.raises(SchemaError, match=message) as caught:
        ProtobufReader(schema)
    assert len(str(caught.value)) < 1500
    assert tempfile.gettempdir() not in str(caught.value)


def test_without_the_compiler_it_is_said_how_to_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ConfigurationError, match="Install this package with its extra 'protobuf'"):
        ProtobufReader(proto_text('syntax = "proto3"; message M {}'))


def test_the_compiler_has_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: Any, timeout: float, **__: Any) -> None:
        raise subprocess.TimeoutExpired("protoc", timeout)

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(SchemaError, match="did not end within 60 s"):
        text.compiled(proto_text(""))


INDEXES: list[tuple[str, bytes, Any]] = [
    ("the first, by one byte", b"\0", ((0,), 1)),
    ("the first, written out", b"\x02\x00", ((0,), 2)),
    ("the first in the second", b"\x04\x02\x00", ((1, 0), 3)),
    ("what comes after is not looked at", b"\x02\x04zz", ((2,), 2)),
    ("a count of 2^31", b"\x80\x80\x80\x80\x10", "the message index 2147483648"),
    ("more than there are ever", b"\xc8\x01", "100 message indexes"),
    ("a count below 0", b"\x01", "the message index -1"),
    ("an index below 0", b"\x02\x01", "the message index -1"),
    ("too few", b"\x04\x02", "no varint"),
    ("none", b"", "no varint"),
    ("a varint of eleven bytes", b"\x80" * 11, "no varint"),
]


@pytest.mark.parametrize(("name", "data", "found"), INDEXES)
def test_message_indexes_are_read(name: str, data: bytes, found: Any) -> None:
    if isinstance(found, str):
        with pytest.raises(ValueError, match=found):
            read_message_indexes(data)
        return
    assert read_message_indexes(data) == found
    assert read_message_indexes(b"zz" + data, 2) == (found[0], found[1] + 2)


def test_deprecated_message_indexes_are_read_only_on_request() -> None:
    assert read_message_indexes(b"\x02\x01\x00", deprecated=True) == ((1, 0), 3)
    with pytest.raises(ValueError, match="the message index -1"):
        read_message_indexes(b"\x02\x01\x00")


def test_message_indexes_are_written() -> None:
    schema = ProtobufReader(descriptors()).schema
    for name in ("p.Plain", "p.Address", "p.Outer.Inner", "p.Outer.Inner.Deep"):
        data = message_indexes(schema, name)
        indexes, after = read_message_indexes(data)
        assert after == len(data)
        assert schema.indexed(indexes).name == name
    assert message_indexes(schema, "p.Plain") == b"\0"
    assert message_indexes(schema, "p.Address") == b"\x02\x02"
    with pytest.raises(SchemaError, match=r"message p\.Old is imported"):
        message_indexes(schema, "p.Old")


def test_entries_of_maps_are_counted_by_some_writers() -> None:
    """A map's entry is a nested message that no schema text shows."""
    content = """syntax = "proto3";
    message M { map<string, int32> map = 1; message A { int32 v = 1; } message B { int32 v = 1; } }
    """
    by = ProtobufReader(proto_text(content), "M.B")
    assert message_indexes(by.schema, "M.B") == b"\x04\0\x02"
    for indexes in ((0, 1), (0, 2)):  # Java's indexes, and Python's.
        assert by.program(by.descriptors, indexes).paths
    for other, name in (((0, 0), r"M\.A"), ((0,), "M")):
        with pytest.raises(UnresolvableError, match=rf"message {name} was written"):
            by.program(by.descriptors, other)
    with pytest.raises(SchemaError, match="there is no message"):
        by.schema.message("M.MapEntry")


def test_random_files_are_parsed_as_they_are() -> None:
    for seed in range(30):
        file = Files(Random(seed)).file()
        schema = parse_descriptors(file_set(file).SerializeToString())
        assert schema.top == tuple(f"p.{each.name}" for each in file.message_type)
        for message in file.message_type:
            fields = schema.messages[f"p.{message.name}"].fields
            assert [each.name for each in fields] == [each.name for each in message.field]


# -- fields whose meaning changes ------------------------------------------------------------------

_MOMENT, _SPAN, _INT32, _INT64 = (
    {"kind": F.TYPE_MESSAGE, "type_name": f".google.protobuf.{name}"}
    for name in ("Timestamp", "Duration", "Int32Value", "Int64Value")
)
_UNPACKED, _PACKED = (
    {"label": F.LABEL_REPEATED, "options": descriptor_pb2.FieldOptions(packed=packed)}
    for packed in (False, True)
)
_BYTES, _TEXT = {"kind": F.TYPE_BYTES}, {"kind": F.TYPE_STRING}
CHANGES = [
    *(
        ({"kind": one}, {"kind": other}, other in ALIKE_OF[one])
        for one, other in product(SCALARS, SCALARS)
    ),
    (_MOMENT, _MOMENT, True), (_MOMENT, _SPAN, False), (_SPAN, _MOMENT, False),
    (_INT32, _INT64, True), (_INT64, _MOMENT, False), (_MOMENT, _BYTES, True),
    (_BYTES, _MOMENT, True), (_TEXT, _MOMENT, False), (_MOMENT, _TEXT, False),
    *(
        ({"kind": each, "label": F.LABEL_REPEATED}, {"kind": each}, each in ALIKE_OF[F.TYPE_BYTES])
        for each in SCALARS
    ),
    *(({"kind": each}, {"kind": each, "label": F.LABEL_REPEATED}, True) for each in SCALARS),
    (_PACKED, {"kind": F.TYPE_INT32, "label": F.LABEL_REPEATED}, True),
    (_UNPACKED, {"kind": F.TYPE_INT32}, True), (_PACKED, {"kind": F.TYPE_INT32}, False),
]  # fmt: skip


def _only(**kind: Any) -> bytes:
    file = of(field(**kind))
    file.dependency.extend(module.DESCRIPTOR.name for module in IMPORTED)
    return bytes(file_set(file).SerializeToString())


@pytest.mark.parametrize(("written", "wanted", "is_read"), CHANGES)
def test_a_field_that_means_something_else_is_refused_by_both_types(
    written: dict[str, Any], wanted: dict[str, Any], is_read: bool
) -> None:
    """The bytes of an int64 can be those of a sint64, and a Timestamp is like a Duration."""
    by, writer = ProtobufReader(_only(**wanted), "p.M"), _only(**written)
    if is_read:
        by.program(writer)
        return
    with pytest.raises(
        UnresolvableError, match=r"at v: (repeated )?\S+ was written. It cannot be read as \S+$"
    ):
        by.program(writer)
