"""Batches of kilobytes that decompress to gigabytes, on a real broker. They are read or skipped."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import count, length, lit
from pyspark.sql.functions import sum as total

from spark_kafka_source.records import Codec, Record
from spark_kafka_source.spark.options import parse_source_options
from spark_kafka_source.spark.source.offset_arithmetic import LogEnds
from spark_kafka_source.spark.source.tasks import plan_tasks, read_ranges
from spark_kafka_source.testing import LocalKafka, Producer
from spark_kafka_source.topic_partition import TopicPartition
from tests.spark_session import Run, Start
from tools import bombs
from tools.bombs import MIB
from tools.traffic import TIMEOUT_SECONDS, Batches, Events, batch, failure, stream

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

MANY, ONE = 300, 1536 * MIB
BOUND_MIB = 64
"""Bound of any read, if no record is larger than a chunk."""


@pytest.fixture(scope="module")
def many(kafka: LocalKafka) -> Events:
    """300 records of 1 MiB in a batch of 14 KB; `tools.benchmarks.bombs` has 1500 of them."""
    events = Events(kafka, "bomb-of-many-records")
    events.create()
    data = bombs.batch(Codec.ZSTD, bombs.records(MANY, MIB), record_count=MANY)
    assert len(data) < 15_000
    _write(events, data)
    return events


@pytest.fixture(scope="module")
def one(kafka: LocalKafka) -> Events:
    """A record of 1.5 GiB in a batch of 49 KB, at offset 1, between two others."""
    events = Events(kafka, "bomb-of-one-record")
    events.create()
    data = bombs.batch(Codec.ZSTD, bombs.record(0, ONE), record_count=1)
    assert len(data) < 50_000
    with Producer(kafka.bootstrap_servers) as producer:
        producer.send(events.name, 0, [Record(value=b"before")])
        producer.send_batch(events.name, 0, data)
        producer.send(events.name, 0, [Record(value=b"after")])
    return events


def _write(events: Events, data: bytes) -> None:
    with Producer(events.kafka.bootstrap_servers) as producer:
        producer.send_batch(events.name, 0, data)


def _sizes(frame: DataFrame) -> tuple[int, int]:
    (row,) = frame.agg(count(lit(1)), total(length("value"))).collect()
    return row[0], row[1]


def _peak_mib(servers: str, topic: str, ends: int, columns: str) -> tuple[int, float]:
    """Run a task that skips too large records. Return its rows, and its MiB above the start."""
    status = Path("/proc/self/status")
    options = parse_source_options(
        {
            "kafka.bootstrap.servers": servers,
            "subscribe": topic,
            "failOnDataLoss": "false",
            "columns": columns,
        }
    )
    where = TopicPartition(topic, 0)
    (task,) = plan_tasks({where: 0}, LogEnds({where: ends}), options)

    def most_kib() -> int:
        lines = status.read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

    before = most_kib()
    rows = sum(each.num_rows for each in read_ranges(task, options))  # type: ignore[arg-type]  # one of ours
    return rows, (most_kib() - before) / 1024


@pytest.fixture
def fresh() -> Iterator[ProcessPoolExecutor]:
    """Process that has done no other work."""
    with ProcessPoolExecutor(1, get_context("spawn")) as fresh:
        yield fresh


def test_many_records_are_read(spark: SparkSession, many: Events) -> None:
    assert _sizes(batch(spark, many.options())) == (MANY, MANY * MIB)


def test_many_records_are_read_in_little_memory(many: Events, fresh: ProcessPoolExecutor) -> None:
    servers = many.kafka.bootstrap_servers
    rows, peak = fresh.submit(_peak_mib, servers, many.name, MANY, "value,offset").result()
    assert rows == MANY
    assert peak < BOUND_MIB


def test_many_records_are_streamed(spark: SparkSession, many: Events, start: Start) -> None:
    """The size of a micro-batch is found without decompression."""
    found: list[int] = []
    frame = stream(spark, many.options(maxBytesPerTrigger="5k", columns="offset"))
    query = start(
        frame.writeStream.foreachBatch(lambda part, _: found.append(part.count())).trigger(
            availableNow=True
        )
    )
    assert query.awaitTermination(TIMEOUT_SECONDS)
    assert sum(found) == MANY
    assert len(found) > 2


def test_a_record_too_large_fails_the_read_by_its_place(
    spark: SparkSession, one: Events, start: Start
) -> None:
    named = f"{one.name}-0 at offset 1: a record of {ONE + 15} bytes; maxRecordBytes is {64 * MIB}"
    with pytest.raises(PySparkException, match="RecordTooLargeError") as failed:
        batch(spark, one.options()).count()
    assert named in str(failed.value)
    query = start(
        stream(spark, one.options()).writeStream.format("noop").trigger(availableNow=True)
    )
    assert named in failure(query)


def test_it_alone_is_skipped_where_losses_are(spark: SparkSession, one: Events, run: Run) -> None:
    options = one.options(failOnDataLoss="false")
    frame = batch(spark, options).selectExpr("offset", "CAST(value AS STRING)")
    assert [*map(tuple, frame.collect())] == [(0, "before"), (2, "after")]
    sink = Batches()
    run(stream(spark, options), sink)
    assert sink.values == ["after", "before"]


def test_it_is_skipped_in_little_memory(one: Events, fresh: ProcessPoolExecutor) -> None:
    servers = one.kafka.bootstrap_servers
    rows, peak = fresh.submit(_peak_mib, servers, one.name, 3, "value,offset").result()
    assert rows == 2
    assert peak < BOUND_MIB


def test_records_larger_than_a_fetch_are_read(spark: SparkSession, events: Events) -> None:
    events.create(max_message_bytes=str(50 * MIB))
    _write(events, bombs.batch(Codec.NONE, bombs.records(3, 10_000_000), record_count=3))
    _write(events, bombs.batch(Codec.NONE, bombs.records(3, 10), record_count=3))
    small = {"kafka.max.partition.fetch.bytes": 1000, "kafka.fetch.max.bytes": 1000}
    assert _sizes(batch(spark, events.options(**small))) == (6, 30_000_030)
