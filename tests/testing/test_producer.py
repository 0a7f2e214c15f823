"""Records of `testing.Producer`, read by an independent client."""

import time

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, Consumer

from spark_kafka_source import KafkaConsumer
from spark_kafka_source.command_line.main import main
from spark_kafka_source.records import Codec, Record
from spark_kafka_source.testing import LocalKafka, Producer
from spark_kafka_source.topic_partition import TopicPartition
from tests.producer.reading import dumped

pytestmark = pytest.mark.kafka

WAIT_SECONDS = 60
GIVEN_MS = 1_760_000_000_000


def timestamps(bootstrap_servers: str, topic: str, count: int) -> list[tuple[int, int]]:
    """Return the timestamp type and the timestamp of the topic's records."""
    settings = {
        "bootstrap.servers": bootstrap_servers, "group.id": "any", "auto.offset.reset": "earliest",
    }  # fmt: skip
    consumer = Consumer(settings)
    try:
        consumer.subscribe([topic])
        return [each.timestamp() for each in consumer.consume(count, WAIT_SECONDS)]
    finally:
        consumer.close()


def test_a_record_is_of_now_unless_it_says_when(
    kafka: LocalKafka, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kafka.create_topic(topic)
    before_ms = time.time_ns() // 1_000_000
    with Producer(kafka.bootstrap_servers) as producer:
        records = [Record(value=b"old", timestamp_ms=GIVEN_MS), Record(key=b"k", value=b"new")]
        producer.send(topic, 0, records)
    after_ms = time.time_ns() // 1_000_000

    (_, given), (kind, made) = timestamps(kafka.bootstrap_servers, topic, 2)
    assert given == GIVEN_MS
    assert kind == TIMESTAMP_CREATE_TIME
    assert before_ms <= made <= after_ms

    where = TopicPartition(topic, 0)
    with KafkaConsumer(bootstrap_servers=kafka.bootstrap_servers) as consumer:
        found = consumer.offsets_for_times({where: before_ms})[where]
        assert found is not None
        assert found.offset == 1
    assert main(["tail", topic, "--from", "PT1H", "-b", kafka.bootstrap_servers]) == 0
    shown = capsys.readouterr().out
    assert "new" in shown
    assert "old" not in shown


def test_what_is_sent_at_once_is_one_batch_in_its_codec(kafka: LocalKafka, topic: str) -> None:
    kafka.create_topic(topic)
    records = [Record(value=b"%d" % number, headers=[("h", None)]) for number in range(1_000)]
    with Producer(kafka.bootstrap_servers) as producer:
        for number, codec in enumerate(Codec):
            assert producer.send(topic, 0, records, codec) == number * len(records)
    batches = dumped(kafka, topic)
    assert batches == [(len(records), str(codec), "true") for codec in Codec]
