"""The JSON form of typed values: from bytes to JSON, and back to the same bytes."""

import datetime
import json
import math
from collections.abc import Iterator
from contextlib import closing, suppress
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.command_line import json_text
from spark_kafka_source.command_line.json_form import from_json_form, to_json_form
from spark_kafka_source.producer.producer_config import config_from_arguments
from spark_kafka_source.records import UnencodableRowError
from spark_kafka_source.typed import TypedEncoding
from spark_kafka_source.values import SchemaText, SchemaType, decode_column
from spark_kafka_source.values.avro import TIME, AvroReader, AvroWriter
from spark_kafka_source.values.ddl import from_ddl
from spark_kafka_source.values.json import JsonReader
from spark_kafka_source.values.protobuf import ProtobufWriter
from tests.values.avro_oracle import written
from tests.values.avro_schemas import schemas, values
from tests.values.protobuf_oracle import decoded, reader_of
from tests.values.protobuf_schemas import Files, filled, message_class
from tests.values.test_avro_oracle import drawn
from tests.values.test_protobuf_encode import without_oneof_defaults
from tests.values.test_protobuf_oracle import SEEDS

MOMENT, LOCAL = pa.timestamp("us", "UTC"), pa.timestamp("us")


def back(value: Any, kind: pa.DataType) -> Any:
    """Return what `produce` makes of what `tail --json` prints for the value."""
    line = json.dumps(to_json_form(kind)(value))
    json.loads(line, parse_constant=pytest.fail)
    return from_json_form(kind)(json_text.read(line.encode()))


def rows_of(column: pa.Array) -> Iterator[tuple[int, Any]]:
    """Yield the rows that are not null, and that Python has: a time may be beyond its years."""
    for place, row in enumerate(column):
        with suppress(OverflowError, ValueError):
            if (value := row.as_py()) is not None:
                yield place, value


# -- there and back --------------------------------------------------------------------------------


@drawn
@given(st.data())
def test_avro_comes_back(data: st.DataObject) -> None:
    """The bytes are fastavro's."""
    schema = data.draw(schemas())
    rows = written(schema, data.draw(st.lists(values(schema), max_size=6)))
    text = SchemaText(SchemaType.AVRO, json.dumps(schema))
    reader, writer = AvroReader(text, None, TIME), AvroWriter(text)
    found = decode_column(reader, pa.array(rows, pa.binary()), text).array
    for place, value in rows_of(found):
        assert writer.one(back(value, reader.arrow_type)) == rows[place]


@drawn
@given(SEEDS)
def test_protobuf_comes_back(seed: int) -> None:
    """upb wrote the messages. It has an order of its own for maps, and a column no nanoseconds."""
    random = Random(seed)
    file = Files(random).file()
    without_oneof_defaults(file)
    reader, kind = reader_of(file), message_class(file)
    found = decoded(reader, [filled(random, kind()).SerializeToString() for _ in range(4)]).array
    writer = ProtobufWriter(reader.descriptors, "p.M0")
    for place, value in rows_of(found):
        again = writer.one(back(value, reader.arrow_type))
        assert again == writer.encode(found.slice(place, 1), b"")[0].as_py()


ANYWHERE = {"bootstrap.servers": "127.0.0.1:1"}
DDL = (
    "a BIGINT, t TIMESTAMP, d DATE, f DOUBLE, n DECIMAL(10,2), s STRING, b BOOLEAN, o BINARY, "
    "l ARRAY<TINYINT>, m MAP<STRING, FLOAT>, x STRUCT<y: STRUCT<z: STRING>>"
)
OF_JSON = {
    "a": st.integers(-(2**63), 2**63 - 1), "t": st.datetimes(timezones=st.just(datetime.UTC)),
    "d": st.dates(), "f": st.floats(), "n": st.decimals(-999, 999, places=2),
    "s": st.text(), "b": st.booleans(), "o": st.binary(),
    "l": st.lists(st.none() | st.integers(-128, 127)),
    "m": st.dictionaries(st.text(), st.none() | st.floats(width=32)),
    "x": st.fixed_dictionaries({"y": st.none() | st.fixed_dictionaries({"z": st.text()})}),
}  # fmt: skip


@drawn
@given(st.fixed_dictionaries({}, optional=OF_JSON))
def test_json_comes_back(value: dict[str, Any]) -> None:
    config = config_from_arguments({"value.format": "json", "value.schema": DDL, **ANYWHERE})
    with closing(TypedEncoding(config.typed)) as encoding:
        by = encoding.of_topic("value", "t")
        assert by is not None
        data, kind = by.one(value), from_ddl(DDL)
        column = decode_column(
            JsonReader(kind), pa.array([data], pa.binary()), SchemaText(SchemaType.JSON, "")
        ).array
        assert by.one(back(column[0].as_py(), kind)) == data


# -- the form of each type -------------------------------------------------------------------------

