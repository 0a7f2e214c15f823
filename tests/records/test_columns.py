"""Stage 2b: the columns have PySpark's types and the written data."""

import pickle
from inspect import signature
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from spark_kafka_source import records
from spark_kafka_source.records import (
    COLUMNS,
    COLUMNS_WITH_HEADERS,
    NO_TIMESTAMP,
    Chunk,
    Codec,
    Record,
    TimestampOverflowError,
    chunks,
    encode_batch,
    record_batch,
    schema,
    to_arrow,
)
from tests.records.batches import TOPIC_PARTITION, Batch, Row, encoded, rows_in, rows_of

SPARK_COLUMNS = [
    StructField("key", BinaryType()),
    StructField("value", BinaryType()),
    StructField("topic", StringType()),
    StructField("partition", IntegerType()),
    StructField("offset", LongType()),
    StructField("timestamp", TimestampType()),
    StructField("timestampType", IntegerType()),
]
SPARK_HEADERS = StructField(
    "headers",
    ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())])),
)


def only_chunk(fetch: bytes) -> Chunk:
    (chunk,) = chunks(fetch, topic_partition=TOPIC_PARTITION)
    return chunk


def test_the_schema_is_what_pyspark_makes_of_the_columns() -> None:
    # Before Spark 4.1 the time zone was always UTC, and not configurable.
    knows_zones = "timezone" in signature(to_arrow_schema).parameters
    utc: dict[str, Any] = {"timezone": "UTC"} if knows_zones else {}
    plain = to_arrow_schema(StructType(SPARK_COLUMNS), **utc)
    with_headers = to_arrow_schema(StructType([*SPARK_COLUMNS, SPARK_HEADERS]), **utc)
    assert schema(COLUMNS).equals(plain, check_metadata=True)
    assert schema(COLUMNS_WITH_HEADERS).equals(with_headers, check_metadata=True)
    # Equality of list types ignores the name of the element.
    headers = schema(COLUMNS_WITH_HEADERS).field("headers")
    assert headers.type.value_field.name == with_headers.field("headers").type.value_field.name


@pytest.mark.parametrize("include_headers", [False, True])
@pytest.mark.parametrize("fetch", [b"", encode_batch([Record(headers=[("h", b"")])])])
def test_every_batch_has_the_schema(fetch: bytes, include_headers: bool) -> None:
    arrow = to_arrow(only_chunk(fetch), include_headers=include_headers)
    columns = COLUMNS_WITH_HEADERS if include_headers else COLUMNS
    assert arrow.schema.equals(schema(columns), check_metadata=True)
    for column, field in zip(arrow.columns, arrow.schema, strict=True):
        assert column.type.equals(field.type)
    arrow.validate(full=True)


def test_columns_may_be_left_out() -> None:
    arrow = record_batch(only_chunk(encode_batch([Record(b"k", b"v")])), ("offset", "value"))
    assert arrow.to_pylist() == [{"offset": 0, "value": b"v"}]


def test_a_row_is_spelled_as_spark_spells_it() -> None:
    fetch = encode_batch([Record(b"k", b"v", [("h", None)], 1_700_000_000_123)], base_offset=9)
    (row,) = to_arrow(only_chunk(fetch), include_headers=True).to_pylist()
    assert row.pop("timestamp").isoformat() == "2023-11-14T22:13:20.123000+00:00"
    assert row == {
        "key": b"k",
        "value": b"v",
        "topic": "events",
        "partition": 3,
        "offset": 9,
        "timestampType": 0,
        "headers": [{"key": "h", "value": None}],
    }


def test_null_and_empty_keys_and_values_are_told_apart() -> None:
    fetch = encode_batch([Record(None, b""), Record(b"", None), Record(None, None)])
    arrow = to_arrow(only_chunk(fetch))
    assert arrow["key"].to_pylist() == [None, b"", None]
    assert arrow["value"].to_pylist() == [b"", None, None]


