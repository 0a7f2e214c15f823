"""Exactly once on a real broker: readers see each row once, also after retries."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.streaming.query import StreamingQuery

from spark_kafka_source.admin import KafkaAdmin
from spark_kafka_source.admin.transactions import list_transactions
from spark_kafka_source.client import KafkaClient
from tests.spark.sink.settings import parsed
from tests.spark.sink.written import rows, texts, to, writer
from tests.spark_session import Start
from tools.traffic import TIMEOUT_SECONDS, Events, batch, failure, stream, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.usefixtures("spark")]


def exactly(target: Events, **more: object) -> dict[str, Any]:
    return to(target, deliveryGuarantee="exactly-once", **{"kafka.max.block.ms": 30_000}, **more)


def left_open(events: Events, prefix: str) -> list[str]:
    """Return the open transactions with ids under a prefix."""
    with KafkaClient(parsed(**to(events, **{"kafka.max.block.ms": "1"})).producer.client) as client:
        found, failures = client.run(list_transactions(client, ["Ongoing"]))
    assert not failures
    return [each.transactional_id for each in found if each.transactional_id.startswith(prefix)]


def copying(spark: SparkSession, events: Events, **more: object) -> DataFrame:
    return stream(spark, events.options(**more)).select("key", "value")


Writes = Callable[..., StreamingQuery]


@pytest.fixture
def write(start: Start) -> Writes:
    """Function that starts a stream on its checkpoint and runs it to its end."""

    def write(frame: DataFrame, options: dict[str, Any], *where: str) -> StreamingQuery:
        writing = frame.writeStream.format("pykafka").options(**options).trigger(availableNow=True)
        query = start(writing, *where)
        assert query.awaitTermination(TIMEOUT_SECONDS)
        return query

    return write


def forget_last_commit(checkpoint: Path) -> None:
    """Undo the last entry of the commit log, as if the driver died before it wrote the entry."""
    last = max((checkpoint / "commits").iterdir(), key=lambda each: each.name)
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)


# -- streams -------------------------------------------------------------------------------------


@pytest.mark.peer
def test_a_micro_batch_that_is_run_again_is_seen_once_by_every_reader(
    spark: SparkSession, events: Events, target: Events, write: Writes, tmp_path: Path
) -> None:
    events.fill(4, 3)
    frame = copying(spark, events, maxOffsetsPerTrigger=4)
    for _ in range(3):
        query = write(frame, exactly(target))
        forget_last_commit(tmp_path / "checkpoint")
    events.write(["later"])
    write(frame, exactly(target))
    expected = ["0:0", "0:1", "0:2", "0:3", "1:0", "1:1", "1:2", "later"]
    assert texts(target) == expected
    assert not left_open(target, f"pykafka-{query.id}")
    for name in ("pykafka", "kafka"):  # This project's reader, and Java's.
        given = target.options() | {"kafka.isolation.level": "read_committed"}
        seen = batch(spark, given, name).selectExpr("CAST(value AS STRING) AS value").collect()
        assert sorted(row.value for row in seen) == expected
    everything = target.options() | {"kafka.isolation.level": "read_uncommitted"}
    assert batch(spark, everything).count() > len(expected)  # Some of it was aborted.


def test_nobody_sees_rows_of_a_task_that_failed_half_way(
    spark: SparkSession, target: Events
) -> None:
    failing = "IF(id = 19999, raise_error('half way'), repeat('a', 1000)) AS value"
    frame = spark.range(0, 20_000, 1, 1).selectExpr(failing)
    with pytest.raises(PySparkException, match="half way"):
        writer(frame, exactly(target, **prefix_of(target))).save()
    # Spark's task is over, but its Python worker may still write the rows before the failure.
    everything = target.options() | {"kafka.isolation.level": "read_uncommitted"}
    wait_until(lambda: batch(spark, everything).count() > 0)
    prefix = prefix_of(target)["transactionalIdPrefix"]
    wait_until(lambda: not left_open(target, prefix))
    assert texts(target) == []


def test_a_query_that_is_stopped_in_mid_batch_goes_on_where_it_was(
    events: Events, target: Events, start: Start, write: Writes, tmp_path: Path
) -> None:
    """At the stop, one task has written its rows and the other task waits."""
    events.fill(3, 3)
    marks = tmp_path / "marks"
    marks.mkdir()

    @udf("binary", useArrow=False)
    def slow(value: bytes) -> bytes:
        (marks / bytes(value).decode()).touch()
        while bytes(value) == b"1:2" and not (marks / "go on").exists():
            time.sleep(0.05)
        return value

    frame = copying(SparkSession.active(), events).select(slow("value").alias("value"))
    query = start(frame.writeStream.format("pykafka").options(**exactly(target)))
    prefix = f"pykafka-{query.id}"
    wait_until(lambda: (marks / "1:2").exists() and left_open(target, prefix), query)
    query.stop()
    (marks / "go on").touch()
    write(frame, exactly(target))
    assert texts(target) == ["0:0", "0:1", "0:2", "1:0", "1:1", "1:2"]
    assert not left_open(target, prefix)


def test_a_micro_batch_without_rows_is_written(
    spark: SparkSession, events: Events, target: Events, write: Writes, tmp_path: Path
) -> None:
    events.fill(2)
    none = copying(spark, events).where("value = CAST('0:9' AS BINARY)")
    write(none, exactly(target))
    forget_last_commit(tmp_path / "checkpoint")
    write(none, exactly(target))
    events.write(["0:9"])
    write(none, exactly(target))
    assert texts(target) == ["0:9"]


def test_from_kafka_to_kafka_the_groups_offsets_are_those_of_the_rows(
    spark: SparkSession, events: Events, target: Events, write: Writes, tmp_path: Path
) -> None:
    events.fill(4, 3)
    group = {"kafka.group.id": events.name}
    frame = copying(spark, events, maxOffsetsPerTrigger=3, **group)
    for _ in range(2):
        write(frame, exactly(target))
        forget_last_commit(tmp_path / "checkpoint")
    write(frame, exactly(target))
    assert len(texts(target)) == 7
    with KafkaAdmin(bootstrap_servers=events.kafka.bootstrap_servers) as admin:
        offsets = admin.list_group_offsets(events.name)
        assert admin.group_lag(events.name).total == 0
    assert {where.partition: each.offset for where, each in offsets.items()} == {0: 4, 1: 3}


# -- topics of a column ----------------------------------------------------------------------------


@pytest.mark.parametrize(("tasks", "doubtful"), [(1, "warn"), (2, "warn"), (2, "fail")])
def test_a_deleted_topic_doubles_no_row_of_others(
    tasks: int, doubtful: str, events: Events, write: Writes, tmp_path: Path
) -> None:
    """Brokers delete a decision's copy with its topic. What is gone with the topic is told."""
    first, last = events.another("a-first"), events.another("z-last")
    for each in (first, last):
        each.create()
    options = exactly(first, topic=None, doubtfulReplays=doubtful)
    files = tmp_path / "files"
    files.mkdir()
    frame = SparkSession.active().readStream.schema("topic string, value string").json(str(files))

    def has(name: str, **rows: Events) -> None:
        lines = [json.dumps({"topic": each.name, "value": value}) for value, each in rows.items()]
        (files / name).write_text("\n".join(lines))

    has("0", zero=last)
    write(frame, options)
    if tasks == 1:
        has("1", one=first, two=last)
    else:
        has("1", one=first)
        has("2", two=last)
    write(frame, options)
    assert (texts(first), texts(last)) == (["one"], ["two", "zero"])
    forget_last_commit(tmp_path / "checkpoint")
    first.delete()
    first.create()
    if doubtful == "fail":
        for _ in range(2):
            with pytest.raises(StreamingQueryException, match="gone with their topic") as failed:
                write(frame, options)
            assert "DoubtfulReplayError" in str(failed.value)
    else:
        write(frame, options)
    assert (texts(first), texts(last)) == ([], ["two", "zero"])


