"""Batch reads of records that an independent producer wrote: every column, every range."""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from chispa import assert_df_equality
from confluent_kafka import Consumer, TopicPartition
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spark_kafka_source.records import COLUMNS_WITH_HEADERS
from spark_kafka_source.spark.source.schema import kafka_schema
from tools.ports import refused_port
from tools.traffic import Events, Headers, Writer, batch, values

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

FIRST_MS = 1_700_000_000_123
FIRST_TIME = datetime.fromtimestamp(FIRST_MS / 1000, UTC)
QUICKLY_UNKNOWN = {"fetchOffset.numRetries": 1, "fetchOffset.retryIntervalMs": 100}


def test_every_column_and_its_nulls(spark: SparkSession, events: Events) -> None:
    events.create(2)
    cases: list[tuple[bytes | None, bytes | None, Headers]] = [
        (b"key", b"value", []),
        (None, b"", [("once", b"\x00\xff")]),
        (b"", None, [("b", b"2"), ("a", b"1"), ("b", None), ("", b""), ("ключ", b"")]),
        (None, None, []),
    ]
    expected = []
    writer = Writer(events.kafka.bootstrap_servers)
    for offset, (key, value, headers) in enumerate(cases):
        timestamp_ms = FIRST_MS - offset * 1_000
        writer.queue(
            events.name, value, key=key, headers=headers, partition=1, timestamp_ms=timestamp_ms
        )
        timestamp = FIRST_TIME - timedelta(seconds=offset)
        expected.append((key, value, events.name, 1, offset, timestamp, 0, headers or None))
    writer.flush()
    schema = kafka_schema(COLUMNS_WITH_HEADERS)
    found = batch(spark, events.options(includeHeaders=True))
    assert_df_equality(found, spark.createDataFrame(expected, schema), ignore_row_order=True)
    without = spark.createDataFrame(expected, schema).drop("headers")
    assert_df_equality(batch(spark, events.options()), without, ignore_row_order=True)


def test_the_time_of_appending(spark: SparkSession, events: Events) -> None:
    events.create(message_timestamp_type="LogAppendTime")
    before_ms = int(time.time() * 1000)
    with Writer(events.kafka.bootstrap_servers) as writer:
        writer.queue(events.name, b"a", timestamp_ms=FIRST_MS)
    after_ms = int(time.time() * 1000)
    (row,) = batch(spark, events.options()).collect()
    assert row.timestampType == 1
    assert before_ms <= row.timestamp.replace(tzinfo=UTC).timestamp() * 1000 <= after_ms


