"""Batches written to a real broker. confluent-kafka reads back the contents of the rows."""

import time
from datetime import UTC, datetime

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.spark.sink.written import Written, rows, texts, to, writer, written
from tools.traffic import Events

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

ROWS_DDL = """
    key {bytes}, value {bytes}, partition int, timestamp timestamp,
    headers array<struct<key: string, value: binary>>, other map<string, int>
"""
NOON = datetime(2024, 2, 29, 12, 0, 0, 123_456, UTC)
NOON_MS = 1_709_208_000_123
HEADERS = [("a", b"1"), ("a", None), ("é", b"")]


def all_kinds(spark: SparkSession, kind: str) -> DataFrame:
    """Rows with and without a value in each column, one row per task."""

    def text(value: str | None) -> object:
        return value if value is None or kind == "string" else value.encode()

    found = [
        (text("k"), text("é"), 1, NOON, HEADERS, {"x": 1}),
        (None, text(""), 0, NOON, None, None),
        (text(""), None, 2, NOON, [], None),
    ]
    ddl = ROWS_DDL.format(bytes=kind)
    return spark.createDataFrame(found, ddl).repartition(3)


@pytest.fixture(params=["false", "true"], ids=["", "large"])
def large_types(request: pytest.FixtureRequest, spark: SparkSession) -> None:
    """Whether Spark's strings and binaries come with 64-bit offsets."""
    name = "spark.sql.execution.arrow.useLargeVarTypes"
    spark.conf.set(name, request.param)
    request.addfinalizer(lambda: spark.conf.unset(name))


@pytest.mark.usefixtures("large_types")
@pytest.mark.parametrize("kind", ["string", "binary"])
def test_what_is_in_the_rows_is_in_the_records(
    spark: SparkSession, events: Events, kind: str
) -> None:
    events.create(3)
    writer(all_kinds(spark, kind), to(events)).save()
    assert written(events) == [
        Written(0, None, b"", None, NOON_MS),
        Written(1, b"k", "é".encode(), HEADERS, NOON_MS),
        Written(2, b"", None, None, NOON_MS),
    ]


def test_many_rows_of_many_tasks_are_all_there_once(spark: SparkSession, events: Events) -> None:
    events.create(5)
    frame = spark.range(0, 100_000, 1, 7).selectExpr(
        "CAST(id AS STRING) AS value", "CAST(id % 100 AS STRING) AS key"
    )
    writer(frame, to(events, **{"kafka.compression.type": "lz4"})).save()
    found = written(events)
    assert sorted(int(each.value or b"") for each in found) == [*range(100_000)]
    where = {(each.key, each.partition) for each in found}
    assert len(where) == 100  # Each key is in one partition.
    assert {partition for _, partition in where} == {*range(5)}


def test_rows_of_a_task_keep_their_order_within_a_partition(
    spark: SparkSession, events: Events
) -> None:
    events.create()
    frame = spark.range(0, 30_000, 1, 1).selectExpr("CAST(id AS STRING) AS value")
    writer(frame, to(events)).save()
    assert [int(each.value or b"") for each in written(events)] == [*range(30_000)]


def test_a_column_says_the_topic_of_each_row(spark: SparkSession, events: Events) -> None:
    other = events.another("other")
    events.create(2)
    other.create(1)
    frame = spark.range(0, 1_000, 1, 3).selectExpr(
        "CAST(id AS STRING) AS value",
        f"IF(id % 3 = 0, '{events.name}', '{other.name}') AS topic",
    )
    writer(frame, to(events, topic=None)).save()
    assert texts(events) == sorted(str(number) for number in range(0, 1_000, 3))
    assert texts(other) == sorted(str(number) for number in range(1_000) if number % 3)


def test_the_option_goes_before_the_column(spark: SparkSession, events: Events) -> None:
    events.create()
    writer(spark.sql("SELECT 'a' AS value, 'elsewhere' AS topic"), to(events)).save()
    writer(spark.sql("SELECT 'b' AS value, 1 AS topic"), to(events)).save()
    assert texts(events) == ["a", "b"]


def test_without_rows_nothing_is_written(spark: SparkSession, events: Events) -> None:
    events.create()
    writer(rows(spark, "a").limit(0), to(events)).save()
    # The task does not ask for a missing topic either.
    writer(rows(spark, "a").limit(0), to(events.another("missing"))).save()
    assert texts(events) == []


@pytest.mark.parametrize("codec", ["gzip", "snappy", "zstd"])
def test_each_codec(spark: SparkSession, events: Events, codec: str) -> None:
    events.create()
    writer(rows(spark, *"abc"), to(events, **{"kafka.compression.type": codec})).save()
    assert texts(events) == ["a", "b", "c"]


# -- refused rows and modes ----------------------------------------------------------------------


def refused(frame: DataFrame, options: dict[str, object], mode: str = "append") -> str:
    with pytest.raises(PySparkException) as failed:
        writer(frame, options).mode(mode).save()
    return str(failed.value)


