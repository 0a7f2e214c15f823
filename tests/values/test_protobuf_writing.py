"""Writing of messages: refused at planning, or upb reads what was given, from a column and a dict.

Tests of the first half draw a message, a type and values. upb and `protobuf_columns` are the judge.
"""

import datetime
import pickle
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import duration_pb2, json_format, timestamp_pb2
from hypothesis import example, given
from hypothesis import strategies as st

from spark_kafka_source.records import UnencodableRowError
from spark_kafka_source.values import SchemaText, SchemaType
from spark_kafka_source.values.fitting import UnfitColumnError
from spark_kafka_source.values.protobuf import ProtobufWriter
from tests.values import protobuf_columns as columns
from tests.values.protobuf_oracle import reader_of
from tests.values.protobuf_schemas import Files, file_set, message_class
from tests.values.protobuf_wire import sized
from tests.values.test_protobuf_cases import descriptors, proto
from tests.values.test_protobuf_oracle import SEEDS, drawn, typings


def writer_of(file: Any, **more: Any) -> ProtobufWriter:
    return ProtobufWriter(file_set(file).SerializeToString(), "p.M0", **more)


@drawn
@given(SEEDS)
def test_what_is_written_is_what_was_given_or_nothing_is(seed: int) -> None:
    _written_or_refused(seed, 8)


@pytest.mark.long
def test_ten_thousand_pairs_of_message_and_type() -> None:
    refused = sum(not _written_or_refused(seed, 2) for seed in range(10_000))
    assert 500 < refused < 2_000


def _written_or_refused(seed: int, values: int) -> bool:
    """Draw a message, a type and values. Return whether the type fits."""
    random = Random(seed)
    file = Files(random).file()
    message, by = message_class(file), writer_of(file)
    kind = columns.type_of(random, message.DESCRIPTOR)
    try:
        by.fit(kind)
    except UnfitColumnError as error:
        assert error.expected
        with pytest.raises(UnfitColumnError):
            by.encode(pa.array([], kind), b"")
        return False
    for _ in range(values):
        value = columns.value_of(random, kind, 0.1) or {each.name: None for each in kind}
        array = pa.array([columns.as_arrow(value, kind)], kind)
        try:
            (data,) = by.encode(array, b"!").to_pylist()
        except UnencodableRowError as error:
            assert error.rows == (0,)
            _refused_as_a_dict(by, value, kind, error.reason)
            continue
        assert data[:1] == b"!"
        types = {each.name: each.type for each in kind}
        wanted = {
            each.name: columns.meant(each, value.get(each.name), types.get(each.name, pa.null()))
            for each in message.DESCRIPTOR.fields
        }
        assert columns.found(message.FromString(data[1:])) == wanted
        _same_from_a_dict(by, value, kind, data[1:])
    return True


def _same_from_a_dict(by: ProtobufWriter, value: Any, kind: pa.DataType, data: bytes) -> None:
    try:
        given = columns.python(value, kind)
    except (ValueError, OverflowError):
        return
    assert by.one(given) == data


def _refused_as_a_dict(by: ProtobufWriter, value: Any, kind: pa.DataType, reason: str) -> None:
    if "32 bits" in reason:
        return  # A negative int has no width: in a dict it stands for its bits.
    try:
        given = columns.python(value, kind)
    except (ValueError, OverflowError):
        return
    with pytest.raises(UnencodableRowError):
        by.one(given)


@drawn
@given(SEEDS)
def test_what_is_read_can_be_written(seed: int) -> None:
    random = Random(seed)
    file = Files(random).file()
    writer_of(file).fit(reader_of(file, typings(random)).arrow_type)


UTC = pa.timestamp("us", "UTC")
PLAIN = ProtobufWriter(descriptors(), "p.Plain")


def struct(**fields: pa.DataType) -> pa.DataType:
    return pa.struct(list(fields.items()))


