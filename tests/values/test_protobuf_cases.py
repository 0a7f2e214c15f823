"""Edge cases of Protobuf, each with its result: a value or a fault."""

import datetime
import pickle
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from spark_kafka_source.values import (
    Encoded,
    Fault,
    RecursiveTypeError,
    SchemaError,
    SchemaText,
    SchemaType,
    UnresolvableError,
)
from spark_kafka_source.values.decoding import Engines
from spark_kafka_source.values.protobuf import ProtobufReader
from spark_kafka_source.values.protobuf.program import SLOTS_OF_A_BYTE, SLOTS_OF_A_ROW
from spark_kafka_source.values.protobuf.text import compiled
from spark_kafka_source.values.typing import ProtobufTyping
from tests.traced import traced
from tests.values.avro_oracle import laid
from tests.values.engines import using
from tests.values.protobuf_wire import number as n
from tests.values.protobuf_wire import sized, tag, varint

UTC = datetime.UTC
EACH = pytest.mark.usefixtures("engine")
PROTO = """
syntax = "proto3";
package p;
import "google/protobuf/duration.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/any.proto";
import "google/protobuf/empty.proto";
import "google/protobuf/struct.proto";
import "old.proto";

enum Kind { VIEW = 0; CART = 1; }
message Plain {
  int32 i32 = 1;
  optional int32 maybe = 2;
  string text = 3;
  bytes data = 4;
  Kind kind = 5;
  repeated int32 many = 6;
  repeated string texts = 7;
  map<string, int32> map = 8;
  Address to = 9;
  oneof one {
    int32 choice = 10;
    string other = 11;
    Address place = 12;
  }
  google.protobuf.Timestamp at = 13;
  google.protobuf.Duration took = 14;
  uint32 u32 = 15;
  uint64 u64 = 16;
  double number = 17;
  bool flag = 18;
  google.protobuf.Int32Value wrapped = 19;
  google.protobuf.Any any = 20;
  google.protobuf.Empty empty = 21;
  repeated Address places = 22;
  map<int32, Address> by = 23;
  float real = 24;
  sint64 s64 = 25;
  fixed32 f32 = 26;
}
message Address { string street = 1; string city = 2; repeated int32 many = 3; }
message Node { int32 v = 1; Node next = 2; }
message Tree { repeated Node nodes = 1; int32 v = 2; }
message Json { google.protobuf.Struct any = 1; }
message Outer { message Inner { int32 v = 1; message Deep { int32 v = 1; } } int32 v = 1; }
"""
OLD = """
syntax = "proto2";
package p;
enum Side { LEFT = 1; RIGHT = 2; }
enum Turn { OFF = 0; ON = 1; }
message Old {
  required int32 must = 1;
  optional Side kind = 2;
  repeated Side kinds = 3;
  optional int32 five = 4 [default = 5];
  optional string text = 5 [default = "n\\303\\251"];
  optional Side side = 6 [default = RIGHT];
  map<string, Turn> turns = 7;
  optional group Part = 8 { optional int32 v = 1; }
  repeated int32 packed = 9 [packed = true];
  repeated int32 plain = 10;
  extensions 100 to 200;
}
"""
TEXT = SchemaText(SchemaType.PROTOBUF, PROTO, (("old.proto", OLD),))


@cache
def descriptors() -> bytes:
    return compiled(TEXT)


def reader(name: str, **more: Any) -> ProtobufReader:
    return ProtobufReader(descriptors(), f"p.{name}", **more)


@cache
def proto(name: str) -> Any:
    pool = descriptor_pool.DescriptorPool()
    for file in FileDescriptorSet.FromString(descriptors()).file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"p.{name}"))


def decoded(name: str, rows: list[bytes], **more: Any) -> Any:
    by = reader(name, **more)
    found = by.decode([by.program()], Encoded(*laid(rows)))
    found.array.validate(full=True)
    return found