SECOND = datetime.datetime(2026, 11, 25, 12, 30)
MICROS = SECOND.replace(microsecond=1)
UNION = pa.struct([("member0", pa.int32()), ("member1", pa.string())])
INTS, NAMES = pa.map_(pa.int32(), pa.binary()), pa.map_(pa.string(), pa.float64())
FORMS: list[tuple[pa.DataType, Any, Any]] = [
    (pa.bool_(), True, True),
    (pa.int64(), 2**63 - 1, 2**63 - 1),
    (pa.int64(), -(2**53) - 1, -(2**53) - 1),
    (pa.float64(), 0.1, 0.1),
    (pa.float64(), math.inf, "Infinity"),
    (pa.float32(), -math.inf, "-Infinity"),
    (pa.decimal128(38, 10), Decimal("1234567890123456789.0000000001"),
     "1234567890123456789.0000000001"),
    (pa.decimal128(10, 9), Decimal("1E-9"), "0.000000001"),
    (pa.decimal128(10, 2), Decimal("-0.50"), "-0.50"),
    (pa.string(), "\x00ä\u2028\U0001f600", "\x00ä\u2028\U0001f600"),
    (pa.binary(), b"\xff\x00", "/wA="),
    (pa.binary(), b"", ""),
    (pa.date32(), datetime.date(1, 2, 3), "0001-02-03"),
    (TIME, datetime.time(12, 30, 0, 1), "12:30:00.000001"),
    (MOMENT, MICROS.replace(tzinfo=datetime.UTC), "2026-11-25T12:30:00.000001+00:00"),
    (MOMENT, SECOND.replace(tzinfo=datetime.UTC), "2026-11-25T12:30:00+00:00"),
    (LOCAL, MICROS, "2026-11-25T12:30:00.000001"),
    (pa.duration("us"), datetime.timedelta(seconds=1.5), "1.5s"),
    (pa.duration("us"), datetime.timedelta(microseconds=-1), "-0.000001s"),
    (pa.duration("us"), datetime.timedelta(days=-2), "-172800s"),
    (pa.duration("us"), datetime.timedelta(), "0s"),
    (pa.null(), None, None),
    (UNION, {"member0": None, "member1": "a"}, {"member0": None, "member1": "a"}),
    (pa.struct([]), {}, {}),
    (pa.list_(pa.binary()), [b"a", None], ["YQ==", None]),
    (NAMES, [("a", math.inf), ("b", None)], {"a": "Infinity", "b": None}),
    (NAMES, [], {}),
    (NAMES, [("a", 1.0), ("a", 2.0)], [["a", 1.0], ["a", 2.0]]),
    (INTS, [(1, b"a"), (-1, None)], [[1, "YQ=="], [-1, None]]),
    (INTS, [], []),
    (pa.list_(pa.map_(pa.string(), INTS)), [[("a", [(1, b"")])], []], [{"a": [[1, ""]]}, {}]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value", "form"), FORMS, ids=str)
def test_each_type_has_a_form(kind: pa.DataType, value: Any, form: Any) -> None:
    assert pa.array([value], kind)[0].as_py() == value
    assert to_json_form(kind)(value) == form
    found = back(value, kind)
    assert pa.array([found], kind) == pa.array([value], kind)


def test_not_a_number_has_a_name() -> None:
    assert to_json_form(pa.float64())(math.nan) == "NaN"
    assert math.isnan(back(math.nan, pa.float64()))
    assert to_json_form(pa.list_(pa.float32()))([math.nan]) == ["NaN"]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (MOMENT, "2026-11-25 12:30:00Z", SECOND.replace(tzinfo=datetime.UTC)),
        (MOMENT, "2026-11-25T14:30:00.000001000+02:00", MICROS.replace(tzinfo=datetime.UTC)),
        (LOCAL, "2026-11-25T12:30", SECOND),
        (TIME, "12:30:00.5", datetime.time(12, 30, 0, 500_000)),
        (pa.duration("us"), "0.000001000s", datetime.timedelta(microseconds=1)),
        (pa.decimal128(10, 2), Decimal("12.50"), Decimal("12.50")),
        (pa.decimal128(10, 2), 12, 12),
        (pa.decimal128(10, 2), "1.25E1", Decimal("12.5")),
        (pa.float64(), Decimal("1E+2"), 100.0),
        (pa.map_(pa.string(), TIME), [["a", "00:00"]], [("a", datetime.time())]),
    ],
)
def test_other_forms_that_are_taken(kind: pa.DataType, text: Any, value: Any) -> None:
    assert from_json_form(kind)(text) == value


