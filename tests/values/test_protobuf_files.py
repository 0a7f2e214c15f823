"""Schemas as registries have them: texts, descriptors in base64, both, and what they import."""

import base64
import importlib.util
import subprocess
from random import Random
from typing import Any

import pytest
from confluent_kafka.schema_registry.confluent import meta_pb2
from confluent_kafka.schema_registry.confluent.type import decimal_pb2, variant_pb2
from confluent_kafka.schema_registry.confluent.types import decimal_pb2 as former_decimal_pb2
from google.protobuf import (
    any_pb2,
    descriptor_pb2,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)
from google.type import date_pb2, money_pb2

from spark_kafka_source.values import SchemaError, SchemaText, SchemaType
from spark_kafka_source.values.protobuf import ProtobufReader, ProtobufWriter, parse_descriptors
from spark_kafka_source.values.protobuf.files import descriptors_of
from spark_kafka_source.values.protobuf.known_files import known_file
from spark_kafka_source.values.protobuf.text import compiled
from tests.values.protobuf_schemas import Files, file_set
from tests.values.test_protobuf_schemas import proto_text as schema

Set, File = descriptor_pb2.FileDescriptorSet, descriptor_pb2.FileDescriptorProto

OURS = [
    any_pb2, duration_pb2, empty_pb2, field_mask_pb2, struct_pb2, timestamp_pb2, wrappers_pb2,
    meta_pb2, decimal_pb2, variant_pb2, former_decimal_pb2,
]  # fmt: skip


@pytest.mark.parametrize("module", OURS, ids=lambda module: module.DESCRIPTOR.name)
def test_declared_files_are_those_of_their_owners(module: Any) -> None:
    wanted = File.FromString(module.DESCRIPTOR.serialized_pb)
    wanted.ClearField("options")
    found = File.FromString(known_file(wanted.name) or b"")
    for each in (wanted, found):
        each.message_type.sort(key=lambda message: message.name)
        for message in each.message_type:
            for field in [*message.field, *(f for n in message.nested_type for f in n.field)]:
                field.ClearField("json_name")  # protoc adds it, and it is the usual one.
    assert found == wanted


def file(text: str, *references: tuple[str, str], name: str = "") -> str:
    """Return a text as the descriptor in base64 that confluent's Python client registers."""
    found = Set.FromString(compiled(schema(text, *references))).file[-1]
    found.name = name or found.name
    return base64.b64encode(found.SerializeToString()).decode()


INNER = 'syntax = "proto3"; package q; message In { int32 v = 1; }'
BETWEEN = 'syntax = "proto3"; import public "deep/in.proto"; message B { q.In in = 1; }'
OUTER = 'syntax = "proto3"; import "b.proto"; message M { q.In in = 1; B b = 2; }'
AS_TEXTS = [("deep/in.proto", INNER), ("b.proto", BETWEEN)]
TYPE = "struct<in: struct<v: int32>, b: struct<in: struct<v: int32>>>"


@pytest.mark.parametrize("main", [True, False])
@pytest.mark.parametrize("inner", [True, False])
@pytest.mark.parametrize("between", [True, False])
def test_texts_and_descriptors_import_each_other(main: bool, inner: bool, between: bool) -> None:
    references = [
        ("deep/in.proto", file(INNER) if inner else INNER),
        ("b.proto", file(BETWEEN, *AS_TEXTS[:1]) if between else BETWEEN),
    ]
    given = schema(file(OUTER, *AS_TEXTS) if main else OUTER, *references)
    for by in (ProtobufReader(given), ProtobufWriter(given)):
        assert str(by.arrow_type) == TYPE
    files = [each.name for each in Set.FromString(descriptors_of(given)).file]
    assert len(files) == len(set(files)) == 3