STREET, CITY = sized(1, "s"), sized(2, "c")
A: dict[str, Any] = {"street": "s", "city": None, "many": []}
C: dict[str, Any] = {"street": None, "city": "c", "many": []}
AC: dict[str, Any] = {"street": "s", "city": "c", "many": []}
SECOND = datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)

PLAIN: list[tuple[str, bytes, str, Any]] = [
    ("34: -1 in ten bytes", n(1, -1), "i32", -1),
    ("34: -1 in five", tag(1, 0) + b"\xff\xff\xff\xff\x0f", "i32", -1),
    ("34: 2^32 + 5", n(1, (1 << 32) + 5), "i32", 5),
    ("34: 2^32, which is 0", n(1, 1 << 32), "i32", None),
    ("34: ten bytes of 70 bits", tag(1, 0) + b"\xff" * 9 + b"\x7f", "i32", -1),
    ("35: an unknown field", n(99, 5) + n(1, 7), "i32", 7),
    ("35: an unknown double", tag(99, 1) + bytes(8) + n(1, 7), "i32", 7),
    ("35: an unknown float", tag(99, 5) + bytes(4) + n(1, 7), "i32", 7),
    ("35: an unknown group", tag(99, 3) + n(1, 9) + tag(99, 4) + n(1, 7), "i32", 7),
    ("35: groups within it", tag(99, 3) + tag(5, 3) + tag(5, 4) + tag(99, 4), "i32", None),
    ("35: a group that does not end", tag(99, 3) + n(1, 9), "", Fault.GROUP),
    ("35: a group that ends as another", tag(99, 3) + tag(98, 4), "", Fault.GROUP),
    ("35: an end without its start", tag(99, 4), "", Fault.GROUP),
    ("35: the end of a known field", tag(1, 4), "", Fault.GROUP),
    ("35: an end within a message", sized(9, tag(1, 4)), "to", Fault.GROUP),
    ("35: field 0", n(0, 5), "", Fault.TAG),
    ("35: wire type 6", tag(99, 6), "", Fault.TAG),
    ("35: wire type 7 of a known field", tag(1, 7), "", Fault.TAG),
    ("35: a tag of 33 bits", varint(1 << 32 | 8) + b"\1", "", Fault.TAG),
    ("35: a tag of six bytes", b"\x88\x80\x80\x80\x80\x00\x05", "", Fault.TAG),
    ("35: a tag longer than it must be", b"\x88\x80\x00\x05", "i32", 5),
    ("35: a varint of eleven bytes", tag(1, 0) + b"\x80" * 10 + b"\1", "i32", Fault.VARINT),
    ("35: an unknown varint of eleven", tag(99, 0) + b"\x80" * 10 + b"\1", "", Fault.VARINT),
    ("35: groups nested too deeply", tag(99, 3) * 101 + tag(99, 4) * 101, "", Fault.NESTING),
    ("36: packed, then not, then packed", sized(6, b"\1\2") + n(6, 3) + sized(6, b"\4"), "many",
     [1, 2, 3, 4]),
    ("36: packed in a varint that does not end", sized(6, b"\1\x80"), "many[]", Fault.TRUNCATED),
    ("36: packed without items", sized(6, b""), "many", []),
    ("36: packed, of -1", sized(6, varint(-1) * 2), "many", [-1, -1]),
    ("37: a scalar twice", n(1, 5) + n(1, 6), "i32", 6),
    ("37: a scalar that becomes 0", n(1, 5) + n(1, 0), "i32", None),
    ("37: a message twice", sized(9, STREET) + sized(9, CITY), "to", AC),
    ("37: a message whose lists are joined", sized(9, n(3, 1)) + sized(9, n(3, 2)), "to",
     {"street": None, "city": None, "many": [1, 2]}),
    ("37: a oneof twice", n(10, 5) + sized(11, "x"), "choice", None),
    ("37: the other of it", n(10, 5) + sized(11, "x"), "other", "x"),
    ("37: the first again", sized(11, "x") + n(10, 0), "choice", 0),
    ("37: a message of a oneof twice", sized(12, STREET) + sized(12, CITY), "place", AC),
    ("37: and another between", sized(12, STREET + n(3, 1)) + n(10, 5) + sized(12, CITY), "place",
     C),
    ("37: and another between, no items", sized(12, STREET) + n(10, 5) + sized(12, CITY), "place",
     C),
    ("38: optional, and 0", n(2, 0), "maybe", 0),
    ("38: optional, and absent", b"", "maybe", None),
    ("38: plain, and absent", b"", "i32", None),
    ("38: plain, and 0", n(1, 0), "i32", None),
    ("38: a plain string, and empty", sized(3, ""), "text", None),
    ("38: a message, and absent", b"", "to", None),
    ("38: a message, and empty", sized(9, b""), "to",
     {"street": None, "city": None, "many": []}),
    ("39: a string for an int", sized(1, "abc") + n(2, 1), "i32", None),
    ("39: a double for an int", tag(1, 1) + bytes(8), "i32", None),
    ("39: an int for a message", n(9, 5), "to", None),
    ("39: doubles for packed ints", sized(6, bytes(8)), "many", [0] * 8),
    ("39: fields out of order", n(2, 7) + n(1, 6), "i32", 6),
    ("39: enum 99", n(5, 99), "kind", "99"),
    ("39: enum -1", n(5, -1), "kind", "-1"),
    ("39: enum 1", n(5, 1), "kind", "CART"),
    ("39: enum 0", n(5, 0), "kind", None),
    ("40: nothing", b"", "texts", []),
    ("41: a string that is no text", sized(3, b"\xff"), "text", Fault.TEXT),
    ("41: a string that is cut within", sized(3, "né"[:1].encode() + b"\xc3"), "text", Fault.TEXT),
    ("41: strings of which one is none", sized(7, "a") + sized(7, b"\xff"), "texts[]", Fault.TEXT),
    ("41: bytes that are no text", sized(4, b"\xff"), "data", b"\xff"),
    ("41: a byte too many", n(1, 5) + b"\1", "", Fault.TAG),
    ("41: a byte too many that begins a field", n(1, 5) + b"\x08", "i32", Fault.TRUNCATED),
    ("41: a string beyond the end", tag(3, 2) + b"\2a", "text", Fault.LENGTH),
    ("41: one of 2^31", tag(3, 2) + varint(1 << 31), "text", Fault.LENGTH),
    ("41: one of 2^64 - 1", tag(3, 2) + varint(-1), "text", Fault.LENGTH),
    ("41: a size of six bytes", tag(3, 2) + b"\x81\x80\x80\x80\x80\x00a", "text", Fault.LENGTH),
    ("41: a string beyond its message", sized(9, tag(1, 2) + b"\2s") + b"zz", "to.street",
     Fault.LENGTH),
    ("43: an entry without a value", sized(8, sized(1, "k")), "map", [("k", 0)]),
    ("43: without a key", sized(8, n(2, 5)), "map", [("", 5)]),
    ("43: without both", sized(8, b""), "map", [("", 0)]),
    ("43: a key twice", sized(8, sized(1, "k") + n(2, 1)) + sized(8, sized(1, "k") + n(2, 2)),
     "map", [("k", 2)]),
    ("43: an entry with more", sized(8, sized(1, "k") + n(2, 1) + n(3, 5)), "map", [("k", 1)]),
    ("43: an entry in the other order", sized(8, n(2, 1) + sized(1, "k")), "map", [("k", 1)]),
    ("43: messages are not merged", sized(23, n(1, 1) + sized(2, STREET)) + sized(23, n(1, 1)
     + sized(2, CITY)), "by", [(1, C)]),
    ("43: but those of an entry", sized(23, n(1, 1) + sized(2, STREET) + sized(2, CITY)), "by",
     [(1, AC)]),
    ("43: an entry without its message", sized(23, n(1, 1)), "by",
     [(1, {"street": None, "city": None, "many": []})]),
    ("43: a uint64 above 2^63", n(16, (1 << 64) - 1), "u64", -1),
    ("43: a uint32 above 2^31", n(15, (1 << 32) - 1), "u32", -1),
    ("a fixed32 above it", tag(26, 5) + b"\xff" * 4, "f32", -1),
    ("a sint64", n(25, 3), "s64", -2),
    ("a bool of 2", n(18, 2), "flag", True),
    ("a bool of 2^32", n(18, 1 << 32), "flag", True),
    ("-0.0", tag(17, 1) + bytes(7) + b"\x80", "number", -0.0),
    ("0.0", tag(17, 1) + bytes(8), "number", None),
    ("half a double", tag(17, 1) + bytes(7), "number", Fault.TRUNCATED),
    ("half a float", tag(24, 5) + bytes(3), "real", Fault.TRUNCATED),
    ("a moment", sized(13, n(1, -1) + n(2, 999_999_999)), "at", SECOND),
    ("the epoch", sized(13, b""), "at", datetime.datetime(1970, 1, 1, tzinfo=UTC)),
    ("a moment that is merged", sized(13, n(1, -1)) + sized(13, n(2, 999_999_999)), "at", SECOND),
    ("a moment beyond 64 bits", sized(13, n(1, 1 << 62)), "at", Fault.TIMESTAMP),
    ("the same before", sized(13, n(1, -(1 << 63))), "at", Fault.TIMESTAMP),
    ("a duration", sized(14, n(1, -1) + n(2, -1500)), "took",
     datetime.timedelta(seconds=-1, microseconds=-1)),
    ("a wrapper", sized(19, b""), "wrapped", {"value": None}),
    ("an any", sized(20, sized(1, "t") + sized(2, b"\0")), "any",
     {"type_url": "t", "value": b"\0"}),
    ("what is in a message without columns", sized(21, b"\xff\xff") + n(1, 5), "i32", 5),
]  # fmt: skip


