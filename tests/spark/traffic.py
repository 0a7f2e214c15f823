"""Records written by confluent-kafka, and rows read by the data source, as tests compare them."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

TIMEOUT_SECONDS = 60

Headers = Sequence[tuple[str, bytes | None]]


class Writer:
    """A producer of librdkafka's: waits for what it wrote, and raises what went wrong."""

    def __init__(self, bootstrap_servers: str, **settings: object) -> None:
        self._failures: list[KafkaError] = []
        self.producer = Producer(
            {"bootstrap.servers": bootstrap_servers, "acks": "all", "log_level": 0, "linger.ms": 0}
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
        """Hands one record over, to be written soon."""
        self.producer.produce(
            topic,
            value,
            key,
            partition,
            on_delivery=self._delivered,
            timestamp=timestamp_ms,
            headers=list(headers),
        )

    def write(self, topic: str, values: Iterable[object], *, partition: int = 0) -> None:
        """Writes each value's text to one partition, and waits."""
        for value in values:
            self.queue(topic, str(value).encode(), partition=partition)
        self.flush()

    def flush(self) -> None:
        """Waits until the brokers have all of it."""
        assert self.producer.flush(TIMEOUT_SECONDS) == 0
        for failure in self._failures:
            raise KafkaException(failure)

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        self._failures.extend([error] if error else [])


def options(kafka: Any, topic: str, **more: object) -> dict[str, Any]:
    """The options of a source that reads a topic of the broker from its start."""
    return {
        "kafka.bootstrap.servers": kafka.bootstrap_servers,
        "subscribe": topic,
        "startingOffsets": "earliest",
    } | more


def batch(spark: SparkSession, found: Mapping[str, Any]) -> DataFrame:
    """A batch read with these options, those that are None left out."""
    return spark.read.format("pykafka").options(**_given(found)).load()


def stream(spark: SparkSession, found: Mapping[str, Any]) -> DataFrame:
    """A stream with these options, those that are None left out."""
    return spark.readStream.format("pykafka").options(**_given(found)).load()


def _given(found: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if value is not None}


def values(frame: DataFrame) -> list[str]:
    """The values as text, by partition and offset."""
    rows = frame.select("partition", "offset", "value").collect()
    return [bytes(row.value).decode() for row in sorted(rows)]


def wait_until(condition: Callable[[], object], query: StreamingQuery | None = None) -> None:
    """Returns when the condition holds; fails where the query ends before, or after a minute."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        if query is not None and not query.isActive:
            error = query.exception()
            assert error is None, error
            assert condition(), "the query ended before what was waited for"
            return
        assert time.monotonic() < deadline, f"not within {TIMEOUT_SECONDS} s"
        time.sleep(0.02)


def sizes(query: StreamingQuery) -> list[int]:
    """How many rows each micro-batch of this run read."""
    by_batch = {each["batchId"]: each["numInputRows"] for each in query.recentProgress}
    return [by_batch[batch_id] for batch_id in sorted(by_batch)]


def failure(query: StreamingQuery) -> str:
    """The text of the error that ends the query."""
    with pytest.raises(StreamingQueryException) as failed:
        assert query.awaitTermination(TIMEOUT_SECONDS), f"it runs after {TIMEOUT_SECONDS} s"
    return str(failed.value)
