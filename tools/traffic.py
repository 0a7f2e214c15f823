"""Records that confluent-kafka writes, and rows that the data source reads, for comparison."""

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_kafka_source import KafkaAdmin
from spark_kafka_source.testing import LocalKafka
from spark_kafka_source.topic_partition import TopicPartition

TIMEOUT_SECONDS = 180

Headers = Sequence[tuple[str, bytes | None]]


class Writer:
    """A producer of librdkafka. It waits for its records, and raises their errors."""

    def __init__(self, bootstrap_servers: str, **settings: object) -> None:
        self._servers, self._failures = bootstrap_servers, list[KafkaError]()
        self.producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                # A record that is sent again keeps its place.
                "enable.idempotence": True,
                "log_level": 0,
                "linger.ms": 0,
            }
            | {name.replace("_", "."): value for name, value in settings.items()}
        )

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()

    def queue(
        self,
        topic: str,
        value: bytes | None,
        *,
        partition: int = 0,
        key: bytes | None = None,
        headers: Headers = (),
        timestamp_ms: int = 0,
    ) -> None:
        """Hand over one record, to be written soon."""
        self.producer.produce(
            topic,
            value,
            key,
            partition,
            on_delivery=self._delivered,
            timestamp=timestamp_ms,
            headers=list(headers),
        )

    def write(
        self, topic: str, values: Iterable[object], *, partition: int = 0, timestamp_ms: int = 0
    ) -> None:
        """Write each value's text to one partition, and wait. A timestamp of 0 stands for now."""
        for value in values:
            self.queue(topic, str(value).encode(), partition=partition, timestamp_ms=timestamp_ms)
        self.flush()

    def flush(self) -> None:
        """Wait until the brokers have all records."""
        assert self.producer.flush(TIMEOUT_SECONDS) == 0
        for failure in self._failures:
            raise KafkaException(failure)

    def end_transaction(self, topic: str, end: Callable[[float], None]) -> None:
        """Commit or abort. Wait until its marker is in the topic's only partition.

        A coordinator answers as soon as the end of a transaction is certain. It writes the markers
        after that.
        """
        where = TopicPartition(topic, 0)
        with KafkaAdmin(bootstrap_servers=self._servers) as admin:
            before = admin.held_up([where])[0].end_offset
            end(TIMEOUT_SECONDS)
            wait_until(lambda: admin.held_up([where])[0].end_offset > before)

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        self._failures.extend([error] if error else [])


class Events:
    """A topic of one test, with methods to make, write and read it."""

    def __init__(self, kafka: LocalKafka, name: str) -> None:
        self.kafka, self.name = kafka, name
        self.partitions = 0
        self._writer: Writer | None = None

    def another(self, suffix: str) -> "Events":
        """Return a topic with this one's name and a suffix."""
        return Events(self.kafka, f"{self.name}-{suffix}")

    def create(self, partitions: int = 1, **configs: str) -> None:
        """Make the topic. `message_timestamp_type` stands for `message.timestamp.type`."""
        dotted = {name.replace("_", "."): value for name, value in configs.items()}
        self.kafka.create_topic(self.name, partitions, configs=dotted)
        self._made(partitions)

    def grow(self, total: int) -> None:
        """Give the topic more partitions."""
        self.kafka.create_partitions(self.name, total)
        self._made(total)

    def delete(self) -> None:
        """Delete the topic. It can be created again."""
        self.kafka.delete_topic(self.name)

    def write(self, values: Iterable[object], partition: int = 0, *, timestamp_ms: int = 0) -> None:
        """Write each value's text to a partition, and wait. A timestamp of 0 stands for now."""
        self._writer = self._writer or Writer(self.kafka.bootstrap_servers)
        self._writer.write(self.name, values, partition=partition, timestamp_ms=timestamp_ms)

    def fill(self, *counts: int) -> None:
        """Make the topic with a partition for each count, and so many rows: `0:0`, `0:1`."""
        self.create(len(counts))
        for partition, count in enumerate(counts):
            self.write([f"{partition}:{offset}" for offset in range(count)], partition)

    def trim(self, before: Mapping[int, int]) -> None:
        """Delete the records before an offset of each partition. -1 stands for all."""
        self.kafka.delete_records(
            {TopicPartition(self.name, partition): offset for partition, offset in before.items()}
        )

    def offsets(self, *offsets: int) -> str:
        """Return the JSON of an option that gives an offset for each partition from 0 on."""
        return json.dumps({self.name: dict(enumerate(offsets))})

    def options(self, **more: object) -> dict[str, Any]:
        """Return options of a source that reads the topic from its start, and `more`."""
        return {
            "kafka.bootstrap.servers": self.kafka.bootstrap_servers,
            "subscribe": self.name,
            "startingOffsets": "earliest",
        } | more

    def named_by(self, strategy: str) -> dict[str, str | None]:
        """Return all partitions as the option `assign`, `subscribe` or `subscribePattern`."""
        named = {
            "assign": json.dumps({self.name: list(range(self.partitions))}),
            "subscribe": self.name,
            "subscribePattern": self.name[:-4] + ".{4}",
        }
        return {"subscribe": None, strategy: named[strategy]}

    def _made(self, partitions: int) -> None:
        self.partitions = partitions
        self._writer = None  # It knows only the partitions that existed before.


def batch(spark: SparkSession, found: Mapping[str, Any], name: str = "pykafka") -> DataFrame:
    """Return a batch with these options. Options with the value None are left out."""
    return spark.read.format(name).options(**_given(found)).load()


def stream(spark: SparkSession, found: Mapping[str, Any], name: str = "pykafka") -> DataFrame:
    """Return a stream with these options. Options with the value None are left out."""
    return spark.readStream.format(name).options(**_given(found)).load()


def _given(found: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if value is not None}


def values(frame: DataFrame) -> list[str]:
    """Return the values as text, by partition and offset."""
    rows = frame.select("partition", "offset", "value").collect()
    return [bytes(row.value).decode() for row in sorted(rows)]


class Batches:
    """A sink for `foreachBatch` that keeps the values of each micro-batch.

    Spark runs a micro-batch again if its query was stopped before its end. It must be the same.
    """

    def __init__(self) -> None:
        self.seen: list[tuple[int, list[str]]] = []

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        rows = values(frame)
        assert dict(self.seen).get(batch_id, rows) == rows
        self.seen.append((batch_id, rows))

    @property
    def values(self) -> list[str]:
        """All values so far, sorted. A value of two micro-batches is in it twice."""
        return sorted(value for batch in dict(self.seen).values() for value in batch)


def wait_until(
    condition: Callable[[], object],
    query: StreamingQuery | None = None,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> None:
    """Wait until the condition holds. Fail if the query ends before, or when time is up."""
    deadline = time.monotonic() + timeout_seconds
    while not condition():
        if query is not None and not query.isActive:
            error = query.exception()
            assert error is None, error
            assert condition(), "the query ended before what was waited for"
            return
        assert time.monotonic() < deadline, f"not within {timeout_seconds} s"
        time.sleep(0.02)


def sizes(query: StreamingQuery) -> list[int]:
    """Return the number of rows of each micro-batch of this run."""
    by_batch = {each["batchId"]: each["numInputRows"] for each in query.recentProgress}
    return [by_batch[batch_id] for batch_id in sorted(by_batch)]


def failure(query: StreamingQuery) -> str:
    """Return the text of the error that ends the query."""
    with pytest.raises(StreamingQueryException) as failed:
        assert query.awaitTermination(TIMEOUT_SECONDS), f"it runs after {TIMEOUT_SECONDS} s"
    return str(failed.value)
