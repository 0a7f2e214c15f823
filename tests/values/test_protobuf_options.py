"""Options of Spark's `from_protobuf`: the types and values that its documentation gives."""

import json
import pickle
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, json_format, message_factory
from hypothesis import given

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.typed import Format, FormatConfig
from spark_kafka_source.values import (
    Encoded,
    Fault,
    RecursiveTypeError,
    SchemaError,
    SchemaText,
    SchemaType,
)
from spark_kafka_source.values.protobuf import ProtobufReader, ProtobufWriter, any_json
from spark_kafka_source.values.protobuf.files import descriptors_of
from spark_kafka_source.values.typing import ProtobufTyping
from tests.values.avro_oracle import laid
from tests.values.protobuf_schemas import Files, file_set, filled, message_class
from tests.values.test_protobuf_oracle import SEEDS, drawn

EACH = pytest.mark.usefixtures("engine")


def schema(text: str) -> SchemaText:
    return SchemaText(SchemaType.PROTOBUF, f'syntax = "proto3"; package p; {text}')


def config(**options: str) -> FormatConfig:
    named = {f"value.{name.replace('_', '.')}": each for name, each in options.items()}
    return FormatConfig.from_settings(
        Settings({"value.format": "protobuf", "value.schema": "x", **named}), "value"
    )


def test_options_have_the_names_that_spark_gives_them() -> None:
    found = config(
        emit_default_values="true", upcast_unsigned_ints="true", enums_as_ints="TRUE",
        unwrap_primitive_wrapper_types="true", recursive_fields_max_depth="10",
        convert_any_fields_to_json="true",
    )  # fmt: skip
    assert found.format is Format.PROTOBUF
    assert found.protobuf == ProtobufTyping(True, True, True, True, 10, True)
    assert config().protobuf == ProtobufTyping(False, False, False, False, -1, False)
    for wrong in ("11", "-2", "x"):
        with pytest.raises(ConfigurationError, match=r"value\.recursive\.fields\.max\.depth"):
            config(recursive_fields_max_depth=wrong)
    with pytest.raises(ConfigurationError, match=r"'value\.enums\.as\.ints': has no effect"):
        FormatConfig.from_settings(
            Settings({"value.format": "avro", "value.enums.as.ints": "true"}), "value"
        )


PERSON = schema("message Person { string name = 1; Person friend = 2; }")
OTHERS = schema("""
message M { A a = 1; repeated M many = 2; map<string, M> by = 3; int32 v = 4; }
message A { B b = 1; int32 v = 2; }
message B { A a = 1; int32 v = 2; }
message Only { Only only = 1; Only other = 2; }
message Holder { Only only = 1; int32 v = 2; }
""")
NAMES = "struct<name: string"
DEPTHS: list[tuple[SchemaText, str, int, str]] = [
    (PERSON, "Person", 1, f"{NAMES}>"),
    (PERSON, "Person", 2, f"{NAMES}, friend: {NAMES}>>"),
    (PERSON, "Person", 3, f"{NAMES}, friend: {NAMES}, friend: {NAMES}>>>"),
    (OTHERS, "M", 1, "struct<a: struct<b: struct<v: int32>, v: int32>, v: int32>"),
    (OTHERS, "A", 1, "struct<b: struct<v: int32>, v: int32>"),
    (
        OTHERS,
        "A",
        2,
        "struct<b: struct<a: struct<b: struct<v: int32>, v: int32>, v: int32>, v: int32>",
    ),
    (OTHERS, "Holder", 3, "struct<v: int32>"),
]


@pytest.mark.parametrize(("text", "name", "depth", "wanted"), DEPTHS)
def test_a_message_in_itself_is_cut_where_spark_cuts_it(
    text: SchemaText, name: str, depth: int, wanted: str
) -> None:
    typing = ProtobufTyping(recursive_fields_max_depth=depth)
    by = ProtobufReader(text, f"p.{name}", typing=typing)
    assert str(by.arrow_type) == wanted
    writer = ProtobufWriter(text, f"p.{name}", typing=typing)
    assert writer.arrow_type == by.arrow_type
    writer.fit(by.arrow_type)


