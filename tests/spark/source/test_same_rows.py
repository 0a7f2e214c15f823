"""Four readers of a topic see the same rows. Two of them are this source's batch and stream."""

from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import DataFrame, SparkSession

from spark_kafka_source.records import COLUMNS_WITH_HEADERS
from spark_kafka_source.records.columns import schema
from spark_kafka_source.testing import LocalKafka
from tests.spark.digest import digest

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.peer]

TRIALS = [
    ("lz4", 150_000),
    *(
        pytest.param(codec, 150_000, marks=pytest.mark.long)
        for codec in ("none", "gzip", "snappy", "zstd")
    ),
    pytest.param("lz4", 1_000_000, marks=pytest.mark.reliability_full),
]
PARTITIONS = 3
CREATE_TIME = 1


@pytest.mark.parametrize(("codec", "rows"), TRIALS)
def test_all_readers_agree(
    spark: SparkSession, kafka: LocalKafka, topic: str, tmp_path: Path, *, codec: str, rows: int
) -> None:
    kafka.create_topic(topic, partitions=PARTITIONS)
    _produce(kafka.bootstrap_servers, topic, codec, rows)
    servers = kafka.bootstrap_servers

    theirs = digest(_consume(servers, topic, rows))

    assert digest(_batch(spark, "pykafka", servers, topic)) == theirs
    assert digest(_stream(spark, servers, topic, tmp_path, rows // 3 + 1)) == theirs
    assert digest(_batch(spark, "kafka", servers, topic)) == theirs
    kafka.delete_topic(topic)


def _produce(servers: str, topic: str, codec: str, rows: int) -> None:
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "compression.type": codec,
            "linger.ms": 20,
            "queue.buffering.max.messages": 200_000,
        }
    )
    for number in range(rows):
        while True:
            try:
                producer.produce(
                    topic,
                    value=_value(number),
                    key=None if number % 5 == 0 else b"%d" % (number % 977),
                    partition=number % PARTITIONS,
                    timestamp=1_700_000_000_000 + number * 7 % 100_000,
                    headers=_headers(number),
                )
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    assert producer.flush(120) == 0


def _value(number: int) -> bytes | None:
    if number % 11 == 0:
        return None
    return b"" if number % 13 == 0 else b'{"id": %d, "text": "%s"}' % (number, b"x" * (number % 97))


def _headers(number: int) -> list[tuple[str, str | bytes | None]]:
    found: list[tuple[str, str | bytes | None]] = [
        ("trace", b"%d" % number),
        ("trace", None),
        ("é", b""),
    ]
    return found[: number % 4]


def _consume(servers: str, topic: str, count: int) -> pa.Table:
    """Return the rows of confluent-kafka's consumer, in the columns of Spark's Kafka source."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": topic})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    rows: list[tuple[object, ...]] = []
    while len(rows) < count:
        messages = consumer.consume(10_000, timeout=30)
        assert messages, f"only {len(rows)} rows came"
        for message in messages:
            assert message.error() is None
            kind, timestamp_ms = message.timestamp()
            assert kind == CREATE_TIME
            rows.append(
                (
                    message.key(),
                    message.value(),
                    message.topic(),
                    message.partition(),
                    message.offset(),
                    timestamp_ms * 1000,
                    kind - CREATE_TIME,
                    message.headers(),
                )
            )
    consumer.close()
    fields = schema(COLUMNS_WITH_HEADERS)
    columns = [
        pa.array(column, field.type)
        for column, field in zip(zip(*rows, strict=True), fields, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=fields)


def _batch(spark: SparkSession, name: str, servers: str, topic: str) -> pa.Table:
    return (
        spark.read.format(name)
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("includeHeaders", "true")
        .load()
        .toArrow()
    )


def _stream(
    spark: SparkSession, servers: str, topic: str, directory: Path, most_offsets: int
) -> pa.Table:
    tables = []

    def keep(batch: DataFrame, _: int) -> None:
        tables.append(batch.toArrow())

    query = (
        spark.readStream.format("pykafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("includeHeaders", "true")
        .option("maxOffsetsPerTrigger", most_offsets)
        .load()
        .writeStream.foreachBatch(keep)
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    assert len(tables) == 3
    return pa.concat_tables(tables)
