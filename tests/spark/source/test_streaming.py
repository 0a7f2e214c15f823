"""Streams over a real broker: their starts, restarts, and the rows of each micro-batch."""

import json
import uuid
from pathlib import Path

import pytest
from chispa import assert_df_equality
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from tests.spark_session import Run, Start
from tools.traffic import (
    TIMEOUT_SECONDS,
    Batches,
    Events,
    batch,
    failure,
    sizes,
    stream,
    wait_until,
)

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

STRATEGIES = ("assign", "subscribe", "subscribePattern")
QUICKLY_UNKNOWN = {"fetchOffset.numRetries": 1, "fetchOffset.retryIntervalMs": 100}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "position",
    [
        ("earliest", [-22, -21, -20, -12, -11, -10, 0, 1, 2, 10, 11, 12, 20, 21, 22]),
        ("latest", []),
        ('{"$T":{"0":-2,"1":-1,"2":0,"3":1,"4":2}}', [-22, -21, -20, 0, 1, 2, 11, 12, 22]),
    ],
    ids=["earliest", "latest", "specific"],
)
def test_where_a_stream_starts_and_goes_on(
    spark: SparkSession, events: Events, run: Run, strategy: str, position: tuple[str, list[int]]
) -> None:
    starting_offsets, expected = position
    events.create(5)
    written = [[-20, -21, -22], [-10, -11, -12], [0, 1, 2], [10, 11, 12], [20, 21, 22]]
    for partition, numbers in enumerate(written):
        events.write(numbers, partition)
    starting = starting_offsets.replace("$T", events.name)
    found = events.options(startingOffsets=starting) | events.named_by(strategy)
    sink = Batches()
    run(stream(spark, found), sink)
    assert sorted(map(int, sink.values)) == expected
    events.write([30, 31], 3)
    run(stream(spark, found), sink)
    run(stream(spark, found), sink)
    assert sorted(map(int, sink.values)) == [*expected, 30, 31]


@pytest.mark.parametrize("starting_offsets", ["earliest", "latest"])
def test_a_stopped_query_goes_on_without_loss_or_doubles(
    spark: SparkSession,
    events: Events,
    start: Start,
    starting_offsets: str,
) -> None:
    events.create(3)
    frame = stream(spark, events.options(startingOffsets=starting_offsets))
    sink = Batches()
    query = start(frame.writeStream.foreachBatch(sink))
    wait_until(lambda: query.lastProgress, query)  # The first, empty micro-batch is over.
    query.stop()
    events.write(["while stopped"], 1)
    query = start(frame.writeStream.foreachBatch(sink))
    wait_until(lambda: sink.values, query)
    events.write(["a", "b"], 2)
    wait_until(lambda: len(sink.values) >= 3, query)
    query.stop()
    events.write(["c"], 1)
    query = start(frame.writeStream.foreachBatch(sink))
    wait_until(lambda: len(sink.values) >= 4, query)
    events.write(["d"])
    wait_until(lambda: len(sink.values) >= 5, query)
    assert sink.values == ["a", "b", "c", "d", "while stopped"]


@pytest.mark.parametrize("strategy", ["subscribe", "subscribePattern"])
@pytest.mark.parametrize("starting_offsets", ["earliest", "latest"])
def test_a_topic_that_grows_is_read_on(
    spark: SparkSession,
    events: Events,
    start: Start,
    strategy: str,
    starting_offsets: str,
) -> None:
    events.create(5)
    found = events.options(startingOffsets=starting_offsets)
    frame = stream(spark, found | events.named_by(strategy))
    sink = Batches()
    query = start(frame.writeStream.foreachBatch(sink))
    wait_until(lambda: query.lastProgress, query)
    events.grow(10)
    for partition in range(10):
        events.write([f"{partition}:0", f"{partition}:1"], partition)
    wait_until(lambda: len(sink.values) >= 20, query)
    assert sink.values == [f"{partition}:{offset}" for partition in range(10) for offset in (0, 1)]


def test_topics_that_come_to_match_a_pattern_are_read(
    spark: SparkSession, events: Events, run: Run
) -> None:
    events.another("1").create()
    pattern = events.options(subscribe=None, subscribePattern=f"{events.name}-.*")
    frame = stream(spark, pattern | {"startingOffsets": "latest"})
    sink = Batches()
    run(frame, sink)
    added = events.another("2")
    added.create(2)
    added.write(["new"], 1)
    run(frame, sink)
    assert sink.values == ["new"]


def test_no_task_for_a_partition_with_nothing_new(
    spark: SparkSession, events: Events, start: Start
) -> None:
    events.create(6)
    for partition in range(6):
        events.write(["first"], partition)
    tasks: list[int] = []

    def count(frame: DataFrame, _: int) -> None:
        tasks.append(frame.rdd.getNumPartitions())

    frame = stream(spark, events.options())
    query = start(frame.writeStream.foreachBatch(count))
    wait_until(lambda: tasks == [6], query)
    events.write(["second"], 4)
    wait_until(lambda: tasks == [6, 1], query)


