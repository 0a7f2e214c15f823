"""A topic of a real broker as a table, beside both Spark sources and confluent-kafka."""

from datetime import UTC, datetime
from typing import Any

import confluent_kafka as ck
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_kafka_source import KafkaProducer, RecordsLostError, TopicPartition, read_topic
from spark_kafka_source.records import Codec, Record
from spark_kafka_source.testing import LocalKafka, Producer

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

NOW_MS = 1_790_000_000_000
Row = tuple[Any, ...]


def fill(kafka: LocalKafka, topic: str) -> None:
    """Write all kinds of records, commit and abort transactions, and delete the first records."""
    kafka.create_topic(topic, partitions=3)
    with Producer(kafka.bootstrap_servers) as producer:
        for number, codec in enumerate(Codec):
            producer.send(topic, number % 3, records(number), codec)
    for commit in (True, False, True):
        with KafkaProducer(
            bootstrap_servers=kafka.bootstrap_servers, transactional_id=topic
        ) as transactional:
            transactional.init_transactions()
            transactional.begin_transaction()
            for partition in range(3):
                value = f"committed {commit}".encode()
                transactional.send(topic, value, partition=partition, timestamp_ms=NOW_MS)
            transactional.flush()
            if commit:
                transactional.commit_transaction()
            else:
                transactional.abort_transaction()
    kafka.delete_records({TopicPartition(topic, 0): 2})


def records(number: int) -> list[Record]:
    return [
        Record(
            key=None if each % 3 == 0 else f"k{each}".encode(),
            value=None if each % 5 == 4 else f"{number}-{each}".encode() * (each + 1),
            headers=[("h", b"1"), ("h", None)] if each % 2 else [],
            timestamp_ms=NOW_MS + number * 1_000 - each,
        )
        for each in range(20)
    ]


def of_table(table: pa.Table) -> list[Row]:
    return [
        (
            each["topic"],
            each["partition"],
            each["offset"],
            each["key"],
            each["value"],
            int(each["timestamp"].timestamp() * 1000),
            [(one["key"], one["value"]) for one in each["headers"] or ()],
        )
        for each in table.to_pylist()
    ]


def of_spark(spark: SparkSession, name: str, options: dict[str, Any]) -> list[Row]:
    frame = spark.read.format(name).options(includeHeaders=True, **options).load()
    frame = frame.selectExpr("*", "unix_millis(timestamp) AS at")
    rows = [
        (
            each.topic,
            each.partition,
            each.offset,
            None if each.key is None else bytes(each.key),
            None if each.value is None else bytes(each.value),
            each["at"],
            [(one.key, one.value and bytes(one.value)) for one in each.headers or ()],
        )
        for each in frame.collect()
    ]
    return sorted(rows, key=lambda row: row[:3])


def of_confluent(kafka: LocalKafka, topic: str, level: str, count: int) -> list[Row]:
    consumer = ck.Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": "unused",
            "enable.auto.commit": False,
            "isolation.level": level,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([ck.TopicPartition(topic, each, ck.OFFSET_BEGINNING) for each in range(3)])
    found, ended = [], 0
    while ended < 3:
        message = consumer.poll(60)
        assert message is not None
        error = message.error()
        if error is None:
            found.append(message)
        else:
            assert error.code() == ck.KafkaError._PARTITION_EOF
            ended += 1
    consumer.close()
    assert len(found) == count
    rows = [
        (
            each.topic(),
            each.partition(),
            each.offset(),
            each.key(),
            each.value(),
            each.timestamp()[1],
            each.headers() or [],
        )
        for each in found
    ]
    return sorted(rows, key=lambda row: row[:3])


@pytest.mark.peer
def test_the_same_rows_as_spark_and_confluent(
    kafka: LocalKafka, spark: SparkSession, topic: str
) -> None:
    fill(kafka, topic)
    for level in ("read_committed", "read_uncommitted"):
        ours = of_table(
            read_topic(topic, bootstrap_servers=kafka.bootstrap_servers, isolation_level=level)
        )
        assert len(ours) == len(list(Codec)) * 20 - 2 + 3 * (2 if level == "read_committed" else 3)
        options = {
            "kafka.bootstrap.servers": kafka.bootstrap_servers,
            "subscribe": topic,
            "kafka.isolation.level": level,
        }
        assert ours == of_spark(spark, "pykafka", options)
        assert ours == of_spark(spark, "kafka", options)
        assert ours == of_confluent(kafka, topic, level, len(ours))


@pytest.mark.peer
def test_times_mean_the_same_as_in_spark(
    kafka: LocalKafka, spark: SparkSession, topic: str
) -> None:
    fill(kafka, topic)
    start, end = NOW_MS + 1_000, NOW_MS + 3_000
    ours = read_topic(
        topic,
        start=moment(start),
        to=moment(end),
        bootstrap_servers=kafka.bootstrap_servers,
    )
    options = {
        "kafka.bootstrap.servers": kafka.bootstrap_servers,
        "subscribe": topic,
        "startingTimestamp": start,
        "endingTimestamp": end,
        "startingOffsetsByTimestampStrategy": "latest",
    }
    assert 0 < ours.num_rows < read_topic(topic, bootstrap_servers=kafka.bootstrap_servers).num_rows
    assert of_table(ours) == of_spark(spark, "pykafka", options)
    assert of_table(ours) == of_spark(spark, "kafka", options)


def moment(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)


def test_expired_offsets_are_an_error_and_no_group_is_left(kafka: LocalKafka, topic: str) -> None:
    fill(kafka, topic)
    first = TopicPartition(topic, 0)
    assert read_topic(first, bootstrap_servers=kafka.bootstrap_servers)["offset"][0].as_py() == 2
    with pytest.raises(RecordsLostError, match="offset 1 is not in the log, which has offsets 2"):
        read_topic(first, start={0: 1}, bootstrap_servers=kafka.bootstrap_servers)
    assert kafka.tool("consumer-groups", "--list").find(topic) == -1