def _name(case: Any) -> str | None:
    return case if isinstance(case, str) and case else None


@EACH
@pytest.mark.parametrize(("name", "data", "column", "found"), PLAIN, ids=_name)
def test_bytes(name: str, data: bytes, column: str, found: Any) -> None:
    good = n(1, 1) + sized(6, b"\1")
    rows = decoded("Plain", [good, data, good, data])
    assert not rows.status[[0, 2]].any()
    values = rows.array.to_pylist()
    assert values[0] == values[2]
    assert values[0]["many"] == [1]
    if isinstance(found, Fault):
        assert rows.status[1] == rows.status[3] == found
        assert rows.reason(1) == (f"{column}: {found.reason}" if column else found.reason)
        assert values[1] is None
    else:
        assert not rows.status[1], rows.reason(1)
        assert values[1][column] == values[3][column] == found
        assert not isinstance(found, float) or repr(values[1][column]) == repr(found)


EARLIER: list[tuple[str, bytes, str, Any]] = [
    ("an enum that is none", n(2, 3), "kind", None),
    ("after one that is", n(2, 1) + n(2, 3), "kind", "LEFT"),
    ("among others", n(3, 1) + n(3, 3) + n(3, 2), "kinds", ["LEFT", "RIGHT"]),
    ("packed", sized(3, b"\1\3\2"), "kinds", ["LEFT", "RIGHT"]),
    ("in a map", sized(7, sized(1, "k") + n(2, 3)) + sized(7, sized(1, "l") + n(2, 1)), "turns",
     [("l", "ON")]),
    ("a default", b"", "five", 5),
    ("not the default", n(4, 0), "five", 0),
    ("a default of text", b"", "text", "né"),
    ("not that", sized(5, ""), "text", ""),
    ("a default of an enum", b"", "side", "RIGHT"),
    ("a group", tag(8, 3) + n(1, 5) + tag(8, 4), "part", {"v": 5}),
    ("a group twice", (tag(8, 3) + n(1, 5) + tag(8, 4)) * 2, "part", {"v": 5}),
    ("a group as a message", sized(8, n(1, 5)), "part", None),
    ("a group that does not end", tag(8, 3) + n(1, 5), "part", Fault.GROUP),
    ("what is required", b"", "must", None),
    ("an extension", n(100, 5), "must", None),
    ("not packed, of what is", n(9, 1) + n(9, 2), "packed", [1, 2]),
    ("packed, of what is not", sized(10, b"\1\2"), "plain", [1, 2]),
]  # fmt: skip