MOMENT = "google.protobuf.Timestamp. Give a timestamp with a time zone, or a struct of seconds and"
UNFIT: list[tuple[pa.DataType, str, str]] = [
    (struct(at=pa.int64()), "at", MOMENT),
    (struct(at=pa.int32()), "at", MOMENT),
    (struct(at=pa.float64()), "at", MOMENT),
    (struct(at=pa.timestamp("us")), "at", MOMENT),
    (struct(at=pa.date32()), "at", MOMENT),
    (struct(at=struct(seconds=pa.float64())), "at.seconds", "The schema has int64"),
    (struct(at=struct(second=pa.int64())), "at.second", "The schema has: seconds, nanos"),
    (struct(took=pa.int64()), "took", "Duration. Give a duration, or a struct of seconds"),
    (struct(took=pa.timestamp("us", "UTC")), "took", "Give a duration"),
    (struct(wrapped=pa.int64()), "wrapped", "Int32Value. Give int32, or a struct of value"),
    (struct(wrapped=pa.string()), "wrapped", "Int32Value"),
    (struct(wrapped=struct(value=pa.bool_())), "wrapped.value", "The schema has int32"),
    (struct(any=pa.string()), "any", "Any. Give a struct of type_url, value"),
    (struct(real=pa.float64()), "real", "of the type double. The schema has float"),
    (struct(real=pa.int32()), "real", "The schema has float"),
    (struct(number=pa.int64()), "number", "The schema has double"),
    (struct(flag=pa.int32()), "flag", "The schema has bool"),
    (struct(i32=pa.bool_()), "i32", "The schema has int32"),
    (struct(i32=pa.int64()), "i32", "The schema has int32"),
    (struct(s64=pa.string()), "s64", "The schema has sint64"),
    (struct(s64=pa.decimal128(9)), "s64", "The schema has sint64"),
    (struct(u32=pa.uint64()), "u32", "The schema has uint32"),
    (struct(u64=pa.decimal128(21)), "u64", "The schema has uint64"),
    (struct(u64=pa.decimal128(9, 1)), "u64", "The schema has uint64"),
    (struct(text=pa.int32()), "text", "The schema has string"),
    (struct(text=pa.binary()), "text", "The schema has string"),
    (struct(data=pa.string()), "data", "The schema has bytes"),
    (struct(kind=pa.int64()), "kind", "The schema has enum p.Kind"),
    (struct(kind=pa.binary()), "kind", "The schema has enum p.Kind"),
    (struct(many=pa.int32()), "many", "The schema has repeated int32"),
    (struct(many=pa.list_(pa.string())), "many[]", "The schema has int32"),
    (struct(i32=pa.list_(pa.int32())), "i32", "The schema has int32"),
    (struct(map=pa.map_(pa.string(), pa.string())), "map{}", "The schema has int32"),
    (struct(map=pa.map_(pa.int32(), pa.int32())), "map{}", "The schema has string"),
    (struct(map=struct(a=pa.int32())), "map", "The schema has map<string, int32>"),
    (struct(map=pa.list_(struct(key=pa.string()))), "map", "map<string, int32>"),
    (struct(to=pa.string()), "to", "p.Address. Give a struct of street, city, many"),
    (struct(to=struct(zip=pa.string())), "to.zip", "has: street, city, many. To leave it out"),
    (struct(to=struct(City=pa.string())), "to.City", "did you mean 'city'?"),
    (struct(places=pa.list_(struct(zip=pa.null()))), "places[].zip", "no such field"),
    (struct(by=pa.map_(pa.int32(), struct(zip=pa.int32()))), "by{}.zip", "no such field"),
    (struct(I32=pa.int32()), "I32", "did you mean 'i32'?"),
    (pa.struct([("i32", pa.int32())] * 2), "i32", "given twice"),
    (pa.string(), "", "message p.Plain. Give a struct of i32"),
    (pa.list_(struct(i32=pa.int32())), "", "message p.Plain"),
]


@pytest.mark.parametrize(("kind", "path", "said"), UNFIT, ids=str)
def test_what_does_not_fit_is_refused_before_any_row(
    kind: pa.DataType, path: str, said: str
) -> None:
    for refused in (PLAIN.fit, lambda kind: PLAIN.encode(pa.array([], kind), b"")):
        with pytest.raises(UnfitColumnError) as failed:
            refused(kind)
        assert failed.value.column == path
        assert said in str(failed.value)