def test_a_date_is_the_moment_that_milliseconds_are(spark: SparkSession, events: Events) -> None:
    events.create(2)
    with Writer(events.kafka.bootstrap_servers) as writer:
        for offset in range(6):
            at_ms = FIRST_MS + offset * 1_000
            writer.queue(events.name, b"%d" % offset, partition=offset % 2, timestamp_ms=at_ms)
    first, end = FIRST_MS + 2_000, FIRST_MS + 5_000
    dates = [datetime.fromtimestamp(each / 1000, UTC).isoformat() for each in (first, end)]
    by_partition = [
        f'{{"{events.name}":{{"0":{ms},"1":"{date}"}}}}'
        for ms, date in zip((first, end), dates, strict=True)
    ]
    for given in (
        {"startingTimestamp": first, "endingTimestamp": end},
        dict(zip(("startingTimestamp", "endingTimestamp"), dates, strict=True)),
        dict(
            zip(
                ("startingOffsetsByTimestamp", "endingOffsetsByTimestamp"),
                by_partition,
                strict=True,
            )
        ),
    ):
        assert sorted(values(batch(spark, events.options(**given)))) == ["2", "3", "4"]
    with pytest.raises(PySparkException, match=r"found 1700000002, which is '1970-01-20T16:13"):
        batch(spark, events.options(startingTimestamp=first // 1000))


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_each_codec(spark: SparkSession, events: Events, codec: str) -> None:
    events.create()
    names = [f"{number:05}" * 20 for number in range(5_000)]
    servers = events.kafka.bootstrap_servers
    with Writer(servers, compression_type=codec, linger_ms=50) as writer:
        writer.write(events.name, names)
    assert values(batch(spark, events.options())) == names


@pytest.mark.parametrize("strategy", ["assign", "subscribe", "subscribePattern"])
def test_a_range_by_offsets_and_ends(spark: SparkSession, events: Events, strategy: str) -> None:
    events.fill(5, 4, 3, 2)
    events.trim({1: 1})
    given = events.options(
        startingOffsets=events.offsets(2, -2, 3, 0),
        endingOffsets=events.offsets(4, -1, -1, 0),
    )
    found = batch(spark, given | events.named_by(strategy))
    assert values(found) == ["0:2", "0:3", "1:1", "1:2", "1:3"]


def test_one_word_for_all_partitions_of_a_topic(spark: SparkSession, events: Events) -> None:
    events.fill(2, 3)
    other = events.another("2")
    other.create(partitions=2)
    for partition in (0, 1):
        other.write([f"other {partition}"], partition=partition)
    events.trim({1: 1})
    found = events.options(
        subscribe=f"{events.name},{other.name}",
        startingOffsets=json.dumps({events.name: {"0": 1, "1": -2}, other.name: "Earliest"}),
        endingOffsets=json.dumps({events.name: "latest", other.name: {"0": 1, "1": 0}}),
    )
    rows = {bytes(row.value).decode() for row in batch(spark, found).collect()}
    assert rows == {"0:1", "1:1", "1:2", "other 0"}


def test_everything_by_default(spark: SparkSession, events: Events) -> None:
    events.fill(2, 0, 1)
    found = batch(spark, events.options(startingOffsets=None))
    assert values(found) == ["0:0", "0:1", "2:0"]
    assert found.rdd.getNumPartitions() == 2


def test_only_the_assigned_partitions(spark: SparkSession, events: Events) -> None:
    events.fill(1, 1, 1)
    found = events.options(subscribe=None, assign=f'{{"{events.name}":[2,0]}}')
    assert values(batch(spark, found)) == ["0:0", "2:0"]


def test_several_topics(spark: SparkSession, events: Events) -> None:
    events.fill(1)
    other = events.another("2")
    other.create()
    other.write(["other"])
    found = batch(spark, events.options(subscribe=f"{other.name}, {events.name}"))
    assert sorted(bytes(row.value) for row in found.collect()) == [b"0:0", b"other"]


def test_a_pattern_leaves_internal_topics_out(spark: SparkSession, events: Events) -> None:
    events.fill(1)
    commit_one(events)
    pattern = f"{events.name}|__consumer_offsets"
    found = batch(spark, events.options(subscribe=None, subscribePattern=pattern))
    assert [row.topic for row in found.select("topic").distinct().collect()] == [events.name]


@pytest.mark.peer
def test_a_pattern_of_java_s_takes_the_same_topics_in_both_formats(
    spark: SparkSession, events: Events
) -> None:
    events.fill(1)
    for ending in ("a7", "b7", "A7", "ab"):
        events.another(ending).fill(1)
    pattern = rf"^\Q{events.name}\E.[\p{{Alpha}}&&[^b]](?<number>\p{{Digit}})\z"
    found = events.options(subscribe=None, subscribePattern=pattern)
    ours, theirs = (
        sorted(row.topic for row in batch(spark, found, name).select("topic").collect())
        for name in ("pykafka", "kafka")
    )
    assert ours == theirs == [f"{events.name}-A7", f"{events.name}-a7"]


def commit_one(events: Events) -> None:
    servers = events.kafka.bootstrap_servers
    consumer = Consumer({"bootstrap.servers": servers, "group.id": events.name, "log_level": 0})
    consumer.commit(offsets=[TopicPartition(events.name, 0, 1)], asynchronous=False)
    consumer.close()


def test_a_pattern_that_matches_nothing_reads_nothing(spark: SparkSession, events: Events) -> None:
    found = batch(spark, events.options(subscribe=None, subscribePattern=f"{events.name}-no"))
    assert found.collect() == []


def test_an_empty_topic(spark: SparkSession, events: Events) -> None:
    events.fill(0, 0)
    found = batch(spark, events.options())
    assert found.collect() == []
    assert found.count() == 0


def test_deleted_records_are_gaps(spark: SparkSession, events: Events) -> None:
    events.fill(6, 3)
    events.trim({0: 4, 1: -1})
    assert values(batch(spark, events.options())) == ["0:4", "0:5"]


def test_a_frame_can_be_used_twice_and_again(spark: SparkSession, events: Events) -> None:
    events.fill(2, 1)
    frame = batch(spark, events.options())
    assert values(frame.union(frame)) == ["0:0", "0:0", "0:1", "0:1", "1:0", "1:0"]
    joined = frame.alias("a").join(frame.alias("b"), ["partition", "offset"])
    assert joined.count() == 3


def test_offsets_are_looked_up_at_the_first_run_after_load(
    spark: SparkSession, events: Events
) -> None:
    events.fill(2)
    frame = batch(spark, events.options())
    events.trim({0: 1})
    events.write(["0:2"])
    assert values(frame) == ["0:1", "0:2"]
    events.write(["0:3"])
    # Spark plans a Python data source once for each `load`.
    assert values(frame) == ["0:1", "0:2"]
    assert values(batch(spark, events.options())) == ["0:1", "0:2", "0:3"]


def test_records_deleted_since_they_were_planned_are_data_loss(
    spark: SparkSession, events: Events
) -> None:
    events.fill(3)
    frame = batch(spark, events.options())
    assert frame.count() == 3
    events.trim({0: 2})
    text = refusal(lambda: frame)
    assert "[KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE]" in text
    assert f"Cannot read {events.name}-0 [0, 3): " in text
    assert "offset 0 is not in the log, which has offsets 2 to 3" in text


def test_columns_filters_and_limits_of_the_query(spark: SparkSession, events: Events) -> None:
    events.fill(3_000, 2_000)
    frame = batch(spark, events.options())
    assert_df_equality(
        frame.groupBy("partition").count().orderBy("partition"),
        spark.createDataFrame([(0, 3_000), (1, 2_000)], "partition int, count long"),
        ignore_nullable=True,
    )
    assert frame.where("offset = 1999").select("partition").count() == 2
    for _ in range(3):
        assert frame.limit(3).collect()[0].topic == events.name


# -- refused batches -----------------------------------------------------------------------------


def refusal(frame: Callable[[], DataFrame]) -> str:
    """Return the text of the error that a batch raises, at `load` or when it runs."""
    with pytest.raises(PySparkException) as refused:
        frame().collect()
    return str(refused.value)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"startingOffsets": "latest"}, "Option 'startingOffsets': found 'latest'"),
        ({"startingOffsets": '{"$T":{"0":-1}}'}, "Option 'startingOffsets': found -1"),
        ({"startingOffsets": '{"$T":"latest"}'}, "Option 'startingOffsets': found 'latest'"),
        (
            {"startingOffsets": '{"$T":"earliest","no":"earliest"}'},
            "Option 'startingOffsets': names topics that the query does not read: no",
        ),
        ({"startingOffsets": "{"}, "Option 'startingOffsets': '{' is not JSON"),
        ({"endingOffsets": "earliest"}, "Option 'endingOffsets': found 'earliest'"),
        ({"subscribe": None}, "Option 'subscribe': no topic is named"),
        ({"assign": '{"$T":[0]}'}, "Option 'assign': given together with 'subscribe'"),
        ({"kafka.bootstrap.servers": None}, "Option 'kafka.bootstrap.servers': is missing"),
        ({"kafka.sasl.mechanism": "PLAIN"}, "Option 'kafka.sasl.mechanism': "),
        (
            {"startingOffsets": '{"$T":{"0":1}}', "endingOffsets": '{"$T":{"0":0}}'},
            "[UNRESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET] ",
        ),
        (
            {"startingOffsets": '{"$T":{"0":0}}', "endingOffsets": '{"$T":{"1":0}}'},
            "[MISMATCHED_TOPIC_PARTITIONS_BETWEEN_START_OFFSET_AND_END_OFFSET] ",
        ),
        (
            {"startingOffsets": '{"$T":{"0":0,"1":0}}'},
            "[KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED] Option 'startingOffsets'",
        ),
        (
            {"startingOffsets": '{"$T":{"0":3}}'},
            "[RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET] $T-0: the start offset 3",
        ),
        (
            {"subscribe": None, "assign": '{"$T":[0,1]}'},
            "Option 'assign': '$T-1' does not exist. The topic has partitions 0 to 0",
        ),
        ({"subscribe": "$T-no"}, "Option 'subscribe': topic '$T-no' does not exist"),
        ({"subscribe": "no topic"}, "'no topic'"),
        (
            {"subscribe": None, "assign": '{"$T-no":[0]}'},
            "Option 'assign': topic '$T-no' does not exist",
        ),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_cannot_be_read_is_refused_by_name(
    spark: SparkSession,
    events: Events,
    given: dict[str, str | None],
    text: str,
) -> None:
    events.fill(2)
    named = {name: value and value.replace("$T", events.name) for name, value in given.items()}
    found = events.options(startingOffsets=None) | QUICKLY_UNKNOWN | named
    assert text.replace("$T", events.name) in refusal(lambda: batch(spark, found))


def test_another_schema_is_refused(spark: SparkSession, events: Events) -> None:
    reader = spark.read.format("pykafka").options(**events.options()).schema("value string")
    assert "The columns are fixed" in refusal(reader.load)


def test_brokers_that_are_not_there_are_listed(spark: SparkSession, topic: str) -> None:
    with refused_port() as first, refused_port() as second:
        given = {
            "kafka.bootstrap.servers": f"127.0.0.1:{first},127.0.0.1:{second}",
            "kafka.request.timeout.ms": 1_000,
            "kafka.default.api.timeout.ms": 600_000,
            "subscribe": topic,
        }
        begun_seconds = time.monotonic()
        text = refusal(lambda: batch(spark, given))
        took_seconds = time.monotonic() - begun_seconds
    assert "No broker of 'kafka.bootstrap.servers' could be reached" in text
    assert f"127.0.0.1:{first}" in text
    assert f"127.0.0.1:{second}" in text
    # The shorter timeout counts here. The rest is the start of Python workers.
    assert took_seconds < 300