def test_descriptors_need_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """syntax = "proto3"; import "google/protobuf/timestamp.proto"; import "in.proto";
    import "google/protobuf/struct.proto"; import "google/type/money.proto";
    import "confluent/type/decimal.proto"; import "confluent/meta.proto";
    message M { google.protobuf.Timestamp at = 1; google.type.Money paid = 2; q.In in = 3;
      confluent.type.Decimal sum = 4 [(confluent.field_meta).tags = "PII"];
      google.protobuf.Struct any = 5; }"""
    references = [("in.proto", file(INNER, name="default"))]
    given = schema(file(text, ("in.proto", INNER)), *references)
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "grpc_tools" else find_spec(name)
    )
    monkeypatch.setattr(subprocess, "run", None)
    by = ProtobufReader(given, fields=["at", "paid", "in", "sum"])
    assert str(by.arrow_type) == (
        "struct<at: timestamp[us, tz=UTC], paid: struct<currency_code: string, units: int64, "
        "nanos: int32>, in: struct<v: int32>, sum: struct<value: binary, precision: int32, "
        "scale: int32>>"
    )


KNOWN = """syntax = "proto3";
import "google/type/date.proto"; import "google/type/money.proto";
import "google/api/field_behavior.proto"; import "google/rpc/status.proto";
import "google/protobuf/wrappers.proto"; import "confluent/meta.proto";
import "confluent/type/decimal.proto"; import "confluent/types/decimal.proto";
option (confluent.file_meta) = { doc: "x" };
message M {
  option (confluent.message_meta).tags = "PII";
  google.type.Date day = 1 [(google.api.field_behavior) = REQUIRED];
  google.type.Money paid = 2 [(confluent.field_meta) = { params: { key: "a" value: "b" } }];
  google.rpc.Status status = 3;
  confluent.type.Decimal sum = 4;
  google.protobuf.Int32Value number = 5;
}"""


def test_a_text_imports_known_files_without_references() -> None:
    by = ProtobufReader(schema(KNOWN))
    names = {each.name: str(each.type) for each in by.arrow_type}
    assert names["day"] == "struct<year: int32, month: int32, day: int32>"
    assert names["sum"] == "struct<value: binary, precision: int32, scale: int32>"
    message = date_pb2.Date(year=2026, month=1)
    writer = ProtobufWriter(schema(KNOWN))
    data = writer.one({"day": {"year": 2026, "month": 1}, "paid": {"units": 5}})
    paid = money_pb2.Money(units=5).SerializeToString()
    assert data == b"\x0a\x05" + message.SerializeToString() + b"\x12\x02" + paid


def test_a_reference_comes_before_a_known_file() -> None:
    own = 'syntax = "proto3"; package google.type; message Date { string text = 1; }'
    text = (
        'syntax = "proto3"; import "google/type/date.proto"; message M { google.type.Date d = 1; }'
    )
    for given in (text, file(text, ("google/type/date.proto", own))):
        by = ProtobufReader(schema(given, ("google/type/date.proto", own)))
        assert str(by.arrow_type) == "struct<d: struct<text: string>>"


def test_a_set_and_a_file_are_told_apart() -> None:
    for seed in range(30):
        found = file_set(Files(Random(seed)).file())
        wanted = parse_descriptors(found.SerializeToString())
        for each in (found, found.file[-1]):
            text = base64.encodebytes(each.SerializeToString()).decode()  # with line ends
            assert parse_descriptors(descriptors_of(schema(text))) == wanted
    tiny = [File(name="b.proto"), File(name="\u00e9.proto", package="p"), File(syntax="proto3")]
    for each in tiny:
        as_file = base64.b64encode(each.SerializeToString()).decode()
        as_set = base64.b64encode(Set(file=[each]).SerializeToString()).decode()
        for text in (as_file, as_set):
            (only,) = Set.FromString(descriptors_of(schema(text))).file
            assert only == each


@pytest.mark.parametrize("data", [b"x", b"\x0a\x05ab", b"\xff" * 20])
def test_what_is_no_descriptor_is_refused(data: bytes) -> None:
    text = base64.b64encode(data).decode()
    with pytest.raises(SchemaError):
        ProtobufReader(schema(text))
    with pytest.raises(SchemaError):
        ProtobufReader(schema('syntax = "proto3"; import "a"; message M {}', ("a", text)))


def test_a_missing_import_is_named() -> None:
    text = file(OUTER, *AS_TEXTS)
    with pytest.raises(SchemaError, match=r"at M\.in: there is no type 'q\.In'.*references"):
        ProtobufReader(schema(text))


def test_a_schema_of_another_language_is_refused() -> None:
    with pytest.raises(SchemaError, match="a schema of AVRO"):
        ProtobufReader(SchemaText(SchemaType.AVRO, '"int"'))