def test_a_required_field_is_missed_before_any_row() -> None:
    by = ProtobufWriter(descriptors(), "p.Old")
    for kind in (struct(five=pa.int32()), struct(must=pa.null())):
        with pytest.raises(UnfitColumnError, match=r"'must' .* missing.*has required int32"):
            by.fit(kind)
    by.fit(struct(must=pa.int32()))


DAY = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901, datetime.UTC)
WHOLE = DAY.replace(microsecond=0)
BEFORE = datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, datetime.UTC)
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
TIMEZONE = datetime.timezone(datetime.timedelta(hours=2))
TOOK = datetime.timedelta(seconds=-1, microseconds=-500)
GIVEN: list[tuple[str, pa.DataType, Any, dict[str, Any]]] = [
    ("at", UTC, DAY, {"at": DAY}),
    ("at", pa.timestamp("us", "Asia/Tokyo"), DAY, {"at": DAY}),
    ("at", pa.timestamp("s", "UTC"), WHOLE, {"at": WHOLE}),
    ("at", UTC, BEFORE, {"at": {"seconds": -1, "nanos": 999_999_000}}),
    ("at", UTC, DAY.astimezone(TIMEZONE), {"at": DAY}),
    ("at", struct(seconds=pa.int64(), nanos=pa.int32()), {"seconds": 5, "nanos": 7},
     {"at": {"seconds": 5, "nanos": 7}}),
    ("at", struct(nanos=pa.int16()), {"nanos": 7}, {"at": {"nanos": 7}}),
    ("took", pa.duration("us"), TOOK, {"took": {"seconds": -1, "nanos": -500_000}}),
    ("took", struct(seconds=pa.int64()), {"seconds": 5}, {"took": {"seconds": 5}}),
    ("wrapped", pa.int32(), 0, {"wrapped": {}}),
    ("wrapped", pa.int8(), -7, {"wrapped": {"value": -7}}),
    ("wrapped", struct(value=pa.int32()), {"value": None}, {"wrapped": {}}),
    ("wrapped", pa.int32(), None, {}),
    ("any", struct(type_url=pa.string(), value=pa.binary()), {"type_url": "t", "value": b"v"},
     {"any": {"type_url": "t", "value": b"v"}}),
    ("empty", struct(), {}, {"empty": {}}),
    ("u32", pa.int32(), -1, {"u32": (1 << 32) - 1}),
    ("u32", pa.uint32(), (1 << 32) - 1, {"u32": (1 << 32) - 1}),
    ("u32", pa.int64(), (1 << 32) - 1, {"u32": (1 << 32) - 1}),
    ("f32", pa.int32(), -2, {"f32": (1 << 32) - 2}),
    ("u64", pa.int64(), -1, {"u64": (1 << 64) - 1}),
    ("u64", pa.uint64(), (1 << 64) - 1, {"u64": (1 << 64) - 1}),
    ("u64", pa.decimal128(20), Decimal((1 << 64) - 1), {"u64": (1 << 64) - 1}),
    ("u64", pa.decimal128(5), Decimal(7), {"u64": 7}),
    ("kind", pa.string(), "CART", {"kind": 1}),
    ("kind", pa.string(), "99", {"kind": 99}),
    ("kind", pa.string(), "-1", {"kind": -1}),
    ("kind", pa.string(), "0", {}),
    ("kind", pa.string(), "VIEW", {}),
    ("kind", pa.int32(), 99, {"kind": 99}),
    ("kind", pa.dictionary(pa.int8(), pa.string()), "CART", {"kind": 1}),
    ("real", pa.float32(), 0.5, {"real": 0.5}),
    ("real", pa.float32(), -0.0, {"real": -0.0}),
    ("number", pa.float32(), 0.5, {"number": 0.5}),
    ("number", pa.int32(), 7, {"number": 7}),
    ("data", pa.binary(), b"\0\0", {"data": b"\0\0"}),
    ("data", pa.binary(2), b"ab", {"data": b"ab"}),
    ("flag", pa.bool_(), False, {}),
    ("choice", pa.int32(), 0, {"choice": 0}),
    ("many", pa.large_list(pa.int16()), [0, -1], {"many": [0, -1]}),
    ("many", pa.list_(pa.null()), [], {}),
    ("many", pa.list_(pa.int32(), 2), [1, 2], {"many": [1, 2]}),
    ("map", pa.map_(pa.string(), pa.int32()), [("a", 0)], {"map": {"a": 0}}),
    ("map", pa.map_(pa.string(), pa.null()), [], {}),
    ("places", pa.list_(struct(city=pa.string())), [{"city": None}, {"city": "c"}],
     {"places": [{}, {"city": "c"}]}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "kind", "value", "said"), GIVEN, ids=str)