@EACH
@pytest.mark.parametrize(("name", "data", "column", "found"), EARLIER, ids=_name)
def test_bytes_of_proto2(name: str, data: bytes, column: str, found: Any) -> None:
    rows = decoded("Old", [data, b"", data])
    assert not rows.status[1]
    if isinstance(found, Fault):
        assert rows.status[0] == rows.status[2] == found
        assert rows.reason(0) == f"{column}: {found.reason}"
    else:
        assert [each[column] for each in rows.array.to_pylist()[::2]] == [found] * 2


def test_unknown_fields_are_skipped_in_all_rows_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a compiled engine the other one takes many times as long."""
    monkeypatch.setattr(Engines, "_again", lambda *_: pytest.fail("a row is read by itself"))
    wide = tag(100_000, 2) + b"\1x"
    others = n(99, 300) + tag(98, 1) + bytes(8) + wide + tag(97, 5) + bytes(4)
    with using("waves"):
        rows = decoded("Plain", [others + n(1, 7) + others + n(2, 1) + others, n(1, 7)] * 2)
    assert [row["i32"] for row in rows.array.to_pylist()] == [7] * 4


def test_defaults_where_they_are_wanted() -> None:
    typing = ProtobufTyping(emit_default_values=True)
    found = decoded("Plain", [b""], typing=typing).array.to_pylist()[0]
    wanted = {"i32": 0, "maybe": None, "text": "", "data": b"", "kind": "VIEW", "to": None}
    assert found | wanted == found
    assert found["choice"] is None


def test_types_are_those_of_from_protobuf() -> None:
    kind = reader("Plain").arrow_type
    found = {each.name: each.type for each in kind}
    assert found["at"] == pa.timestamp("us", "UTC")
    assert found["took"] == pa.duration("us")
    assert found["map"] == pa.map_(pa.string(), pa.int32())
    assert found["wrapped"] == pa.struct([("value", pa.int32())])
    assert (found["u32"], found["u64"], found["f32"]) == (pa.int32(), pa.int64(), pa.int32())
    assert "empty" not in found
    assert all(each.nullable for each in kind)


def test_the_other_types_of_from_protobuf() -> None:
    typing = ProtobufTyping(
        upcast_unsigned_ints=True, unwrap_primitive_wrapper_types=True, enums_as_ints=True
    )
    row = n(15, (1 << 32) - 1) + n(16, (1 << 64) - 1) + sized(19, b"") + n(5, 99)
    array = decoded("Plain", [row], typing=typing).array
    found = {each.name: each.type for each in array.type}
    assert (found["u32"], found["u64"]) == (pa.int64(), pa.decimal128(20, 0))
    assert (found["wrapped"], found["kind"]) == (pa.int32(), pa.int32())
    value = array.to_pylist()[0]
    assert value["u32"] == (1 << 32) - 1
    assert value["u64"] == Decimal((1 << 64) - 1)
    assert (value["wrapped"], value["kind"]) == (0, 99)


@pytest.mark.parametrize(
    ("name", "path"),
    [("Node", "at next"), ("Tree", r"at nodes\[\]\.next"),
     ("Json", r"at any\.fields\{\}\.struct_value")],
)  # fmt: skip
def test_a_message_that_holds_itself_is_refused_with_its_path(name: str, path: str) -> None:
    with pytest.raises(RecursiveTypeError, match=rf"{path}: message .* holds itself"):
        reader(name)


@EACH
def test_a_message_that_holds_itself_is_passed_over() -> None:
    data = b""
    for _ in range(5000):
        data = sized(2, data)
    rows = [sized(1, n(1, 5) + data) + n(2, 7)] * 2
    assert decoded("Tree", rows, fields=["v"]).array.to_pylist() == [{"v": 7}] * 2
    found = decoded("Tree", rows, fields=["nodes.v", "v"]).array.to_pylist()
    assert found == [{"nodes": [{"v": 5}], "v": 7}] * 2


@EACH
def test_messages_within_maps_as_deep_as_columns_go() -> None:
    depth = 45
    text = "".join(
        f"message M{place} {{ map<int32, M{place + 1}> m = 1; int32 v = 2; }}"
        for place in range(depth)
    )
    schema = f'syntax = "proto3"; {text} message M{depth} {{ int32 v = 2; }}'
    by = ProtobufReader(SchemaText(SchemaType.PROTOBUF, schema), "M0")
    data = n(2, 7)
    for _ in range(depth):
        data = sized(1, n(1, 5) + sized(2, data)) + n(2, 1)
    found = by.decode([by.program()], Encoded(*laid([data, b"\xff", data + sized(1, b""), data])))
    found.array.validate(full=True)
    assert found.status.tolist() == [Fault.OK, Fault.TRUNCATED, Fault.OK, Fault.OK]
    values = found.array.to_pylist()
    assert len(values[2]["m"]) == 2
    for inner in (values[0], values[3]):
        for _ in range(depth):
            ((key, inner),) = inner["m"]  # noqa: PLW2901  # down the levels
            assert key == 5
        assert inner == {"v": 7}


CLOSED = """
syntax = "proto2";
enum Known { A = 0; B = 1; }
message Item { map<string, Known> kinds = 1; oneof is { Inner inner = 2; int32 number = 3; } }
message Inner {
  repeated int32 many = 1;
  repeated Deep deep = 2;
  message Deep { repeated int32 x = 1; }
}
message Row { repeated Item items = 1; }
"""


@EACH
def test_what_a_row_drops_goes_to_no_other_item() -> None:
    """One row has an entry that its closed enum lacks, and a message that begins anew."""
    by = ProtobufReader(SchemaText(SchemaType.PROTOBUF, CLOSED), "Row")
    entry = {number: sized(1, sized(1, f"k{number}") + n(2, number)) for number in (0, 1, 7)}

    def inner(*numbers: int) -> bytes:
        many = b"".join(n(1, number) for number in numbers)
        return sized(2, many + b"".join(sized(2, n(1, number)) for number in numbers))

    plain = sized(1, entry[0]) + sized(1, inner(1, 2))
    odd = sized(1, entry[7] + entry[1]) + sized(1, inner(3, 4) + n(3, 9) + inner(5) + entry[7])
    rows = [plain] * 12 + [odd] + [plain] * 12
    found = by.decode([by.program()], Encoded(*laid(rows)))
    found.array.validate(full=True)
    assert not found.status.any()
    for values, row in zip(found.array.to_pylist(), rows, strict=True):
        first, second = values["items"]
        numbers = [1, 2] if row == plain else [5]
        assert first["kinds"] == ([("k0", "A")] if row == plain else [("k1", "B")])
        assert second["kinds"] == []
        assert second["inner"] == {"many": numbers, "deep": [{"x": [each]} for each in numbers]}


@EACH
def test_only_what_is_wanted() -> None:
    data = n(1, 5) + sized(7, "x") * 3 + sized(9, STREET + CITY) + sized(13, n(1, 5) + n(2, 1))
    found = decoded("Plain", [data] * 3, fields=["to.city", "at.seconds", "i32"])
    assert found.array.to_pylist() == [{"i32": 5, "to": {"city": "c"}, "at": {"seconds": 5}}] * 3
    with pytest.raises(SchemaError, match=r"message p\.Address has no field 'zip'"):
        reader("Plain", fields=["to.zip"])
    with pytest.raises(SchemaError, match="int32 has no field 'x'"):
        reader("Plain", fields=["i32.x"])


def test_a_tombstone_is_null_without_a_fault() -> None:
    by = reader("Address")
    null = np.array([False, True])
    found = by.decode([by.program()], Encoded(*laid([STREET, b""]), null=null))
    assert found.array.to_pylist() == [A, None]
    assert not found.status.any()


def test_a_reader_can_be_pickled() -> None:
    by = reader("Plain", fields=["i32"], typing=ProtobufTyping(emit_default_values=True))
    again = pickle.loads(pickle.dumps(by))
    found = again.decode([again.program(TEXT)], Encoded(*laid([b""])))
    assert found.array.to_pylist() == [{"i32": 0}]


def test_the_message_that_was_written_is_that_of_the_indexes() -> None:
    by = reader("Outer.Inner")
    at = by.schema.indexes("p.Outer.Inner")
    assert by.program(descriptors(), at).paths
    assert reader("Outer").program(TEXT, at[:1]).paths
    with pytest.raises(
        UnresolvableError,
        match=r"message p\.Plain was written\. It cannot be read as message p\.Outer",
    ):
        by.program(descriptors(), (0,))
    with pytest.raises(UnresolvableError, match="message indexes"):
        by.program(descriptors(), (99,))
    with pytest.raises(UnresolvableError, match="message indexes"):
        by.program(descriptors(), (*at, 0, 0))
    with pytest.raises(UnresolvableError, match="was written"):
        reader("Old").program(compiled(SchemaText(SchemaType.PROTOBUF, PROTO.replace(
            'import "old.proto";', ""))))  # fmt: skip


def test_claimed_lengths_allocate_nothing() -> None:
    by = reader("Plain")
    rows = [tag(6, 2) + varint(1 << 30), tag(7, 2) + varint((1 << 31) - 1)] * 50
    program, data = by.program(), laid(rows)
    with traced() as memory:
        found = by.decode([program], Encoded(*data))
    assert memory.peak_bytes < 1_000_000
    assert found.status.all()


@EACH
def test_items_of_many_columns_are_as_many_as_their_bytes_justify() -> None:
    fields = "".join(f"string f{place} = {place};" for place in range(1, 501))
    text = f'syntax = "proto3"; message Wide {{ {fields} }} message M {{ repeated Wide w = 1; }}'
    by = ProtobufReader(SchemaText(SchemaType.PROTOBUF, text), "M")
    most = SLOTS_OF_A_ROW // (1000 - 2 * SLOTS_OF_A_BYTE)
    rows = [sized(1, b"") * count for count in (most, most + 1, most)]
    found = by.decode([by.program()], Encoded(*laid(rows)))
    found.array.validate(full=True)
    assert found.status.tolist() == [Fault.OK, Fault.COUNT, Fault.OK]
    assert [len(each["w"]) for each in found.array.to_pylist()[::2]] == [most] * 2


@EACH
def test_bytes_may_be_fewer_than_a_word() -> None:
    by = reader("Plain")
    ends = np.array([0, 3, 3])
    found = by.decode([by.program()], Encoded(b"\x89\x01a", np.array([0, 0, 3]), ends))
    assert found.status.tolist() == [Fault.OK, Fault.TRUNCATED, Fault.OK]
    assert not len(by.decode([by.program()], Encoded(b"", ends[:0], ends[:0])).array)
