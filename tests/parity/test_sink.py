"""Writing, as in the peer's sink suites: topics, columns, partitions, modes, refusals."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_kafka_source.producer.partitioners import MURMUR2
from tests.parity.refusals import refused
from tests.parity.scenario import Sink, process_all_available
from tests.spark.sink.written import rows, texts, to, written
from tests.spark_session import Start
from tools.traffic import Events, stream

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.peer]

PARTITIONS = 4
ROUND_ROBIN = "org.apache.kafka.clients.producer.RoundRobinPartitioner"

Write = Callable[..., Any]
"""`write(*columns, **options)` starts a stream from the input to the sink. Columns are SQL."""


@pytest.fixture
def target(events: Events) -> Events:
    """Topic to write to. A stream reads `events`."""
    target = events.another("target")
    target.create(PARTITIONS)
    return target


@pytest.fixture
def write(spark: SparkSession, sink: Sink, events: Events, target: Events, start: Start) -> Write:
    events.create()

    def write(*columns: str, **options: Any) -> Any:
        read = stream(spark, events.options()).selectExpr("CAST(value AS STRING) AS value")
        return start(sink.stream(read.selectExpr(*columns), to(target, **options)))

    return write


# -- streams -------------------------------------------------------------------------------------

NAMED: dict[str, tuple[list[str], dict[str, Any]]] = {
    "column": (["value", "'$T' AS topic"], {"topic": None}),
    "option": (["value"], {}),
    "both": (["value", "'elsewhere' AS topic"], {}),
}


@pytest.mark.parametrize("named", NAMED)
def test_the_topic_of_a_stream(write: Write, events: Events, target: Events, named: str) -> None:
    columns, options = NAMED[named]
    query = write(*(each.replace("$T", target.name) for each in columns), **options)
    events.write(range(5))
    process_all_available(query)
    assert texts(target) == ["0", "1", "2", "3", "4"]
    events.write(range(5, 9))
    process_all_available(query)
    assert texts(target) == ["0", "1", "2", "3", "4", "5", "6", "7", "8"]


def refused_stream(write: Write, events: Events, *columns: str, **options: Any) -> str:
    """Return the error of a stream that has a row to write."""
    events.write(["1"])
    return refused(lambda: process_all_available(write(*columns, **options)))


BAD_SCHEMAS: dict[str, tuple[str, str, str]] = {
    "no topic": ("value", "Option 'topic': is missing", "topic option required"),
    "no value": ("value AS key", "no column 'value'", "Required attribute 'value' not found"),
}


@pytest.mark.parametrize("bad", BAD_SCHEMAS)
def test_a_bad_schema_is_refused(sink: Sink, write: Write, events: Events, bad: str) -> None:
    column, ours, peers = BAD_SCHEMAS[bad]
    options = {"topic": None} if bad == "no topic" else {}
    text = refused_stream(write, events, column, **options)
    assert (ours if sink.is_ours else peers) in text


WRONG_TYPES: dict[str, tuple[list[str], str]] = {
    "topic": (["value", "1 AS topic"], "string"),
    "value": (["CAST(value AS INT) AS value"], "string or binary"),
    "key": (["value", "CAST(value AS INT) AS key"], "string or binary"),
    "partition": (["value", "value AS partition"], "int"),
    "headers": (["value", "array(value) AS headers"], "array<struct<key:string,value:binary>>"),
}


@pytest.mark.parametrize("column", WRONG_TYPES)
def test_columns_of_a_wrong_type_are_refused(
    sink: Sink, write: Write, events: Events, column: str
) -> None:
    columns, wanted = WRONG_TYPES[column]
    options = {"topic": None} if column == "topic" else {}
    text = refused_stream(write, events, *columns, **options)
    assert (f"must be {wanted}" if sink.is_ours else f"must be a(n) {wanted}") in text


def test_a_topic_that_does_not_exist(sink: Sink, write: Write, events: Events) -> None:
    missing = events.another("missing").name
    text = refused_stream(write, events, "value", topic=missing, **{"kafka.max.block.ms": 2_000})
    assert missing in text
    assert "2000 ms" in text
    assert ("'kafka.max.block.ms'" in text) == sink.is_ours


@pytest.mark.parametrize("option", ["key.serializer", "value.serializer"])
def test_serializers_are_refused(write: Write, events: Events, option: str) -> None:
    text = refused_stream(write, events, "value", **{f"kafka.{option}": "foo"})
    assert f"{option}' is not supported" in text.replace("': is not", "' is not")


def test_progress_says_how_many_rows(
    spark: SparkSession, sink: Sink, events: Events, target: Events, start: Start
) -> None:
    events.fill(3)
    frame = stream(spark, events.options()).select("value")
    # Spark refuses a Python sink in update mode.
    mode = "append" if sink.is_ours else "update"
    query = start(sink.stream(frame, to(target)).outputMode(mode))
    process_all_available(query)
    written_rows = {each["batchId"]: each["sink"]["numOutputRows"] for each in query.recentProgress}
    assert written_rows[0] == 3


# -- batches -------------------------------------------------------------------------------------


def saved(sink: Sink, frame: DataFrame, events: Events, **options: Any) -> None:
    sink.batch(frame, to(events, **options)).save()


def test_headers(spark: SparkSession, sink: Sink, target: Events) -> None:
    expected: dict[str, list[tuple[str, bytes]] | None] = {
        "1": [("a", b"b")],
        "2": [("c", b"d"), ("e", b"f")],
        "3": [("g", b"h"), ("g", b"i")],
        "4": None,
        "5": [("j", b"k"), ("j", b"l"), ("m", b"n")],
    }
    ddl = "topic string, value string, headers array<struct<key: string, value: binary>>"
    found = [(target.name, value, headers) for value, headers in expected.items()]
    saved(sink, spark.createDataFrame(found, ddl), target, topic=None)
    assert {(each.value or b"").decode(): each.headers for each in written(target)} == expected


PRIORITIES: dict[str, tuple[str, dict[str, Any], bool]] = {
    "keys": ("CAST(NULL AS INT)", {}, False),
    "a column": ("2", {}, True),
    "a column and a partitioner": ("2", {"kafka.partitioner.class": ROUND_ROBIN}, True),
}


@pytest.mark.parametrize("priority", PRIORITIES)
def test_partition_column_and_partitioner(
    spark: SparkSession, sink: Sink, target: Events, priority: str
) -> None:
    partition, options, is_given = PRIORITIES[priority]
    frame = spark.range(100).selectExpr(
        "CAST(id AS STRING) AS key", "CAST(id AS STRING) AS value", f"{partition} AS partition"
    )
    saved(sink, frame, target, **options)
    found = {each.key: each.partition for each in written(target)}
    by_key = {key: MURMUR2.partition(key, PARTITIONS) for key in found}
    assert len(found) == 100
    assert found == (dict.fromkeys(found, 2) if is_given else by_key)


def test_a_partitioner_without_a_column(spark: SparkSession, sink: Sink, target: Events) -> None:
    frame = spark.range(0, 4_000, 1, 1).selectExpr("'k' AS key", "repeat('v', 2000) AS value")
    saved(sink, frame, target, **{"kafka.partitioner.class": ROUND_ROBIN})
    # Without the option, one partition would get all. Java's skips some (KAFKA-9965).
    assert len({each.partition for each in written(target)}) > 1


def test_a_null_topic_without_the_option(spark: SparkSession, sink: Sink, events: Events) -> None:
    frame = spark.sql("SELECT '1' AS value, CAST(NULL AS STRING) AS topic")
    text = refused(lambda: saved(sink, frame, events, topic=None))
    assert "KAFKA_NULL_TOPIC_IN_DATA" in text


def test_what_an_expression_makes(spark: SparkSession, sink: Sink, target: Events) -> None:
    saved(sink, spark.range(1, 1_000).selectExpr("to_json(struct(*)) AS value"), target)
    assert texts(target) == sorted(f'{{"id":{number}}}' for number in range(1, 1_000))


@pytest.mark.parametrize("mode", ["ignore", "overwrite"])
def test_other_modes_are_refused(
    spark: SparkSession, sink: Sink, target: Events, mode: str
) -> None:
    batch = sink.batch(rows(spark, "1"), to(target)).mode(mode)
    assert mode in refused(batch.save).lower()
    assert texts(target) == []


def test_more_than_the_buffer_holds(spark: SparkSession, sink: Sink, target: Events) -> None:
    frame = spark.range(0, 1_000, 1, 1).selectExpr(
        "repeat(CAST(id % 10 AS STRING), 15000) AS value"
    )
    saved(sink, frame, target, **{"kafka.buffer.memory": 16_384})
    assert len(texts(target)) == 1_000


# -- in addition ---------------------------------------------------------------------------------


def test_a_batch_without_a_mode(spark: SparkSession, sink: Sink, target: Events) -> None:
    batch = rows(spark, "1").write.format(sink.name).options(**to(target))
    if sink.is_ours:
        assert "[UNSUPPORTED_DATA_SOURCE_SAVE_MODE]" in refused(batch.save)
    else:
        batch.save()
        assert texts(target) == ["1"]


def test_columns_are_found_by_their_exact_names(
    spark: SparkSession, sink: Sink, target: Events
) -> None:
    text = refused(lambda: saved(sink, spark.sql("SELECT '1' AS Value"), target))
    assert "'value'" in text
    frame = spark.sql("SELECT '1' AS value, 'k' AS KEY, 2 AS topic, 3 AS more")
    if sink.is_ours:
        assert "Column 'KEY' is no part of a record" in refused(lambda: saved(sink, frame, target))
        frame = frame.drop("KEY")
    saved(sink, frame, target)
    assert [(each.key, each.value) for each in written(target)] == [(None, b"1")]


def test_fields_of_headers_in_any_case(spark: SparkSession, sink: Sink, target: Events) -> None:
    headers = "array(named_struct('KEY', 'a', 'Value', X'01'))"
    saved(sink, spark.sql(f"SELECT '1' AS value, {headers} AS headers"), target)
    assert [each.headers for each in written(target)] == [[("a", b"\x01")]]


def test_a_header_without_a_key_is_refused(spark: SparkSession, sink: Sink, target: Events) -> None:
    headers = "array(named_struct('key', CAST(NULL AS STRING), 'value', X'01'))"
    frame = spark.sql(f"SELECT '1' AS value, {headers} AS headers")
    text = refused(lambda: saved(sink, frame, target))
    assert ("Row 0: the key of a header is null" in text) == sink.is_ours
    assert ("NullPointerException" in text) != sink.is_ours


def test_a_partition_that_is_not_there_is_refused(
    spark: SparkSession, sink: Sink, target: Events
) -> None:
    frame = spark.sql("SELECT '1' AS value, 7 AS partition")
    # Only the peer waits for such a partition. Ours needs the time to reach its broker.
    options = {} if sink.is_ours else {"kafka.max.block.ms": 1_000}
    text = refused(lambda: saved(sink, frame, target, **options))
    assert target.name in text
    assert "artition" in text
    assert "7" in text
    assert ("Row 0" in text) == sink.is_ours


def test_a_column_of_timestamps(spark: SparkSession, sink: Sink, target: Events) -> None:
    frame = spark.sql("SELECT '1' AS value, TIMESTAMP '2024-02-29 12:00:00Z' AS timestamp")
    saved(sink, frame, target)
    (found,) = written(target)
    assert (found.timestamp_ms == 1_709_208_000_000) == sink.is_ours
