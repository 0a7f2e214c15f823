"""What a reader of committed records that is not ours sees of what was to be copied."""

import time
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from spark_kafka_source.admin.transactions import list_transactions
from spark_kafka_source.client import KafkaClient
from tests.spark.sink.settings import parsed

_PATIENCE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Verdict:
    """All of them are to be 0 where rows are written exactly once."""

    lost: int
    doubled: int
    left_open: int

    def __str__(self) -> str:
        return f"lost {self.lost}, doubled {self.doubled}, left open {self.left_open}"


def judge(servers: str, topic: str, partitions: int, expected: Collection[str]) -> Verdict:
    """Reads the topic by librdkafka, up to the first transaction that is open.

    Transactional ids begin with the topic's name.
    """
    found: Counter[str] = Counter()
    for partition in range(partitions):
        found.update(_committed(servers, TopicPartition(topic, partition, OFFSET_BEGINNING)))
    wanted = Counter(expected)
    assert not found.keys() - wanted.keys(), "rows that nobody wrote"
    return Verdict((wanted - found).total(), (found - wanted).total(), _open(servers, topic))


def _committed(servers: str, where: TopicPartition) -> list[str]:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "of-nobody",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    consumer.assign([where])
    found: list[str] = []
    deadline = time.monotonic() + _PATIENCE_SECONDS
    try:
        while time.monotonic() < deadline:
            for message in consumer.consume(1_000, 0.2):
                if message.error() is not None:
                    return found  # The end, or rather the first transaction that is open.
                found.append((message.value() or b"").decode())
    finally:
        consumer.close()
    raise AssertionError(f"{where} was not read to its end")


def _open(servers: str, prefix: str) -> int:
    options = parsed(**{"kafka.bootstrap.servers": servers})
    with KafkaClient(options.producer.client) as client:
        listed, failures = list_transactions(client, ["Ongoing"])
    assert not failures
    return sum(each.transactional_id.startswith(prefix) for each in listed)
