"""Refused options, rows, and a query's progress and checkpoint."""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from pyspark.sql import DataFrame, SparkSession, functions

from tests.parity.refusals import BAD_SUBSCRIPTIONS, refused
from tests.parity.scenario import Follow, Source, process_all_available
from tests.spark_session import Run, Start
from tools.traffic import Batches, Events, Writer, sizes, values, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.peer]

TIME_MS = 1_700_000_001_234
TIME = datetime.fromtimestamp(TIME_MS / 1000, UTC)

# -- refused options -----------------------------------------------------------------------------

# The option in our error, and words of the peer's error.
BAD_OPTIONS: dict[str, tuple[Mapping[str, object], str, str]] = {
    "an end": ({"endingOffsets": "latest"}, "endingOffsets", "ending offset not valid"),
    "an end by timestamp": (
        {"endingOffsetsByTimestamp": '{"t":{"0":1000}}'},
        "endingOffsetsByTimestamp",
        "ending timestamp not valid",
    ),
    **BAD_SUBSCRIPTIONS,
    "more at least than at most": (
        {"minOffsetsPerTrigger": 20, "maxOffsetsPerTrigger": 15},
        "minOffsetsPerTrigger",
        "higher than the maxOffsetsPerTrigger",
    ),
}


def anywhere(**more: object) -> dict[str, Any]:
    """Return the options of a source that never asks its brokers."""
    return {"kafka.bootstrap.servers": "127.0.0.1:9", "subscribe": "t"} | more


@pytest.mark.parametrize("bad", BAD_OPTIONS)
def test_bad_options_are_refused(source: Source, run: Run, bad: str) -> None:
    given, option, words = BAD_OPTIONS[bad]
    # Before the start, a Python data source does not know that it is a stream.
    text = refused(lambda: run(source.stream(anywhere(**given)), Batches()))
    assert (f"Option '{option}'" if source.is_ours else words) in text


def test_an_end_by_one_timestamp_is_refused(source: Source, events: Events, run: Run) -> None:
    events.fill(1)
    frame = source.stream(events.options(endingTimestamp=1_000))
    sink = Batches()
    # The peer ignores it and reads on.
    if source.is_ours:
        assert "Option 'endingTimestamp'" in refused(lambda: run(frame, sink))
    else:
        run(frame, sink)
        assert sink.values == ["0:0"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kafka.enable.auto.commit", "true"),
        ("kafka.interceptor.classes", "a.Class"),
        ("kafka.key.deserializer", "a.Class"),
        ("kafka.value.deserializer", "a.Class"),
        *[
            ("kafka.auto.offset.reset", value)
            for value in ("none", "earliest", "latest", "anything")
        ],
    ],
)
def test_unsupported_kafka_settings_are_refused(source: Source, name: str, value: str) -> None:
    text = refused(lambda: source.stream(anywhere(**{name: value})))
    assert name.removeprefix("kafka.") in text
    assert "not supported" in text


@pytest.mark.parametrize(
    "name",
    [
        "kafkaConsumer.pollTimeoutMs",
        "fetchOffset.numRetries",
        "fetchOffset.retryIntervalMs",
        "maxOffsetsPerTrigger",
        "minOffsetsPerTrigger",
        "maxTriggerDelay",
        "minPartitions",
    ],
)
def test_names_of_options_in_any_case(source: Source, events: Events, run: Run, name: str) -> None:
    events.create()
    found = events.options(**{name.swapcase(): "no number"})
    # The error shows that the source read the option.
    assert "no number" in refused(lambda: run(source.stream(found), Batches()))


def test_names_of_options_in_any_case_for_a_batch(source: Source, events: Events) -> None:
    events.fill(1)
    found = events.options(**{"KAFKACONSUMER.pOLLtIMEOUTmS": "no number"})
    assert "no number" in refused(lambda: values(source.batch(found)))


def test_values_of_options_in_any_case(source: Source, events: Events) -> None:
    events.fill(2)
    found = events.options(startingOffsets=None, STARTINGOFFSETS="eaRLiest", endingoffsets="laTest")
    assert values(source.batch(found)) == ["0:0", "0:1"]


# -- rows ----------------------------------------------------------------------------------------


