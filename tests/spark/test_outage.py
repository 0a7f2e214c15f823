"""All brokers are away for a while. A query that has met them lasts as long as Spark's own.

The times are scaled: the first contact and a single call end long before the outage, and the
patience of the query ends long after it.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Timer

import pytest
from pyspark.sql.types import StructType

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import BootstrapError, error_named
from spark_kafka_source.fetch import OffsetRange
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.spark import KafkaDataSource
from spark_kafka_source.spark.options import parse_source_options
from spark_kafka_source.spark.pool import Pool
from spark_kafka_source.spark.sink import guarantee
from spark_kafka_source.spark.sink.guarantee import Attempt
from spark_kafka_source.spark.source import tasks
from spark_kafka_source.spark.source.batch import KafkaBatchReader
from spark_kafka_source.spark.source.options import SourceOptions
from spark_kafka_source.spark.source.stream import KafkaStreamReader
from spark_kafka_source.spark.source.tasks import KafkaInputPartition, read_ranges
from spark_kafka_source.testing.memory import MemoryBroker
from tests.spark.settings import A0
from tests.spark.sink.settings import values
from tests.spark.source.engine import Json

pytestmark = pytest.mark.memory(topics={"a": 1})

OUTAGE_SECONDS = 3
UNKNOWN = error_named("UNKNOWN_TOPIC_OR_PARTITION")
OF_CLIENTS = {
    "kafka.request.timeout.ms": "1000",
    "kafka.default.api.timeout.ms": "1000",
    "kafka.retry.backoff.ms": "10",
}
OF_SOURCES = {
    "subscribe": "a",
    "startingOffsets": "earliest",
    "fetchOffset.numRetries": "30",
    "fetchOffset.retryIntervalMs": "1",
}
OF_SINKS = {"topic": "a", "kafka.linger.ms": "0", "kafka.delivery.timeout.ms": "30000"}


@contextmanager
def outage(broker: MemoryBroker, *, ends: bool = True) -> Iterator[None]:
    """Stop the broker, and start it again after a while if the outage `ends`."""
    broker.stop(0)
    timer = Timer(OUTAGE_SECONDS, broker.start, [0])
    if ends:
        timer.start()
    try:
        yield
    finally:
        if ends:
            timer.join()


def source(broker: MemoryBroker) -> SourceOptions:
    given = {"kafka.bootstrap.servers": str(broker.address())} | OF_CLIENTS | OF_SOURCES
    return parse_source_options(given)


def end_of(reader: KafkaStreamReader, start: Json) -> Json:
    try:
        return reader.latestOffset(start)
    finally:
        reader.stop()


def test_the_driver_of_a_running_query_and_of_one_that_starts_again(broker: MemoryBroker) -> None:
    """A broker that has just started may not know the topic yet."""
    broker.cluster.topics["a"].logs[0].append(b"x")
    running = KafkaStreamReader(source(broker))
    end = None
    while end is None:
        with suppress(BootstrapError):  # The first contact may take a loaded machine longer.
            end = running.latestOffset(running.initialOffset())
    for reader in (running, KafkaStreamReader(source(broker))):
        broker.control(MetadataRequest, UNKNOWN)
        with outage(broker):
            assert end_of(reader, end) == end


@pytest.mark.parametrize("reader", [KafkaStreamReader, KafkaBatchReader])
def test_a_new_query_soon_says_that_there_is_no_broker(
    broker: MemoryBroker, reader: type[KafkaStreamReader | KafkaBatchReader]
) -> None:
    new, began = reader(source(broker)), time.monotonic()
    with outage(broker, ends=False), pytest.raises(BootstrapError):
        new.partitions() if isinstance(new, KafkaBatchReader) else end_of(new, new.initialOffset())
    assert time.monotonic() - began < 20  # Its patience would be 30 s.


def test_a_task_of_a_new_worker_that_reads(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.cluster.topics["a"].logs[0].append(b"x")
    monkeypatch.setattr(tasks, "_kept_clients", Pool(tasks._of_planned, KafkaClient.close))
    with outage(broker):
        rows = read_ranges(KafkaInputPartition((OffsetRange(A0, 0, 1),), 1, 1), source(broker))
        assert [batch["value"].to_pylist() for batch in rows] == [[b"x"]]


@pytest.mark.parametrize("batch_id", [None, 0, 1])
def test_a_task_of_a_new_worker_that_writes(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch, batch_id: int | None
) -> None:
    """Only a later micro-batch knows that the address is right."""
    monkeypatch.setattr(Attempt, "current", lambda: Attempt(0, 0, "q", "r", batch_id))
    monkeypatch.setattr(guarantee, "kept_producers", Pool(guarantee._open, guarantee._close))
    given = {"kafka.bootstrap.servers": str(broker.address())} | OF_CLIENTS | OF_SINKS
    writer = KafkaDataSource(given).writer(StructType().add("value", "string"), overwrite=False)
    with outage(broker, ends=bool(batch_id)):
        if not batch_id:
            with pytest.raises(BootstrapError):
                writer.write(iter([values("a")]))
            return
        writer.write(iter([values("a")]))
    assert len(broker.cluster.topics["a"].logs[0].batches) == 1