def test_a_schema_is_refused_before_any_task_runs(spark: SparkSession, events: Events) -> None:
    frame = spark.range(1).selectExpr("IF(id < 1, raise_error('a task ran'), 1) AS value")
    text = refused(frame, to(events))
    assert "Column 'value' is of the type int; it must be string or binary" in text
    assert "a task ran" not in text


def test_a_null_topic_is_refused_in_the_task(spark: SparkSession, events: Events) -> None:
    frame = spark.sql("SELECT 'a' AS value, CAST(NULL AS STRING) AS topic")
    text = refused(frame, to(events, topic=None))
    assert "[KAFKA_NULL_TOPIC_IN_DATA] Row 0 of partition 0 of the DataFrame has no topic" in text


def test_a_bad_name_in_the_column_topic_names_the_row(spark: SparkSession, events: Events) -> None:
    events.create()
    topics = f"IF(id = 2, 'two words', '{events.name}') AS topic"
    frame = spark.range(0, 4, 1, 1).selectExpr("'a' AS value", topics)
    text = refused(frame, to(events, topic=None))
    assert "Row 2: its topic 'two words' cannot be a topic's name" in text
    assert "(counted within partition 0 of the DataFrame)" in text


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("CAST(NULL AS STRUCT<key: STRING, value: BINARY>)", "a header is null"),
        ("named_struct('key', CAST(NULL AS STRING), 'value', X'01')", "the key of a header is"),
    ],
)
def test_a_header_without_a_key_is_refused_with_its_row(
    spark: SparkSession, events: Events, header: str, said: str
) -> None:
    events.create()
    frame = spark.range(0, 3, 1, 1).selectExpr(
        "'a' AS value", f"IF(id = 2, array({header}), NULL) AS headers"
    )
    assert f"UnencodableRowError: Row 2: {said}" in refused(frame, to(events))
    assert texts(events) == []


def test_a_partition_that_is_not_there_is_refused_with_its_row(
    spark: SparkSession, events: Events
) -> None:
    events.create(2)
    frame = spark.range(0, 3, 1, 1).selectExpr("'a' AS value", "CAST(id AS INT) AS partition")
    text = refused(frame, to(events))
    assert f"Row 2: its partition is 2, and topic '{events.name}' has 2" in text


@pytest.mark.parametrize("guarantee", ["at-least-once", "exactly-once"])
def test_a_column_in_another_case_is_refused_before_a_row_is_written(
    spark: SparkSession, events: Events, guarantee: str
) -> None:
    events.create()
    options = to(events, deliveryGuarantee=guarantee)
    text = refused(spark.sql("SELECT 'k' AS Key, 'a' AS value"), options)
    assert "UnknownColumnError: Column 'Key' is no part of a record" in text
    assert "Names count with their case: 'key'" in text
    assert texts(events) == []
    writer(spark.sql("SELECT 'k' AS key, 'other' AS Key, 'a' AS value"), options).save()
    assert [each.key for each in written(events)] == [b"k"]


def test_a_row_that_is_too_large_is_refused_with_its_place(
    spark: SparkSession, events: Events
) -> None:
    events.create()
    frame = spark.range(0, 3, 1, 1).selectExpr("repeat('a', IF(id = 1, 2000000, 1)) AS value")
    assert "RowTooLargeError: Row 1: " in refused(frame, to(events))


def test_a_topic_that_is_not_there_is_an_error_in_time(spark: SparkSession, events: Events) -> None:
    started_seconds = time.monotonic()
    text = refused(rows(spark, "a"), to(events.another("missing"), **{"kafka.max.block.ms": 2_000}))
    assert f"{events.name}-missing" in text
    assert "'kafka.max.block.ms'" in text
    assert time.monotonic() - started_seconds < 60  # It waits for no default timeout.


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("overwrite", "Option 'mode': is 'overwrite'. Kafka's topics only grow: give 'append'"),
        ("ignore", 'cannot be written in the "Ignore" mode'),
        ("error", 'cannot be written in the "ErrorIfExists" mode'),
    ],
)
def test_other_modes_are_refused(spark: SparkSession, events: Events, mode: str, said: str) -> None:
    assert said in refused(rows(spark, "a"), to(events), mode)


def test_after_a_task_that_failed_the_next_one_writes(spark: SparkSession, events: Events) -> None:
    events.create()
    large = spark.range(0, 3, 1, 1).selectExpr("repeat('a', IF(id = 1, 2000000, 1)) AS value")
    refused(large, to(events))
    for _ in range(4):  # One of the workers kept the producer of the failed task.
        writer(rows(spark, "b", "c"), to(events)).save()
    assert texts(events) == ["b"] * 4 + ["c"] * 4


def test_an_error_shows_no_value_of_a_secret_option(spark: SparkSession, events: Events) -> None:
    given = {"kafka.security.protocol": "SASL_SSL", "kafka.sasl.jaas.config": "hidden-text"}
    assert "hidden-text" not in refused(rows(spark, "a"), to(events, **given))
