"""The same rows by three readers without common code: ours, Spark's own, and confluent-kafka."""

from collections.abc import Mapping
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition
from pyspark.sql import DataFrame, SparkSession

from tests.parity.scenario import OURS, PEER
from tests.spark_session import Start
from tools.traffic import TIMEOUT_SECONDS, Events, batch, stream

Row = tuple[int, int, bytes | None, bytes | None]
"""Partition, offset, key, value."""


def by_spark(spark: SparkSession, options: Mapping[str, Any], name: str) -> list[Row]:
    """Return the rows of a batch of either format, in order."""
    return rows_of(batch(spark, options, name))


def rows_of(frame: DataFrame) -> list[Row]:
    table = frame.select("partition", "offset", "key", "value").toArrow()
    columns = (column.to_pylist() for column in table.columns)
    return sorted(zip(*columns, strict=True), key=lambda row: row[:2])


def by_confluent(events: Events, isolation_level: str = "read_uncommitted") -> list[Row]:
    """Return the rows from each partition's start to its end."""
    consumer = Consumer(
        {
            "bootstrap.servers": events.kafka.bootstrap_servers,
            "group.id": "-",
            "isolation.level": isolation_level,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    partitions = range(events.partitions)
    consumer.assign([TopicPartition(events.name, each, OFFSET_BEGINNING) for each in partitions])
    rows: list[Row] = []
    at_end = 0
    while at_end < events.partitions:
        message = consumer.poll(TIMEOUT_SECONDS)
        assert message is not None, f"nothing within {TIMEOUT_SECONDS} s"
        error = message.error()
        if error is None:
            place = (message.partition() or 0, message.offset() or 0)
            rows.append((*place, message.key(), message.value()))
        elif error.code() == KafkaError._PARTITION_EOF:
            at_end += 1
        else:
            raise KafkaException(error)
    consumer.close()
    return sorted(rows, key=lambda row: row[:2])


class Sink:
    """A sink that keeps the rows of each micro-batch."""

    def __init__(self) -> None:
        self.seen: list[list[Row]] = []

    def __call__(self, frame: DataFrame, _: int) -> None:
        self.seen.append(rows_of(frame))


class Streams:
    """A stream of each format with the same options. Both are stopped between two reads."""

    def __init__(self, spark: SparkSession, options: Mapping[str, Any], start: Start) -> None:
        self._start = start
        self._frames = {name: stream(spark, options, name) for name in (OURS, PEER)}
        self._sinks = {name: Sink() for name in self._frames}
        self._checkpoint = "-".join(map(str, options.values()))[-60:].replace("/", "-")

    def differ(self) -> bool:
        """Read all new rows with both. Return whether any micro-batch differs."""
        for name, frame in self._frames.items():
            writer = frame.writeStream.foreachBatch(self._sinks[name]).trigger(availableNow=True)
            query = self._start(writer, f"{self._checkpoint}-{name}")
            assert query.awaitTermination(TIMEOUT_SECONDS)
        ours, theirs = (self._sinks[name].seen for name in (OURS, PEER))
        return ours != theirs