def test_headers_are_null_where_there_are_none_and_keep_order_and_duplicates() -> None:
    written: list[list[tuple[str, bytes | None]]] = [
        [],
        [("b", b"1"), ("a", b"2"), ("b", None)],
        [],
        [("", b"")],
    ]
    fetch = encode_batch([Record(headers=headers) for headers in written])
    found = to_arrow(only_chunk(fetch), include_headers=True)["headers"].to_pylist()
    assert found == [
        [{"key": key, "value": value} for key, value in headers] or None for headers in written
    ]


@pytest.mark.parametrize("count", [3, 100])
def test_records_may_have_as_many_headers_as_they_like(count: int) -> None:
    rows = tuple(
        Row(n, 0, None, b"v", tuple((f"{n}-{h}", b"%d" % h) for h in range(n % 5)))
        for n in range(count)
    )
    assert rows_of(encoded(Batch(rows, 0))) == list(rows)


def test_log_append_time_is_that_of_the_batch() -> None:
    append_time = records.TimestampType.LOG_APPEND_TIME
    appended = encode_batch(
        [Record(timestamp_ms=1), Record(timestamp_ms=5)],
        timestamp_type=append_time,
        append_timestamp_ms=7,
    )
    created = encode_batch([Record(timestamp_ms=1), Record(timestamp_ms=5)], base_offset=2)
    arrow = to_arrow(only_chunk(appended + created))
    assert arrow["timestamp"].view(pa.int64()).to_pylist() == [7000, 7000, 1000, 5000]
    assert arrow["timestampType"].to_pylist() == [1, 1, 0, 0]


def test_no_timestamp_stays_minus_one() -> None:
    (row,) = rows_of(encode_batch([Record(timestamp_ms=NO_TIMESTAMP)]))
    assert row.timestamp_ms == -1


def test_timestamps_under_a_delete_horizon_are_those_written() -> None:
    written = [Record(timestamp_ms=50), Record(timestamp_ms=20)]
    rows = rows_of(encode_batch(written, delete_horizon_ms=1_700_000_000_000))
    assert [row.timestamp_ms for row in rows] == [50, 20]


@pytest.mark.parametrize("timestamp_ms", [9_223_372_036_854_776, -9_223_372_036_854_776, 1 << 62])
def test_a_timestamp_past_what_microseconds_hold_is_named(timestamp_ms: int) -> None:
    fetch = encode_batch([Record(timestamp_ms=0), Record(timestamp_ms=timestamp_ms)])
    message = "at offset 1: KAFKA_MALFORMED_RECORD_TIMESTAMP: timestamp overflow"
    with pytest.raises(TimestampOverflowError, match=message) as refused:
        rows_of(fetch)
    assert refused.value.timestamp == timestamp_ms
    assert "The log is not damaged" in str(refused.value)
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)
    assert len(rows_of(fetch, end=1)) == 1


def test_nanoseconds_are_recognised() -> None:
    fetch = encode_batch([Record(timestamp_ms=1_712_345_678_123_456_789)])
    with pytest.raises(TimestampOverflowError, match="as nanoseconds it is 2024-04-05T19:34:38Z"):
        rows_of(fetch)


def test_arrow_keeps_nothing_of_the_fetch() -> None:
    fetch = bytearray(encode_batch([Record(b"key", b"value")]))
    arrow = to_arrow(only_chunk(memoryview(fetch)))  # type: ignore[arg-type]  # as net hands it
    fetch[:] = bytes(len(fetch))
    assert (arrow["key"].to_pylist(), arrow["value"].to_pylist()) == ([b"key"], [b"value"])


@pytest.mark.parametrize("codec", Codec)
def test_batches_of_all_codecs_share_a_chunk(codec: Codec) -> None:
    batches = [
        encoded(Batch((Row(n, n, b"k", b"v" * n),), n, Codec((codec + n) % 5))) for n in range(9)
    ]
    (chunk,) = chunks(b"".join(batches), topic_partition=TOPIC_PARTITION)
    assert [row.value for row in rows_in(to_arrow(chunk, include_headers=True))] == [
        b"v" * n for n in range(9)
    ]