def test_what_fits_is_written_from_a_column_and_from_a_dict(
    name: str, kind: pa.DataType, value: Any, said: dict[str, Any]
) -> None:
    array = pa.array([{name: value}, {name: None}], struct(**{name: kind}))
    same = proto("Plain")(**said).SerializeToString(deterministic=True)
    assert PLAIN.encode(array, b"!").to_pylist() == [b"!" + same, b"!"]
    assert PLAIN.one({name: value}) == same
    assert PLAIN.one({name: None}) == b""


TIMES = ProtobufWriter(
    SchemaText(
        SchemaType.PROTOBUF,
        """syntax = "proto3"; package p;
        import "google/protobuf/duration.proto"; import "google/protobuf/timestamp.proto";
        message Times { google.protobuf.Timestamp at = 1; google.protobuf.Duration took = 2;
          repeated google.protobuf.Timestamp ats = 3; repeated google.protobuf.Duration tooks = 4;
          map<string, google.protobuf.Timestamp> at_of = 5;
          map<string, google.protobuf.Duration> took_of = 6; }""",
    )
)
MOMENTS = {"at": timestamp_pb2.Timestamp, "took": duration_pb2.Duration}
NUMBER_OF = {"at": 1, "took": 2}
EDGES = (0, -62_135_596_800, 253_402_300_799, -315_576_000_000, 315_576_000_000)
NANOS = (0, 1, -1, 999_999_999, -999_999_999)
SECONDS = st.integers(-(1 << 63), (1 << 63) - 1) | st.builds(
    int.__add__, st.sampled_from(EDGES), st.integers(-1, 1)
)
NAMES = st.sampled_from(sorted(MOMENTS))


def judged(name: str, seconds: int, nanos: int) -> bytes | None:
    """Return the bytes of a moment, or None if Google's own code does not take it."""
    moment = MOMENTS[name](seconds=seconds, nanos=nanos)
    try:
        json_format.MessageToJson(moment)
    except (json_format.Error, ValueError):
        return None
    return bytes(moment.SerializeToString())


def held_to(judge: bytes | None, name: str, value: Any, kind: pa.DataType) -> None:
    """Write a moment after a null, as a field, an item and an entry."""
    forms = [
        (name, name, kind, value),
        (f"{name}s", f"{name}s[]", pa.list_(kind), [value]),
        (f"{name}_of", f"{name}_of{{}}", pa.map_(pa.string(), kind), [("k", value)]),
    ]
    for field, path, column, each in forms:
        array = pa.array([{field: None}, {field: each}], struct(**{field: column}))
        if judge is not None:
            _, data = TIMES.encode(array, b"").to_pylist()
            assert data.endswith(judge)
            assert field != name or data == sized(NUMBER_OF[name], judge)
            continue
        with pytest.raises(UnencodableRowError, match="are no google") as error:
            TIMES.encode(array, b"")
        assert error.value.rows == (1,)
        assert error.value.reason.startswith(f"{path}: ")


def held_to_in_a_dict(judge: bytes | None, name: str, value: Any) -> None:
    for field, path, each in (
        (name, name, value),
        (f"{name}s", f"{name}s[]", [value]),
        (f"{name}_of", f"{name}_of{{}}", {"k": value}),
    ):
        if judge is not None:
            data = TIMES.one({field: each})
            assert data.endswith(judge)
            assert field != name or data == sized(NUMBER_OF[name], judge)
            continue
        with pytest.raises(UnencodableRowError, match="are no google") as error:
            TIMES.one({field: each})
        assert error.value.reason.startswith(f"{path}: ")


