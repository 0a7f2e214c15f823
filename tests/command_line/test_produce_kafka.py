"""`produce` to a real broker: copies of topics by two commands, and early ends."""

import random
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Position

from spark_kafka_source import KafkaConsumer
from spark_kafka_source.testing import LocalKafka
from spark_kafka_source.topic_partition import TopicPartition
from tests.command_line.test_process import COMMAND, TIMEOUT_SECONDS, started
from tests.testing.processes import ENVIRONMENT

pytestmark = pytest.mark.kafka

LONG_AGO_MS = 1_700_000_000_000
PARTITIONS = 3


def some_bytes(chance: random.Random) -> bytes | None:
    text = "ä\u2028\0\\xff\n"
    return chance.choice([None, b"", text.encode(), b"\xff\xfe\0", chance.randbytes(20)])


def write(kafka: LocalKafka, topic: str, count: int) -> None:
    """Write records of all kinds with an independent producer."""
    chance = random.Random(13)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for number in range(count):
        producer.produce(
            topic,
            some_bytes(chance),
            some_bytes(chance),
            partition=chance.randrange(PARTITIONS),
            timestamp=LONG_AGO_MS + number,
            headers=[(f"h{n}", some_bytes(chance)) for n in range(chance.randrange(3))],
        )
    assert producer.flush(TIMEOUT_SECONDS) == 0


def records(kafka: LocalKafka, topic: str, count: int) -> list[tuple[object, ...]]:
    """Return all records of a topic, by partition and offset."""
    config = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "nobody"}
    consumer = Consumer({**config, "enable.auto.commit": False})
    consumer.assign([Position(topic, partition, 0) for partition in range(PARTITIONS)])
    found = consumer.consume(count, TIMEOUT_SECONDS)
    consumer.close()
    return sorted(
        (
            *(each.partition(), each.offset(), each.timestamp()[1]),
            *(str(each.key()), str(each.value()), str(each.headers())),
        )
        for each in found
    )


def test_a_topic_is_copied_by_two_commands(kafka: LocalKafka, topic: str) -> None:
    count = 300
    copy = f"{topic}-copy"
    for name in (topic, copy):
        kafka.create_topic(name, partitions=PARTITIONS)
    write(kafka, topic, count)
    brokers = ["-b", kafka.bootstrap_servers]
    tail = subprocess.run(
        [*COMMAND, "tail", topic, "--from", "earliest", "--json", *brokers],
        capture_output=True,
        env=ENVIRONMENT,
        timeout=TIMEOUT_SECONDS,
        check=True,
    )
    produce = subprocess.run(
        [*COMMAND, "produce", copy, "--json", *brokers],
        input=tail.stdout,
        capture_output=True,
        env=ENVIRONMENT,
        timeout=TIMEOUT_SECONDS,
        check=True,
    )
    assert produce.stderr.decode() == f"Topic '{copy}': {count} records are written\n"
    assert records(kafka, copy, count) == records(kafka, topic, count)


@contextmanager
def endless_lines(stdin: IO[str]) -> Iterator[None]:
    """Write numbers until the reader closes."""

    def write() -> None:
        with suppress(BrokenPipeError):
            for number in range(10**9):
                stdin.write(f"{number}\n")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        writer.join(TIMEOUT_SECONDS)
        with suppress(BrokenPipeError):  # Nobody reads the rest of the buffer.
            stdin.close()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_one_who_is_stopped_leaves_what_was_acknowledged(
    kafka: LocalKafka, topic: str, number: int, status: int
) -> None:
    kafka.create_topic(topic)
    partition = TopicPartition(topic, 0)
    with (
        KafkaConsumer(bootstrap_servers=kafka.bootstrap_servers) as consumer,
        started("produce", topic, "-b", kafka.bootstrap_servers) as process,
    ):
        assert process.stdin is not None and process.stderr is not None
        with endless_lines(process.stdin):
            while consumer.end_offsets([partition])[partition] < 10_000:
                assert process.poll() is None
            process.send_signal(number)
            said = process.stderr.read()
            assert process.wait(TIMEOUT_SECONDS) == status
        counts = re.fullmatch(
            rf"Topic '{topic}': stopped\. ([\d,]+) records are written"
            r"(?:, ([\d,]+) more may be)?\n",
            said,
        )
        assert counts is not None, said
        least, more = (int((each or "0").replace(",", "")) for each in counts.groups())
        end = consumer.end_offsets([partition])[partition]
        assert least <= end <= least + more
        consumer.assign([partition])
        consumer.seek(partition, 0)
        values: list[bytes] = []
        while len(values) < end:
            values += consumer.poll(1000).to_arrow()["value"].to_pylist()
    assert values == [str(each).encode() for each in range(end)]


def test_a_record_that_no_broker_accepts_is_named_with_its_line(
    kafka: LocalKafka, topic: str
) -> None:
    """The record is too large for the topic, but not for the producer: the broker refuses it."""
    kafka.create_topic(topic, configs={"max.message.bytes": "1000"})
    with started("produce", topic, "-b", kafka.bootstrap_servers) as process:
        out, said = process.communicate(f"a\n{'x' * 2000}\nb\n", timeout=TIMEOUT_SECONDS)
    assert process.returncode == 1
    assert out == ""
    assert said.startswith(f"spark-kafka-source: Topic '{topic}': Lines 1 to 3: ")
    assert "MESSAGE_TOO_LARGE" in said