def test_progress_tells_the_latest_offsets(spark: SparkSession, events: Events, run: Run) -> None:
    events.create(2)
    events.write(range(7))
    query = run(stream(spark, events.options(maxOffsetsPerTrigger=5)), Batches())
    first, second = (each["sources"][0] for each in query.recentProgress[:2])
    ends = [
        json.loads(source[name])["offsets"][events.name]["0"]
        for source in (first, second)
        for name in ("endOffset", "latestOffset")
    ]
    assert ends == [5, 7, 7, 7]
    assert first["numInputRows"] == 5


def test_a_parquet_sink(spark: SparkSession, events: Events, start: Start, tmp_path: Path) -> None:
    events.create(2)
    frame = stream(spark, events.options()).selectExpr("CAST(value AS STRING)", "offset")
    path = str(tmp_path / "rows")
    for values in (["a", "b"], ["c"]):
        events.write(values, 1)
        sink = frame.writeStream.format("parquet").option("path", path)
        assert start(sink.trigger(availableNow=True)).awaitTermination(TIMEOUT_SECONDS)
    expected = spark.createDataFrame([("a", 0), ("b", 1), ("c", 2)], "value string, offset long")
    assert_df_equality(spark.read.parquet(path), expected, ignore_row_order=True)


def test_a_memory_sink_with_an_aggregate(spark: SparkSession, events: Events, start: Start) -> None:
    events.create(2)
    name = f"counts_{uuid.uuid4().hex}"
    counts = stream(spark, events.options()).groupBy("partition").count()
    query = start(
        counts.writeStream.format("memory")
        .queryName(name)
        .outputMode("complete")
        .trigger(processingTime="0 seconds")
    )
    events.write("abc", 1)
    wait_until(lambda: spark.table(name).collect(), query)
    events.write("de", 1)
    events.write("f", 0)
    query.processAllAvailable()
    expected = spark.createDataFrame([(0, 1), (1, 5)], "partition int, count long")
    assert_df_equality(spark.table(name), expected, ignore_row_order=True, ignore_nullable=True)


def test_a_failed_batch_reads_the_same_rows_again(
    spark: SparkSession, events: Events, start: Start
) -> None:
    events.create(2)
    events.write(["0:0", "0:1"])
    frame = stream(spark, events.options(maxOffsetsPerTrigger=3))
    sink = Batches()

    def fail_first(batch: DataFrame, batch_id: int) -> None:
        sink(batch, batch_id)
        if len(sink.seen) in (1, 3):
            raise RuntimeError("not this time")

    writing = frame.writeStream.foreachBatch(fail_first).trigger(availableNow=True)
    assert "not this time" in failure(start(writing))
    events.grow(3)
    for partition in range(3):
        events.write([f"{partition}:later"] * 3, partition)
    assert "not this time" in failure(start(writing))
    assert start(writing).awaitTermination(TIMEOUT_SECONDS)
    assert sink.seen[0] == sink.seen[1] == (0, ["0:0", "0:1"])
    assert sink.seen[2] == sink.seen[3]
    later_rows = [f"{partition}:later" for partition in range(3) for _ in range(3)]
    assert sink.values == sorted(["0:0", "0:1", *later_rows])


def test_two_sources_in_one_query(spark: SparkSession, events: Events, run: Run) -> None:
    busy, idle = events.another("busy"), events.another("idle")
    busy.create()
    idle.create()
    busy.write(range(5))
    idle.write(["once"])
    frames = [stream(spark, each.options(maxOffsetsPerTrigger=2)) for each in (busy, idle)]
    sink = Batches()
    query = run(frames[0].union(frames[1]), sink)
    assert sink.values == ["0", "1", "2", "3", "4", "once"]
    assert [size for size in sizes(query) if size] == [3, 2, 1]


def test_a_stream_joined_with_itself(spark: SparkSession, events: Events, run: Run) -> None:
    events.create()
    events.write(range(3))
    frame = stream(spark, events.options())
    offsets = frame.select("offset")
    sink = Batches()
    run(frame.join(offsets, "offset"), sink)
    assert sink.values == ["0", "1", "2"]


# -- errors that end a stream --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"maxOffsetsPerTrigger": "1.0"}, "Option 'maxOffsetsPerTrigger': found '1.0'"),
        ({"startingOffsets": '{"a":1}'}, "Option 'startingOffsets': topic 'a' is no JSON object"),
        ({"subscribe": None}, "Option 'subscribe': no topic is named"),
        ({"kafka.enable.auto.commit": "true"}, "Option 'kafka.enable.auto.commit': "),
    ],
)
def test_options_are_refused_at_load(
    spark: SparkSession,
    events: Events,
    given: dict[str, str | None],
    text: str,
) -> None:
    with pytest.raises(PySparkException) as refused:
        stream(spark, events.options() | given)
    assert text in str(refused.value)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"endingOffsets": "latest"}, "Option 'endingOffsets': is given"),
        ({"subscribe": "no"}, "Option 'subscribe': topic 'no' does not exist"),
        (
            {"startingOffsets": '{"$T":{"0":0,"7":0}}'},
            "[KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED] Option 'startingOffsets'",
        ),
        ({"startingOffsets": '{"$T":{"0":9}}'}, "Option 'startingOffsets': offset 9 of $T-0"),
    ],
)
def test_what_does_not_fit_the_topic_ends_the_query(
    spark: SparkSession,
    events: Events,
    start: Start,
    given: dict[str, str],
    text: str,
) -> None:
    events.create()
    named = {name: value.replace("$T", events.name) for name, value in given.items()}
    frame = stream(spark, events.options() | QUICKLY_UNKNOWN | named)
    assert text.replace("$T", events.name) in failure(start(frame.writeStream.format("noop")))