@drawn
@given(NAMES, SECONDS | st.none(), st.integers(-(1 << 31), (1 << 31) - 1) | st.sampled_from(NANOS))
@example("at", 5, 2_000_000_000)
@example("at", 5, -1)
@example("at", 1 << 62, 0)
@example("took", 5, -1)
@example("took", -5, 1)
@example("took", None, -1)
def test_seconds_and_nanos_are_written_if_others_take_them(
    name: str, seconds: int | None, nanos: int
) -> None:
    judge = judged(name, seconds or 0, nanos)
    value = {"seconds": seconds, "nanos": nanos or None}
    held_to(judge, name, value, struct(seconds=pa.int64(), nanos=pa.int32()))
    held_to_in_a_dict(judge, name, value)


@drawn
@given(NAMES, SECONDS, st.sampled_from(["s", "ms", "us", "ns"]), st.integers(-1, 1))
@example("at", 253_402_300_800, "s", 0)
@example("at", -62_135_596_800, "us", -1)
def test_times_are_written_if_others_take_them(
    name: str, seconds: int, unit: str, more: int
) -> None:
    a_second = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}[unit]
    ticks = max(-(1 << 63), min(seconds * a_second + more, (1 << 63) - 1))
    kind = pa.timestamp(unit, "UTC") if name == "at" else pa.duration(unit)
    judge = judged(name, *split(name, ticks * (1_000_000_000 // a_second)))
    held_to(judge, name, pa.scalar(ticks, pa.int64()).cast(kind), kind)


def split(name: str, nanos: int) -> tuple[int, int]:
    """Return seconds and nanoseconds. Those of a duration have one sign."""
    if name == "took" and nanos < 0:
        seconds, rest = divmod(-nanos, 1_000_000_000)
        return -seconds, -rest
    return divmod(nanos, 1_000_000_000)


ZONES = st.integers(-23, 23).map(lambda hours: datetime.timezone(datetime.timedelta(hours=hours)))


@drawn
@given(st.timedeltas() | st.datetimes(timezones=ZONES))
@example(datetime.timedelta(seconds=315_576_000_000, microseconds=1))
@example(datetime.datetime.max.replace(tzinfo=TIMEZONE))
@example(datetime.datetime.max.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=-2))))
@example(datetime.datetime.min.replace(tzinfo=TIMEZONE))
def test_python_times_are_written_if_others_take_them(
    value: datetime.timedelta | datetime.datetime,
) -> None:
    name = "took" if isinstance(value, datetime.timedelta) else "at"
    since = value if isinstance(value, datetime.timedelta) else value - EPOCH
    nanos = since // datetime.timedelta(microseconds=1) * 1000
    held_to_in_a_dict(judged(name, *split(name, nanos)), name, value)


def test_only_googles_own_moments_have_bounds() -> None:
    by = ProtobufWriter(
        SchemaText(
            SchemaType.PROTOBUF,
            """syntax = "proto3"; package p; message M { Timestamp at = 1; }
            message Timestamp { int64 seconds = 1; int32 nanos = 2; }""",
        ),
        "p.M",
    )
    assert by.one({"at": {"nanos": -1}}) == sized(1, b"\x10" + b"\xff" * 9 + b"\x01")


