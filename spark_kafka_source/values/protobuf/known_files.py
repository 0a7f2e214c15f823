"""Files that schemas import without registering them: Google's well-known ones, and Confluent's.

Those that few lines describe are declared here, so that descriptors need no other package. Others
of Google come from the packages `protobuf` and `googleapis-common-protos`.
https://protobuf.dev/reference/protobuf/google.protobuf/
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from spark_kafka_source.values.protobuf.descriptors import Part
from spark_kafka_source.values.protobuf.schema import Kind, Wire, sized, tag_of, varint_of

FOLDERS = ("google/type", "google/api", "google/rpc")
"""Folders of `googleapis-common-protos` whose files may be imported."""

_PACKAGED = re.compile(r"google/(protobuf|type|api|rpc)/([a-z][a-z0-9_]*)\.proto")
_ONE, _MANY = 1, 3
_OPTIONS = 1088
"""The number of Confluent's extensions of options."""


def known_file(name: str) -> bytes | None:
    """Return the `FileDescriptorProto` of a file that need not be registered, or None."""
    if name in _declared():
        return _declared()[name]
    match = _PACKAGED.fullmatch(name)
    if match is None:
        return None
    try:
        module = import_module(f"google.{match[1]}.{match[2]}_pb2")
    except ImportError:
        return None
    data: bytes = module.DESCRIPTOR.serialized_pb
    return data


def declared() -> list[bytes]:
    """Return the declared files that no package has as texts."""
    return [file for name, file in _declared().items() if name.startswith("confluent/")]


def folders() -> dict[str, str]:
    """Return where each of `FOLDERS` is on this machine, if it is there."""
    known = {}
    for folder in FOLDERS:
        spec = find_spec("google") and find_spec(folder.replace("/", "."))
        places = spec.submodule_search_locations if spec else None
        if places:
            known[folder] = next(iter(places))
    return known


# -- declarations, as a descriptor has them -------------------------------------------------------


def _number(number: int, value: int) -> bytes:
    return tag_of(number, Wire.VARINT) + varint_of(value)


def _file(name: str, *parts: bytes, imports: tuple[str, ...] = (), public: bool = False) -> bytes:
    """Return a file of proto3. Its package is named as its folder, except an empty file's."""
    package = name.rpartition("/")[0].replace("/", ".") if parts else ""
    named = sized(1, name) + (sized(2, package) if package else b"")
    imported = b"".join(sized(3, each) for each in imports)
    again = _number(10, 0) if public else b""
    return b"".join((named, imported, *parts, again, sized(12, "proto3")))


def _message(name: str, fields: Mapping[str, str], *parts: bytes) -> bytes:
    """Return a message with the types of its fields, which are numbered from 1 on."""
    fields_written = [_field(2, *each, number) for number, each in enumerate(fields.items(), 1)]
    return sized(1, name) + b"".join([*fields_written, *parts])


def _field(of: int, name: str, kind: str, number: int, more: bytes = b"") -> bytes:
    """Return a field, such as of the type `int64`, `string*`, or `message .p.M`.

    `*` stands for many. `of` is the number of the fields of what it belongs to.
    """
    kind_name, _, type_name = kind.removesuffix("*").partition(" ")
    parts = [
        sized(1, name),
        _number(3, number),
        _number(4, _MANY if kind.endswith("*") else _ONE),
        _number(5, Kind[kind_name.upper()]),
        sized(6, type_name) if type_name else b"",
        more,
    ]
    return sized(of, b"".join(parts))


def _map(name: str, value: str) -> bytes:
    """Return the message that holds the entries of a map with strings as keys."""
    return sized(3, _message(name, {"key": "string", "value": value}, sized(7, _number(7, 1))))


def _struct() -> bytes:
    value = {
        "null_value": "enum .google.protobuf.NullValue",
        "number_value": "double",
        "string_value": "string",
        "bool_value": "bool",
        "struct_value": "message .google.protobuf.Struct",
        "list_value": "message .google.protobuf.ListValue",
    }
    members = [
        _field(2, *each, number, _number(9, 0)) for number, each in enumerate(value.items(), 1)
    ]
    fields = {"fields": "message .google.protobuf.Struct.FieldsEntry*"}
    entries = _map("FieldsEntry", "message .google.protobuf.Value")
    null = sized(2, sized(1, "NULL_VALUE") + _number(2, 0))
    return _file(
        "google/protobuf/struct.proto",
        sized(4, _message("Struct", fields, entries)),
        sized(4, _message("Value", {}, *members, sized(8, sized(1, "kind")))),
        sized(5, sized(1, "NullValue") + null),
        sized(4, _message("ListValue", {"values": "message .google.protobuf.Value*"})),
    )


def _meta() -> bytes:
    """Return the file with the options that Confluent's schemas have, for example tags."""
    extensions = [
        _field(7, f"{name}_meta", "message .confluent.Meta", _OPTIONS, sized(2, extended))
        for name, extended in (
            ("file", ".google.protobuf.FileOptions"),
            ("message", ".google.protobuf.MessageOptions"),
            ("field", ".google.protobuf.FieldOptions"),
            ("enum", ".google.protobuf.EnumOptions"),
            ("enum_value", ".google.protobuf.EnumValueOptions"),
        )
    ]
    fields = {
        "doc": "string",
        "params": "message .confluent.Meta.ParamsEntry*",
        "tags": "string*",
        "rules": "message .confluent.Rule*",
    }
    meta = _message("Meta", fields, _map("ParamsEntry", "string"))
    rule = _message("Rule", dict.fromkeys(("name", "doc", "expr", "sql"), "string"))
    imports = ("google/protobuf/descriptor.proto",)
    return _file(
        "confluent/meta.proto", sized(4, meta), sized(4, rule), *extensions, imports=imports
    )


def _files() -> Iterator[bytes]:
    for name, fields in {
        "Any": {"type_url": "string", "value": "bytes"},
        "Duration": {"seconds": "int64", "nanos": "int32"},
        "Empty": {},
        "FieldMask": {"paths": "string*"},
        "Timestamp": {"seconds": "int64", "nanos": "int32"},
    }.items():
        file = "field_mask" if name == "FieldMask" else name.lower()
        yield _file(f"google/protobuf/{file}.proto", sized(4, _message(name, fields)))
    kinds = ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
    wrappers = [sized(4, _message(f"{kind}Value", {"value": kind.lower()})) for kind in kinds]
    yield _file("google/protobuf/wrappers.proto", *wrappers)
    yield _struct()
    yield _meta()
    decimal = _message("Decimal", {"value": "bytes", "precision": "uint32", "scale": "int32"})
    yield _file("confluent/type/decimal.proto", sized(4, decimal))
    variant = _message("Variant", {"metadata": "bytes", "value": "bytes"})
    yield _file("confluent/type/variant.proto", sized(4, variant))
    # The former place of the same message.
    imports = ("confluent/type/decimal.proto",)
    yield _file("confluent/types/decimal.proto", imports=imports, public=True)


@cache
def _declared() -> Mapping[str, bytes]:
    return {Part(file).text(1): file for file in _files()}