def test_a_deleted_topic_of_a_pattern_is_data_loss(
    spark: SparkSession, events: Events, start: Start
) -> None:
    events.another("kept").create()
    gone = events.another("gone")
    gone.create()
    pattern = events.options(subscribe=None, subscribePattern=f"{events.name}-.*")
    query = start(stream(spark, pattern).writeStream.format("noop"))
    wait_until(lambda: query.lastProgress, query)
    gone.delete()
    text = failure(query)
    assert f"[KAFKA_DATA_LOSS.PARTITIONS_DELETED] {gone.name}-0 existed" in text


@pytest.mark.parametrize(
    "change",
    [
        ({"subscribe": "$T-a,$T-b"}, {"subscribe": "$T-a"}, "$T-b-0, $T-b-1"),
        ({"subscribePattern": "$T-."}, {"subscribePattern": "$T-a"}, "$T-b-0, $T-b-1"),
        ({"assign": '{"$T-a":[0,1]}'}, {"assign": '{"$T-a":[0]}'}, "$T-a-1"),
        ({"subscribe": "$T-a"}, {"subscribe": "$T-a", "partitions": "0"}, "$T-a-1"),
    ],
    ids=["subscribe", "pattern", "assign", "partitions"],
)
def test_what_is_no_longer_subscribed_to_is_no_deleted_topic(
    spark: SparkSession,
    events: Events,
    run: Run,
    change: tuple[dict[str, str], dict[str, str], str],
) -> None:
    before, after, left_out = change
    for suffix in ("a", "b"):
        events.another(suffix).fill(2, 2)

    def frame(named: dict[str, str], **more: object) -> DataFrame:
        texts = {name: text.replace("$T", events.name) for name, text in named.items()}
        return stream(spark, events.options(**{"subscribe": None, **texts, **more}))

    run(frame(before), Batches())
    events.another("a").write(["more"])
    with pytest.raises(StreamingQueryException) as failed:
        run(frame(after), Batches())
    found = f"no longer subscribes to {left_out.replace('$T', events.name)}, which"
    assert f"[KAFKA_DATA_LOSS.PARTITIONS_DELETED] The query {found}" in str(failed.value)
    assert "failOnDataLoss=false" in str(failed.value)
    rows = Batches()
    run(frame(after, failOnDataLoss=False), rows)
    run(frame(after), rows)
    assert rows.values == ["more"]


def test_nanoseconds_are_no_damage_and_the_other_columns_can_be_read(
    spark: SparkSession, events: Events, start: Start
) -> None:
    events.create(message_timestamp_after_max_ms=str(2**63 - 1))
    events.write(["1"], timestamp_ms=1_712_345_678_123_456_789)
    text = failure(start(stream(spark, events.options()).writeStream.format("noop")))
    assert "TimestampOverflowError" in text
    assert "The log is not damaged" in text
    assert "as nanoseconds it is 2024-04-05T19:34:38Z" in text
    rows = batch(spark, events.options(columns="value")).collect()
    assert [bytes(row.value) for row in rows] == [b"1"]


def test_a_topic_made_anew_with_fewer_rows_is_data_loss(
    spark: SparkSession, events: Events, run: Run, start: Start
) -> None:
    events.create()
    events.write(range(5))
    frame = stream(spark, events.options())
    run(frame, Batches())
    events.delete()
    events.create()
    events.write(range(3))
    text = failure(start(frame.writeStream.foreachBatch(Batches()).trigger(availableNow=True)))
    expected = f"Topics {events.name} were deleted and made anew"
    assert f"[KAFKA_DATA_LOSS.PARTITIONS_DELETED] {expected}" in text


def test_records_deleted_before_they_were_read_are_data_loss(
    spark: SparkSession, events: Events, run: Run, start: Start
) -> None:
    events.create()
    events.write(range(2))
    frame = stream(spark, events.options())
    run(frame, Batches())
    events.write(range(4))
    events.trim({0: 3})
    for _ in range(2):  # A restart does not help.
        again = frame.writeStream.foreachBatch(Batches()).trigger(availableNow=True)
        text = failure(start(again))
        assert "[KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE]" in text
        assert f"Cannot read {events.name}-0 [2, 6): " in text
        assert "offset 2 is not in the log, which has offsets 3 to 6" in text
    # As docs/data-loss.md says: once without, and then with it again.
    once, later = Batches(), Batches()
    run(stream(spark, events.options(failOnDataLoss="false")), once)
    assert once.values == ["1", "2", "3"]
    events.write(["later"])
    run(frame, later)
    assert later.values == ["later"]