@pytest.mark.parametrize("depth", [0, -1])
def test_a_message_in_itself_is_refused_without_a_depth(depth: int) -> None:
    typing = ProtobufTyping(recursive_fields_max_depth=depth)
    with pytest.raises(RecursiveTypeError, match=r"or set 'value\.recursive\.fields\.max\.depth'"):
        ProtobufReader(PERSON, typing=typing)
    with pytest.raises(RecursiveTypeError):
        _ = ProtobufWriter(PERSON).arrow_type


@EACH
def test_values_deeper_than_the_columns_are_passed_over() -> None:
    value: dict[str, Any] = {"name": "c", "friend": {"name": "d", "friend": {"name": "e"}}}
    value = {"name": "a", "friend": {"name": "b", "friend": value}}
    data = ProtobufWriter(PERSON).one(value)
    by = ProtobufReader(PERSON, typing=ProtobufTyping(recursive_fields_max_depth=3))
    found = by.decode([by.program()], Encoded(*laid([data, b"", data]))).array.to_pylist()
    cut = {"name": "a", "friend": {"name": "b", "friend": {"name": "c"}}}
    assert found == [cut, {"name": None, "friend": None}, cut]
    chosen = ProtobufReader(PERSON, fields=["friend.friend.name"], typing=by.typing)
    assert chosen.decode([chosen.program()], Encoded(*laid([data]))).array.to_pylist() == [
        {"friend": {"friend": {"name": "c"}}}
    ]
    with pytest.raises(SchemaError, match="'friend' has no column"):
        ProtobufReader(PERSON, fields=["friend.friend.friend"], typing=by.typing)


def test_too_many_columns_of_a_message_in_itself_are_refused() -> None:
    text = schema("message M { M a = 1; M b = 2; M c = 3; M d = 4; int32 v = 5; }")
    with pytest.raises(SchemaError, match="more than 10000 columns"):
        ProtobufReader(text, typing=ProtobufTyping(recursive_fields_max_depth=10))


WITH_ANY = schema("""
import "google/protobuf/any.proto"; import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto"; import "google/protobuf/struct.proto";
enum Kind { VIEW = 0; CART = 1; }
message Event { string event_name = 1; google.protobuf.Any details = 2;
  repeated google.protobuf.Any many = 3; map<int32, google.protobuf.Any> by = 4; }
message Person { string first_name = 1; int32 id = 2; int64 wide = 3; bytes data = 4; Kind kind = 5;
  google.protobuf.Timestamp at = 6; google.protobuf.Any within = 7; double number = 8; }
""")
JSON = ProtobufTyping(convert_any_fields_to_json=True)


def decoded(rows: list[bytes], **more: Any) -> Any:
    by = ProtobufReader(WITH_ANY, "p.Event", **more)
    found = by.decode([by.program()], Encoded(*laid(rows)))
    found.array.validate(full=True)
    return found


def classes(*names: str) -> list[Any]:
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(descriptors_of(WITH_ANY)).file:
        pool.Add(file)
    return [message_factory.GetMessageClass(pool.FindMessageTypeByName(name)) for name in names]


@EACH
def test_an_any_is_the_json_of_its_message() -> None:
    event, person, any_ = classes("p.Event", "p.Person", "google.protobuf.Any")
    given = person(first_name="M", id=100, wide=-5, data=b"\xff", kind=1, number=float("nan"))
    given.at.FromJsonString("2026-01-02T03:04:05.000006Z")
    given.within.Pack(person(first_name="<é>"))
    row = event(event_name="click")
    row.details.Pack(given)
    row.many.add().Pack(person(id=1))
    row.many.add()
    row.by[7].Pack(any_())
    types = pa.struct([
        ("event_name", pa.string()), ("details", pa.string()),
        ("many", pa.list_(pa.field("element", pa.string()))),
        ("by", pa.map_(pa.int32(), pa.string())),
    ])  # fmt: skip
    found = decoded([row.SerializeToString(), b"", row.SerializeToString()], typing=JSON)
    assert found.array.type == types
    first, second, third = found.array.to_pylist()
    assert first == third
    assert second == {"event_name": None, "details": None, "many": [], "by": []}
    url = "type.googleapis.com/"
    assert json.loads(first["details"]) == {
        "@type": f"{url}p.Person", "first_name": "M", "id": 100, "wide": "-5", "data": "/w==",
        "kind": "CART", "at": "2026-01-02T03:04:05.000006Z", "number": "NaN",
        "within": {"@type": f"{url}p.Person", "first_name": "<é>"},
    }  # fmt: skip
    assert " " not in first["details"]
    assert first["many"] == [f'{{"@type":"{url}p.Person","id":1}}', "{}"]
    assert json.loads(first["by"][0][1]) == {"@type": f"{url}google.protobuf.Any", "value": {}}
    as_ints = ProtobufTyping(enums_as_ints=True, convert_any_fields_to_json=True)
    numbers = decoded([row.SerializeToString()], typing=as_ints).array.to_pylist()[0]
    assert json.loads(numbers["details"])["kind"] == 1
    struct = decoded([row.SerializeToString()], typing=JSON, fields=["details.type_url"])
    assert struct.array.to_pylist() == [{"details": {"type_url": f"{url}p.Person"}}]