def test_columns_and_their_types(source: Source, events: Events, start: Start) -> None:
    found: list[dict[str, Any]] = []

    def sink(frame: DataFrame, _: int) -> None:
        found.extend(row.asDict() for row in frame.collect())

    events.create()
    headers = [("a", b"b"), ("c", b"d")]
    with Writer(events.kafka.bootstrap_servers) as writer:
        writer.queue(events.name, b"1", headers=headers, timestamp_ms=TIME_MS)
    frame = source.stream(events.options(includeHeaders=True))
    assert {each.name: each.dataType.simpleString() for each in frame.schema} == {
        "key": "binary",
        "value": "binary",
        "topic": "string",
        "partition": "int",
        "offset": "bigint",
        "timestamp": "timestamp",
        "timestampType": "int",
        "headers": "array<struct<key:string,value:binary>>",
    }
    assert all(each.nullable for each in frame.schema)
    process_all_available(start(frame.writeStream.foreachBatch(sink)))
    (row,) = found
    assert row.pop("timestamp").replace(tzinfo=UTC) == TIME
    assert row == {
        "key": None,
        "value": b"1",
        "topic": events.name,
        "partition": 0,
        "offset": 0,
        "timestampType": 0,
        "headers": headers,
    }


def test_a_timestamp_that_is_no_milliseconds(source: Source, events: Events, start: Start) -> None:
    nanoseconds = 1_712_345_678_123_456_789
    events.create(message_timestamp_after_max_ms=str(2**63 - 1))
    with Writer(events.kafka.bootstrap_servers) as writer:
        writer.queue(events.name, b"1", timestamp_ms=nanoseconds)
    query = start(source.stream(events.options()).writeStream.format("noop"))
    text = refused(lambda: process_all_available(query))
    assert "KAFKA_MALFORMED_RECORD_TIMESTAMP" in text
    assert events.name in text
    assert str(nanoseconds) in text