@pytest.mark.parametrize(
    ("kind", "form", "reason"),
    [
        (pa.binary(), "a", "a: 'a' is no base64"),
        (pa.binary(), "YQ", "a: 'YQ' is no base64"),
        (pa.binary(), "YQ==\n", "is no base64"),
        (pa.date32(), "25.11.2026", "is no date, as '2026-11-25'"),
        (pa.date32(), "2026-11-25T00:00", "is no date, as"),
        (pa.date32(), "20261125", "is no date, as"),
        (pa.date32(), "2026-02-30", "is no date, as"),
        (TIME, "12:30:00Z", "is no time of day"),
        (TIME, "25:00", "is no time of day"),
        (TIME, "12:30:00.0000001", "is no time of day"),
        (MOMENT, "2026-11-25T12:30:00", "is no time with a zone"),
        (MOMENT, "2026-11-25", "is no time with a zone"),
        (MOMENT, "now", "is no time with a zone"),
        (MOMENT, "2026-11-25T12:30:00.1234567Z", "is no time with a zone"),
        (MOMENT, "+10000-01-01T00:00:00Z", "is no time with a zone"),
        (LOCAL, "2026-11-25T12:30:00Z", "is no time without a zone"),
        (pa.duration("us"), "1.5", "is no duration"),
        (pa.duration("us"), "PT1S", "is no duration"),
        (pa.duration("us"), "0.0000001s", "is no duration"),
        (pa.decimal128(10, 2), "NaN", "is no decimal number"),
        (pa.decimal128(10, 2), "1_000", "is no decimal number"),
        (pa.decimal128(10, 2), "", "is no decimal number"),
        (pa.float64(), Decimal("1E+400"), "1E+400 is beyond the range of a double"),
        (INTS, {"1": ""}, "a: an object, where the keys are no texts: give a list of"),
        (INTS, [[1, "YQ=="], [2]], "each entry of a map is a list of [key, value]"),
        (INTS, [[1, "?"]], "a{}: '?' is no base64"),
        (pa.list_(pa.struct([("b", pa.binary())])), [{"b": "?"}], "a[].b: '?' is no base64"),
        (pa.binary(), "?" * 1000, "???... is no base64"),
    ],
)
def test_a_text_that_has_no_value_is_refused_with_its_path(
    kind: pa.DataType, form: Any, reason: str
) -> None:
    with pytest.raises(UnencodableRowError) as failed:
        from_json_form(pa.struct([("a", kind)]))({"a": form})
    assert reason in failed.value.reason
    assert len(failed.value.reason) < 250


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        (pa.int32(), "1"),
        (pa.int32(), 1.5),
        (pa.string(), 1),
        (MOMENT, 1_700_000_000),
        (pa.date32(), 5),
        (pa.binary(), [1]),
        (pa.float64(), "one"),
        (pa.float64(), 2**53 + 1),
        (pa.struct([("a", pa.int32())]), "x"),
        (pa.struct([("a", pa.int32())]), {"b": 1.5}),
        (pa.list_(pa.int32()), {"a": 1}),
        (NAMES, "x"),
    ],
)
def test_what_is_not_of_the_form_is_left_to_the_writer(kind: pa.DataType, form: Any) -> None:
    """So it is taken or refused as in `KafkaProducer.send`."""
    assert from_json_form(kind)(json_text.read(json.dumps(form).encode())) == form


@pytest.mark.parametrize(
    ("kind", "value", "form"),
    [
        (MOMENT, "+10000-01-01T00:00:00Z", "+10000-01-01T00:00:00Z"),
        (pa.struct([("a", MOMENT)]), "what it is", "what it is"),
        (NAMES, 5, 5),
        (pa.list_(MOMENT), {"a": b"a"}, {"a": "YQ=="}),
        (pa.int64(), [Decimal(1), {"a": (1, math.nan)}], ["1", {"a": [1, "NaN"]}]),
        (pa.int64(), 1j, "1j"),
    ],
)
def test_any_object_is_shown(kind: pa.DataType, value: Any, form: Any) -> None:
    """A consumer may have something else for a value that is no object of Python's."""
    assert to_json_form(kind)(value) == form


# -- beside google.protobuf ------------------------------------------------------------------------

MOST_MICROS = 315_576_000_000 * 10**6


@given(st.integers(-MOST_MICROS, MOST_MICROS))
def test_durations_are_those_of_protobufs_json(micros: int) -> None:
    value, theirs = datetime.timedelta(microseconds=micros), Duration()
    theirs.FromJsonString(to_json_form(pa.duration("us"))(value))
    assert theirs.ToMicroseconds() == micros
    assert from_json_form(pa.duration("us"))(theirs.ToJsonString()) == value


@given(st.datetimes(timezones=st.just(datetime.UTC)))
def test_moments_are_those_of_protobufs_json(value: datetime.datetime) -> None:
    theirs = Timestamp()
    theirs.FromJsonString(to_json_form(MOMENT)(value))
    assert theirs.ToDatetime(datetime.UTC) == value
    assert from_json_form(MOMENT)(theirs.ToJsonString()) == value