BAD = [
    any_pb2.Any(type_url="type.googleapis.com/p.Nobody", value=b""),
    any_pb2.Any(type_url="", value=b"\x08\x01"),
    any_pb2.Any(type_url="type.googleapis.com/p.Person", value=b"\xff"),
    any_pb2.Any(type_url="type.googleapis.com/p.Person", value=b"\x0a\x01\xff"),
    any_pb2.Any(
        type_url="type.googleapis.com/google.protobuf.Timestamp", value=b"\x10\xff\xff\xff\xff\x0f"
    ),
]


def nested_any(depth: int) -> any_pb2.Any:
    found = any_pb2.Any()
    for _ in range(depth):
        outer = any_pb2.Any()
        outer.Pack(found)
        found = outer
    return found


@EACH
@pytest.mark.parametrize("bad", [*BAD, nested_any(2000)], ids=range(len(BAD) + 1))
def test_an_any_without_json_is_a_bad_record(bad: any_pb2.Any) -> None:
    (event,) = classes("p.Event")
    row = event(event_name="x")
    row.details.type_url, row.details.value = bad.type_url, bad.value
    items = event()
    items.many.add(type_url=bad.type_url, value=bad.value)
    good = event(event_name="y").SerializeToString()
    found = decoded([good, row.SerializeToString(), items.SerializeToString(), good], typing=JSON)
    assert found.status.tolist() == [Fault.OK, Fault.ANY, Fault.ANY, Fault.OK]
    assert found.reason(1) == f"details: {Fault.ANY.reason}"
    assert found.reason(2) == f"many[]: {Fault.ANY.reason}"
    assert [each and each["event_name"] for each in found.array.to_pylist()] == [
        "y",
        None,
        None,
        "y",
    ]


def test_readers_with_json_are_pickled(monkeypatch: pytest.MonkeyPatch) -> None:
    by = ProtobufReader(WITH_ANY, "p.Event", typing=JSON)
    assert pickle.loads(pickle.dumps(by)).arrow_type == by.arrow_type
    monkeypatch.setattr(any_json, "find_spec", lambda _: None)
    with pytest.raises(ConfigurationError, match=r"needs the package protobuf.*extra 'protobuf'"):
        ProtobufReader(WITH_ANY, "p.Event", typing=JSON)


@drawn
@given(SEEDS)
def test_drawn_messages_in_an_any_are_what_json_format_says(seed: int) -> None:
    random = Random(seed)
    file = Files(random).file()
    file.message_type.add(name="Holder").field.add(
        name="any", number=1, label=1, type=11, type_name=".google.protobuf.Any"
    )
    inner, holder = message_class(file), message_class(file, "p.Holder")
    by = ProtobufReader(file_set(file).SerializeToString(), "p.Holder", typing=JSON)
    message = filled(random, inner())
    row = holder()
    row.any.type_url, row.any.value = "x/p.M0", message.SerializeToString()
    found = by.decode([by.program()], Encoded(*laid([row.SerializeToString()])))
    try:
        wanted = json_format.MessageToDict(
            row.any, preserving_proto_field_name=True, descriptor_pool=inner.DESCRIPTOR.file.pool
        )
    except (json_format.Error, TypeError):  # For example a time beyond the year 9999.
        assert found.status.tolist() == [Fault.ANY]
        return
    assert json.loads(found.array.to_pylist()[0]["any"]) == wanted