# -- in foreachBatch -----------------------------------------------------------------------------


def test_within_foreach_batch_the_guarantee_is_kept(
    spark: SparkSession, events: Events, target: Events, start: Start, tmp_path: Path
) -> None:
    events.fill(3, 2)

    def save(frame: DataFrame, _: int) -> None:
        writer(frame, exactly(target)).save()

    frame = copying(spark, events)
    for _ in range(3):
        query = start(frame.writeStream.foreachBatch(save).trigger(availableNow=True))
        assert query.awaitTermination(TIMEOUT_SECONDS)
        forget_last_commit(tmp_path / "checkpoint")
    assert texts(target) == ["0:0", "0:1", "0:2", "1:0", "1:1"]
    assert not left_open(target, f"pykafka-{query.id}")


def foreach(start: Start, frame: DataFrame, save: Callable[[DataFrame, int], None]) -> str:
    return failure(start(frame.writeStream.foreachBatch(save).trigger(availableNow=True)))


def test_two_writes_of_one_foreach_batch_need_two_prefixes(
    spark: SparkSession, events: Events, target: Events, start: Start
) -> None:
    events.fill(3)

    def save(frame: DataFrame, _: int) -> None:
        for _ in range(2):
            writer(frame, exactly(target)).save()

    text = foreach(start, copying(spark, events), save)
    assert "Option 'transactionalIdPrefix': batch 0 of query" in text
    assert "give the second write a prefix of its own" in text
    assert texts(target) == ["0:0", "0:1", "0:2"]


