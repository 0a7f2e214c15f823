"""Checkpoints that version 0.1.0 wrote go on with this version.

Version 0.1.0 wrote the files in `checkpoint_0_1_0` with Spark 4.2: queries of the topic `orders`,
which had two partitions. The last batch of each was planned, and is not finished.
"""

import re
import shutil
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from spark_kafka_source import KafkaAdmin, KafkaConsumer, TopicPartition
from spark_kafka_source.records import Record
from spark_kafka_source.testing import LocalKafka, Producer
from tools.traffic import TIMEOUT_SECONDS

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

KEPT = Path(__file__).parent / "checkpoint_0_1_0"
ORDERS_ID = "1af83ff3-c2ae-4529-b2a8-3d4d13caa41f"
RECORDS = 6  # Of each partition, when 0.1.0 planned the last batches.


@pytest.fixture
def orders(kafka: LocalKafka, topic: str) -> str:
    """Topic with the records that 0.1.0 planned."""
    kafka.create_topic(topic, partitions=2)
    send(kafka, topic, RECORDS)
    return topic


def send(kafka: LocalKafka, topic: str, number: int) -> None:
    with Producer(kafka.bootstrap_servers) as producer:
        for partition in range(2):
            producer.send(topic, partition, [Record(value=b"value")] * number)


def checkpoint(name: str, directory: Path, topic: str, topic_id: str) -> Path:
    """Copy a checkpoint for a topic of this broker."""
    copied = directory / name
    shutil.copytree(KEPT / name, copied)
    for log in (copied / "offsets").iterdir():
        text = log.read_text().replace('"orders"', f'"{topic}"').replace(ORDERS_ID, topic_id)
        log.write_text(text)
    return copied


def topic_id(kafka: LocalKafka, topic: str) -> str:
    with KafkaAdmin(bootstrap_servers=kafka.bootstrap_servers) as admin:
        (described,) = admin.describe_topics([topic])
    return str(described.topic_id)


def run(
    spark: SparkSession, kafka: LocalKafka, topic: str, location: Path, **options: str
) -> list[tuple[int, list[tuple[int, int]]]]:
    """Read all that is there. Return each batch's number, partitions and offsets."""
    batches: list[tuple[int, list[tuple[int, int]]]] = []

    def keep(batch: DataFrame, number: int) -> None:
        rows = batch.select("partition", "offset").collect()
        batches.append((number, sorted((row.partition, row.offset) for row in rows)))

    query = (
        spark.readStream.format("pykafka")
        .option("kafka.bootstrap.servers", kafka.bootstrap_servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .options(**options)
        .load()
        .writeStream.foreachBatch(keep)
        .option("checkpointLocation", str(location))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(TIMEOUT_SECONDS)
    return batches


def test_a_query_repeats_the_unfinished_batch_and_goes_on(
    spark: SparkSession, kafka: LocalKafka, orders: str, tmp_path: Path
) -> None:
    location = checkpoint("stream", tmp_path, orders, topic_id(kafka, orders))
    send(kafka, orders, 2)
    assert run(spark, kafka, orders, location) == [
        (2, [(0, 5), (1, 2), (1, 3), (1, 4), (1, 5)]),
        (3, [(0, 6), (0, 7), (1, 6), (1, 7)]),
    ]


def test_a_query_still_sees_that_the_topic_was_made_anew(
    spark: SparkSession, kafka: LocalKafka, orders: str, tmp_path: Path
) -> None:
    location = checkpoint("stream", tmp_path, orders, ORDERS_ID)
    with pytest.raises(StreamingQueryException, match=rf"{re.escape(orders)}.*topic was deleted"):
        run(spark, kafka, orders, location)


def test_a_query_of_a_managed_group_goes_on(
    spark: SparkSession, kafka: LocalKafka, orders: str, tmp_path: Path
) -> None:
    group = f"group-of-{orders}"
    where = [TopicPartition(orders, each) for each in range(2)]
    with KafkaConsumer(bootstrap_servers=kafka.bootstrap_servers, group_id=group) as committer:
        committer.commit(dict.fromkeys(where, RECORDS))
    location = checkpoint("managed", tmp_path, orders, topic_id(kafka, orders))
    send(kafka, orders, 1)
    options = {"managedGroup": "true", "kafka.group.id": group}
    batches = run(spark, kafka, orders, location, **options)
    assert [rows for _, rows in batches if rows] == [[(0, 6), (1, 6)]]