NOT_IN_A_DICT: list[tuple[dict[Any, Any], str]] = [
    ({"i32": 10**5000}, "i32: a number of thousands of digits (int) is no int32"),
    ({"i32": 1 << 31}, "i32: 2147483648 (int) is no int32"),
    ({"i32": True}, "i32: True (bool) is no int32"),
    ({"i32": 1.0}, "i32: 1.0 (float) is no int32"),
    ({"i32": "1"}, "i32: '1' (str) is no int32"),
    ({"i32": Decimal(1)}, "is no int32"),
    ({"u32": 1 << 32}, "is no uint32"),
    ({"u32": -(1 << 31) - 1}, "is no uint32"),
    ({"u64": 1 << 64}, "is no uint64"),
    ({"u64": Decimal(-1)}, "u64: no number of 64 bits without a sign"),
    ({"u64": Decimal("1.5")}, "u64: no number of 64 bits without a sign"),
    ({"u64": Decimal("NaN")}, "u64: no number of 64 bits without a sign"),
    ({"flag": 1}, "is no bool"),
    ({"real": 1e39}, "real: 1e+39 is no float"),
    ({"real": (1 << 24) + 1}, "is no float"),
    ({"real": True}, "is no float"),
    ({"real": "1"}, "is no float"),
    ({"number": (1 << 53) + 1}, "is no double"),
    ({"number": 10**400}, "is no double"),
    ({"number": Decimal(1)}, "is no double"),
    ({"text": b"a"}, "is no string"),
    ({"text": "\ud800"}, "is no string"),
    ({"data": "a"}, "is no bytes"),
    ({"kind": "NONE"}, "kind: 'NONE' is none of the symbols VIEW, CART"),
    ({"kind": "01"}, "kind: '01' is none of the symbols"),
    ({"kind": "2147483648"}, "is none of the symbols"),
    ({"kind": 1 << 31}, "is none of the symbols"),
    ({"kind": True}, "is none of the symbols"),
    ({"kind": 1.0}, "is none of the symbols"),
    (
        {"at": 1700000000},
        "at: 1700000000 (int) is no google.protobuf.Timestamp. Give a timestamp",
    ),
    ({"at": datetime.datetime(2026, 1, 1)}, "has no time zone. Give it a time zone"),
    ({"at": datetime.date(2026, 1, 1)}, "is no google.protobuf.Timestamp"),
    ({"at": {"seconds": 1.5}}, "at.seconds: 1.5 (float) is no int64"),
    ({"took": 5}, "is no google.protobuf.Duration. Give a duration"),
    ({"took": DAY}, "is no google.protobuf.Duration"),
    ({"wrapped": "5"}, "wrapped: '5' (str) is no int32"),
    ({"any": "{}"}, "any: '{}' (str) is no google.protobuf.Any. Give a struct of type_url"),
    ({"to": "x"}, "to: 'x' (str) is no p.Address. Give a struct of street"),
    ({"to": {"zip": 1}}, "to.zip: the schema has no such field. The schema has: street, city"),
    ({"to": {"City": "x"}}, "did you mean 'city'?"),
    ({"zip": None}, "zip: the schema has no such field"),
    ({5: None}, "5: the schema has no such field"),
    ({"places": [{"many": ["x"]}]}, "places[].many[]: 'x' (str) is no int32"),
    ({"places": [None]}, "places[]: null, where Protobuf has none"),
    ({"by": {1: {"city": 5}}}, "by{}.city: 5 (int) is no string"),
    ({"by": {"1": {}}}, "by{}: '1' (str) is no int32"),
    ({"by": {1: None}}, "by{}: null, where Protobuf has none"),
    ({"map": [(None, 1)]}, "map{}: null, where Protobuf has none"),
    ({"many": "ab"}, "many: 'ab' is no list"),
    ({"many": {"a": 1}}, "many: {'a': 1} is no list"),
    ({"map": [1]}, "map: [1] is no dict"),
    ({"choice": 1, "other": "x"}, "several of choice, other, of which message p.Plain has one"),
]


def _id(case: Any) -> str | None:
    return case if isinstance(case, str) else None


@pytest.mark.parametrize(("value", "said"), NOT_IN_A_DICT, ids=_id)
def test_what_does_not_fit_is_refused_in_a_dict(value: dict[Any, Any], said: str) -> None:
    with pytest.raises(UnencodableRowError) as failed:
        PLAIN.one(value)
    assert failed.value.rows == (0,)
    assert said in failed.value.reason


