"""The records of a topic, as confluent-kafka reads them, and rows to write."""

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer
from confluent_kafka import TopicPartition as Partition
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.readwriter import DataFrameWriter

from tests.exactly_once.judge import wait_for_markers
from tests.spark_session import Start
from tools.traffic import TIMEOUT_SECONDS, Events

Headers = list[tuple[str, bytes | None]]


class Written(NamedTuple):
    """A record of a topic."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: Headers | None
    timestamp_ms: int


def written(events: Events) -> list[Written]:
    """Return the committed records of a topic, by partition and offset.

    Fails if a transaction stays open. The watermark of a reader of committed records is the last
    stable offset, so such a reader would miss the records of a transaction without its marker.
    """
    servers = events.kafka.bootstrap_servers
    assert not wait_for_markers(servers, events.name, events.partitions), "a transaction is open"
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "of-nobody",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    try:
        return [
            record
            for number in range(events.partitions)
            for record in _of_partition(consumer, Partition(events.name, number, OFFSET_BEGINNING))
        ]
    finally:
        consumer.close()


def _of_partition(consumer: Consumer, partition: Partition) -> list[Written]:
    _, end = consumer.get_watermark_offsets(partition, timeout=TIMEOUT_SECONDS)
    consumer.assign([partition])
    found: list[Written] = []
    deadline = time.monotonic() + TIMEOUT_SECONDS
    # Markers take offsets, too. Before the first record the position is negative.
    while end and (position := consumer.position([partition])[0].offset) < end:
        assert time.monotonic() < deadline, f"{partition} is at {position}, not at {end}"
        for message in consumer.consume(1_000, timeout=0.5):
            assert message.error() is None, message.error()
            headers: Any = message.headers()
            _, timestamp_ms = message.timestamp()
            record = partition.partition, message.key(), message.value(), headers, timestamp_ms
            found.append(Written(*record))
    return found


def texts(events: Events) -> list[str]:
    """Return the values as sorted texts."""
    return sorted((each.value or b"").decode() for each in written(events))


def rows(spark: SparkSession, *values: object) -> DataFrame:
    """Return a row for each value's text, in two partitions."""
    return spark.createDataFrame([(str(value),) for value in values], "value string").repartition(2)


def to(events: Events, **more: object) -> dict[str, Any]:
    """Return options of a writer to the topic. Options with the value None are left out."""
    given = {
        "kafka.bootstrap.servers": events.kafka.bootstrap_servers,
        "topic": events.name,
        "kafka.max.block.ms": 30_000,
        **more,
    }
    return {name: value for name, value in given.items() if value is not None}


def writer(frame: DataFrame, options: Mapping[str, Any], name: str = "pykafka") -> DataFrameWriter:
    """Return a writer that appends the frame when `save` is called."""
    return frame.write.format(name).options(**options).mode("append")


def saved(rows: DataFrame, save: Callable[[DataFrame, int], None], start: Start) -> str:
    """Give all micro-batches of a stream to `save`, their values as texts.

    Return the text of the query's error, or none.
    """
    values = rows.selectExpr("CAST(value AS STRING) AS value")
    query = start(values.writeStream.foreachBatch(save).trigger(availableNow=True))
    try:
        assert query.awaitTermination(TIMEOUT_SECONDS)
    except StreamingQueryException as error:
        return str(error)
    return ""