def test_two_writes_with_two_prefixes_are_each_seen_once(
    spark: SparkSession, events: Events, target: Events, start: Start, tmp_path: Path
) -> None:
    events.fill(3)

    def save(frame: DataFrame, _: int) -> None:
        for name in ("one", "two"):
            prefix = f"{target.name[-8:]}-{name}".replace(".", "-")
            writer(frame, exactly(target, transactionalIdPrefix=prefix)).save()

    for _ in range(2):
        writing = copying(spark, events).writeStream.foreachBatch(save)
        query = start(writing.trigger(availableNow=True))
        assert query.awaitTermination(TIMEOUT_SECONDS)
        forget_last_commit(tmp_path / "checkpoint")
    assert texts(target) == ["0:0", "0:0", "0:1", "0:1", "0:2", "0:2"]


def test_a_job_group_within_foreach_batch_is_refused(
    spark: SparkSession, events: Events, target: Events, start: Start
) -> None:
    """A job group hides the run. A second run would then abort decided transactions."""
    events.fill(3)

    def save(frame: DataFrame, _: int) -> None:
        frame.sparkSession.sparkContext.setJobGroup("mine", "")
        writer(frame, exactly(target)).save()

    text = foreach(start, copying(spark, events), save)
    assert "The job group is 'mine'" in text
    assert "'setJobGroup'" in text
    assert texts(target) == []


# -- owners of a prefix --------------------------------------------------------------------------


def prefix_of(target: Events) -> dict[str, str]:
    return {"transactionalIdPrefix": target.name.replace(".", "-")[-40:]}


def test_a_prefix_of_another_query_is_refused(
    spark: SparkSession, events: Events, target: Events, write: Writes, start: Start
) -> None:
    events.fill(3)
    options = exactly(target, **prefix_of(target))
    first = write(copying(spark, events), options, "first")
    writing = copying(spark, events).writeStream.format("pykafka").options(**options)
    second = start(writing.trigger(availableNow=True), "second")
    text = failure(second)
    assert "Option 'transactionalIdPrefix': batch 0 of query" in text
    assert f"since the last batch decided there is batch 0 of query {first.id}" in text
    assert "another query, or the same with another checkpoint" in text
    assert texts(target) == ["0:0", "0:1", "0:2"]


def test_a_checkpoint_that_was_rolled_back_is_refused(
    events: Events, target: Events, write: Writes, start: Start, tmp_path: Path
) -> None:
    events.fill(6)
    frame = copying(SparkSession.active(), events, maxOffsetsPerTrigger=2)
    write(frame, exactly(target))
    for log in ("commits", "offsets"):
        for path in (tmp_path / "checkpoint" / log).iterdir():
            if path.name.strip(".").split(".")[0] in ("1", "2"):
                path.unlink()
    writing = frame.writeStream.format("pykafka").options(**exactly(target))
    text = failure(start(writing.trigger(availableNow=True)))
    assert "The checkpoint was rolled back, or the query runs twice" in text
    assert texts(target) == [f"0:{each}" for each in range(6)]


# -- plain batches -------------------------------------------------------------------------------


def test_a_batch_is_seen_whole(spark: SparkSession, target: Events) -> None:
    frame = spark.range(0, 10_000, 1, 5).selectExpr("CAST(id AS STRING) AS value")
    writer(frame, exactly(target)).save()
    assert sorted(map(int, texts(target))) == [*range(10_000)]


def test_of_a_batch_that_fails_nothing_is_seen(spark: SparkSession, target: Events) -> None:
    prefix = prefix_of(target)["transactionalIdPrefix"]
    frame = spark.range(0, 4, 1, 4).selectExpr("repeat('a', IF(id = 3, 2000000, 1)) AS value")
    with pytest.raises(PySparkException):
        writer(frame, exactly(target, **prefix_of(target))).save()
    wait_until(lambda: not left_open(target, prefix))
    assert texts(target) == []
    writer(rows(spark, "b"), exactly(target, **prefix_of(target))).save()
    assert texts(target) == ["b"]


def test_batches_may_share_a_prefix(spark: SparkSession, target: Events) -> None:
    for _ in range(2):
        writer(rows(spark, "a", "b"), exactly(target, **prefix_of(target))).save()
    assert texts(target) == ["a", "a", "b", "b"]


def test_a_timeout_above_the_brokers_is_refused(spark: SparkSession, target: Events) -> None:
    given = exactly(target, **{"kafka.transaction.timeout.ms": 900_001})
    with pytest.raises(PySparkException) as failed:
        writer(rows(spark, "a"), given).save()
    assert "Option 'kafka.transaction.timeout.ms': is 900001" in str(failed.value)
    assert "'transaction.max.timeout.ms' is less" in str(failed.value)
    assert json.dumps(texts(target)) == "[]"