def test_a_value_is_a_dict_with_what_is_required() -> None:
    by = ProtobufWriter(descriptors(), "p.Old")
    for value, said in (([], "is no p.Old"), ({"must": None}, "must: null"), ({}, "must: null")):
        with pytest.raises(UnencodableRowError, match=said):
            by.one(value)
    closed = [("LEFT", 1), (2, 2)]
    for kind, number in closed:
        same = proto("Old")(must=0, kind=number).SerializeToString()
        assert by.one({"must": 0, "kind": kind}) == same
    for kind in ("1", 3, "NONE"):
        with pytest.raises(UnencodableRowError, match="none of the symbols LEFT, RIGHT"):
            by.one({"must": 0, "kind": kind})


def test_fields_are_left_out_only_by_their_path() -> None:
    by = ProtobufWriter(descriptors(), "p.Plain", ["note", "to.zip", "places[].zip"])
    inner = struct(zip=pa.int32(), city=pa.string())
    kind = struct(note=pa.date32(), to=inner, places=pa.list_(inner))
    value = {"note": None, "to": {"zip": 1, "city": "c"}, "places": [{"zip": 2, "city": "d"}]}
    same = proto("Plain")(to={"city": "c"}, places=[{"city": "d"}]).SerializeToString()
    for each in (by, pickle.loads(pickle.dumps(by))):
        assert each.encode(pa.array([value], kind), b"").to_pylist() == [same]
        assert each.one(value) == same
    with pytest.raises(UnfitColumnError):
        by.fit(struct(zip=pa.int32()))
    with pytest.raises(UnencodableRowError):
        by.one({"zip": 1})


def nested(depth: int) -> tuple[Any, pa.DataType]:
    """Return a `Node` with this many nodes, and its type."""
    value: dict[str, Any] = {"v": 7}
    kind = struct(v=pa.int32())
    for _ in range(depth - 1):
        value, kind = {"v": 1, "next": value}, struct(v=pa.int32(), next=kind)
    return value, kind


def test_a_message_that_holds_itself_is_written_as_deep_as_it_is_read() -> None:
    by = ProtobufWriter(descriptors(), "p.Node")
    value, kind = nested(100)
    (data,) = by.encode(pa.array([value], kind), b"").to_pylist()
    assert by.one(value) == data
    found = proto("Node").FromString(data)
    for _ in range(99):
        found = found.next
    assert found.v == 7
    deeper, kind = nested(101)
    with pytest.raises(UnfitColumnError, match="nested too deeply"):
        by.fit(kind)
    with pytest.raises(UnencodableRowError, match="more than 100 messages"):
        by.one(deeper)
    value["next"]["next"] = value
    with pytest.raises(UnencodableRowError, match="more than 100 messages"):
        by.one(value)


def test_nanoseconds_are_kept() -> None:
    at = pa.array([1, -1, None], pa.int64()).cast(pa.timestamp("ns", "UTC"))
    column = pa.StructArray.from_arrays([at], ["at"])
    found = [proto("Plain").FromString(each).at for each in PLAIN.encode(column, b"").to_pylist()]
    assert [(each.seconds, each.nanos) for each in found] == [(0, 1), (-1, 999_999_999), (0, 0)]


def test_items_of_no_type_are_refused_by_their_rows() -> None:
    kind = struct(many=pa.list_(pa.null()), map=pa.map_(pa.string(), pa.null()))
    array = pa.array([{"many": [], "map": []}, {"many": [None], "map": []}], kind)
    with pytest.raises(UnencodableRowError, match=r"Row 1: many\[\]: null"):
        PLAIN.encode(array, b"")
    array = pa.array([{"many": None, "map": [("a", None)]}], kind)
    with pytest.raises(UnencodableRowError, match=r"Row 0: map\{\}: null"):
        PLAIN.encode(array, b"")


def test_slices_of_columns_are_written_as_their_rows() -> None:
    rows = [{"many": [n], "map": [(str(n), n)], "to": {"city": str(n)}} for n in range(6)]
    kind = struct(
        many=pa.list_(pa.int32()), map=pa.map_(pa.string(), pa.int32()), to=struct(city=pa.string())
    )
    whole = PLAIN.encode(pa.array(rows, kind), b"").to_pylist()
    assert PLAIN.encode(pa.array(rows, kind).slice(2, 3), b"").to_pylist() == whole[2:5]
    assert [PLAIN.one(each) for each in rows] == whole