def test_watermark(source: Source, events: Events, start: Start) -> None:
    found: list[tuple[Any, ...]] = []

    def sink(frame: DataFrame, _: int) -> None:
        found[:] = [(row.start.replace(tzinfo=UTC), row["count"]) for row in frame.collect()]

    events.create()
    with Writer(events.kafka.bootstrap_servers) as writer:
        writer.queue(events.name, b"1", timestamp_ms=TIME_MS)
    windows = (
        source.stream(events.options())
        .withWatermark("timestamp", "10 seconds")
        .groupBy(functions.window("timestamp", "5 seconds"))
        .count()
        .select("window.start", "count")
    )
    query = start(windows.writeStream.outputMode("complete").foreachBatch(sink))
    process_all_available(query)
    assert found == [(datetime.fromtimestamp(TIME_MS // 5_000 * 5, UTC), 1)]


@pytest.fixture(params=["false", "true"], ids=["scanned twice", "scanned once"])
def reuse(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[bool]:
    """Whether Spark reads a source only once if a query uses it twice."""
    spark.conf.set("spark.sql.exchange.reuse", request.param)
    yield request.param == "true"
    spark.conf.unset("spark.sql.exchange.reuse")


@pytest.mark.parity_full
def test_self_join(source: Source, events: Events, start: Start, *, reuse: bool) -> None:
    found: list[tuple[int, ...]] = []

    def sink(frame: DataFrame, _: int) -> None:
        found.extend(map(tuple, frame.collect()))

    events.create(2)
    number = functions.col("value").cast("string").cast("int")
    frame = source.stream(events.options(startingOffsets="latest"))
    numbers = frame.select((number % 5).alias("key"), number.alias("value"))
    query = start(numbers.join(numbers, "key").writeStream.foreachBatch(sink))
    process_all_available(query)
    events.write([1, 2])
    process_all_available(query)
    events.write([6, 3], partition=1)
    process_all_available(query)
    joined = [(1, 1, 1), (1, 1, 6), (1, 6, 1), (1, 6, 6), (2, 2, 2), (3, 3, 3)]
    assert sorted(found) == joined
    assert sum(sizes(query)) == (4 if reuse else 8)
    assert {len(each["sources"]) for each in query.recentProgress} == {1}


# -- progress ------------------------------------------------------------------------------------


def test_input_rows_are_counted(source: Source, events: Events, follow: Follow) -> None:
    events.fill(1, 1)
    stream = follow(source.stream(events.options(startingOffsets="latest")))
    assert stream.read() == []
    events.write([1, 2])
    events.write([3], 1)
    assert stream.numbers() == [1, 2, 3]
    assert sum(sizes(stream.query)) == 3


@pytest.mark.parametrize("limit", [2, None], ids=["limited", "not limited"])
def test_offsets_behind_the_latest(
    source: Source, events: Events, run: Run, limit: int | None
) -> None:
    events.fill(3, 3)
    query = run(source.stream(events.options(maxOffsetsPerTrigger=limit)), Batches())
    behind = [behind_latest(source, each["sources"][0]) for each in query.recentProgress]
    assert behind == [(each, each, each) for each in ((2, 1, 0) if limit else (0,))]


def behind_latest(source: Source, progress: Mapping[str, Any]) -> tuple[float, float, float]:
    """Return the least, greatest and average lag of the partitions after a micro-batch."""
    if not source.is_ours:
        names = [f"{name}OffsetsBehindLatest" for name in ("min", "max", "avg")]
        least, most, average = (float(progress["metrics"][name]) for name in names)
        return least, most, average
    # A Python data source has no own metrics. The progress has both offsets, by partition.
    end, latest = (
        next(iter(json.loads(progress[name])["offsets"].values()))
        for name in ("endOffset", "latestOffset")
    )
    lags = [latest[partition] - end[partition] for partition in latest]
    return min(lags), max(lags), sum(lags) / len(lags)


@pytest.mark.parametrize("name", ["groupIdPrefix", "kafka.group.id"])
def test_a_group_is_named(source: Source, events: Events, run: Run, name: str) -> None:
    events.fill(2)
    sink = Batches()
    run(source.stream(events.options(**{name: events.name})), sink)
    assert sink.values == ["0:0", "0:1"]
    # The peer never commits. Ours commits only to a named group.
    assert committed(events) == (2 if source.is_ours and name == "kafka.group.id" else None)


NOT_READY = {
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
}


def committed(events: Events) -> int | None:
    """Return the committed offset of partition 0. The group has the topic's name.

    A broker's first coordinator may not be ready for the first request.
    """
    servers = events.kafka.bootstrap_servers
    consumer = Consumer({"bootstrap.servers": servers, "group.id": events.name, "log_level": 0})
    found: list[int] = []

    def is_told() -> bool:
        try:
            (first,) = consumer.committed([TopicPartition(events.name, 0)], timeout=60)
        except KafkaException as error:
            assert error.args[0].code() in NOT_READY, error
            return False
        found.append(first.offset)
        return True

    try:
        wait_until(is_told)
    finally:
        consumer.close()
    return found[0] if found[0] >= 0 else None


# -- checkpoints ---------------------------------------------------------------------------------


def test_a_stream_is_stopped_at_once(source: Source, events: Events, follow: Follow) -> None:
    events.fill(1, 1)
    stream = follow(source.stream(events.options(startingOffsets="latest")))
    stream.stop()
    assert stream.query.exception() is None
    assert not stream.query.isActive


def test_initial_offsets_are_kept(source: Source, events: Events, follow: Follow) -> None:
    events.fill(1, 1)
    stream = follow(source.stream(events.options(startingOffsets=None)))
    assert stream.read() == []
    stream.stop()
    events.write(["meanwhile"])
    stream.start()
    assert stream.read() == ["meanwhile"]


def test_a_newer_checkpoint_is_refused(
    source: Source, events: Events, run: Run, tmp_path: Path
) -> None:
    events.fill(1)
    frame = source.stream(events.options())
    run(frame, Batches())
    checkpoint = tmp_path / "checkpoint"
    make_newer = make_ours_newer if source.is_ours else make_peers_newer
    make_newer(checkpoint)
    text = refused(lambda: run(frame, Batches()))
    assert "99999" in text
    assert ("Install the release that wrote it" if source.is_ours else "newer version") in text


def make_ours_newer(checkpoint: Path) -> None:
    """Give the first micro-batch, not yet committed, an offset of a future version."""
    (checkpoint / "commits" / "0").unlink()
    offsets = checkpoint / "offsets" / "0"
    offsets.write_text(re.sub(r'"version": ?\d+', '"version": 99999', offsets.read_text()))
    (checkpoint / "offsets" / ".0.crc").unlink()


def make_peers_newer(checkpoint: Path) -> None:
    """Delete all but the initial offsets, and give these a future version."""
    for directory in ("commits", "offsets"):
        for path in (checkpoint / directory).iterdir():
            path.unlink()
    initial = checkpoint / "sources" / "0" / "0"
    initial.write_text(initial.read_text().replace("v1\n", "v99999\n"))
    (checkpoint / "sources" / "0" / ".0.crc").unlink()


@pytest.mark.parity_full
def test_async_progress_tracking(source: Source, events: Events, start: Start) -> None:
    target = events.another("target")
    target.create()
    events.create(2)
    frame = source.stream(events.options(maxOffsetsPerTrigger=5))
    written: list[str] = []
    for numbers in (range(15), range(15, 30)):
        events.write(numbers)
        written += map(str, numbers)
        query = start(
            frame.select("value")
            .writeStream.format("kafka")
            .option("kafka.bootstrap.servers", events.kafka.bootstrap_servers)
            .option("topic", target.name)
            .option("asyncProgressTrackingEnabled", "true")
            .option("asyncProgressTrackingCheckpointIntervalMs", "1000")
        )
        process_all_available(query)
        query.stop()
        # The sink may repeat rows after a restart, but drops none.
        assert set(values(source.batch(target.options()))) == set(written)
