"""Check of the copied rows, by another client's reader of committed records."""

import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from spark_kafka_source.admin.transactions import list_transactions
from spark_kafka_source.client import KafkaClient
from tests.exactly_once.judge import wait_for_markers
from tests.spark.sink.settings import parsed

_PATIENCE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Verdict:
    """Counts of faults. All must be 0 if rows are written exactly once."""

    lost: int
    doubled: int
    out_of_order: int
    """Rows that are first seen behind a later row of the same key."""
    left_open: int

    def __str__(self) -> str:
        return (
            f"lost {self.lost}, doubled {self.doubled}, out of order {self.out_of_order}, "
            f"left open {self.left_open}"
        )


class Row(NamedTuple):
    """A row that was read. Rows of one key are written in the order of their numbers."""

    key: str
    number: int


def judge(
    servers: str, topics: Sequence[str], partitions: int, expected: Collection[int]
) -> Verdict:
    """Read topics by librdkafka up to their first open transactions, and judge all of their rows.

    Transactional ids begin with the first topic's name.
    """
    for each in topics:
        wait_for_markers(servers, each, partitions)
    rows = [
        row
        for topic in topics
        for partition in range(partitions)
        for row in _committed(servers, TopicPartition(topic, partition, OFFSET_BEGINNING))
    ]
    found, wanted = Counter(row.number for row in rows), Counter(expected)
    assert not found.keys() - wanted.keys(), "rows that nobody wrote"
    return Verdict(
        (wanted - found).total(),
        (found - wanted).total(),
        _out_of_order(rows),
        _open(servers, topics[0]),
    )


def _out_of_order(rows: Iterable[Row]) -> int:
    latest: dict[str, int] = {}
    late = 0
    for key, number in dict.fromkeys(rows):
        late += number < latest.get(key, number)
        latest[key] = max(number, latest.get(key, number))
    return late


def _committed(servers: str, where: TopicPartition) -> list[Row]:
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
    found: list[Row] = []
    deadline = time.monotonic() + _PATIENCE_SECONDS
    try:
        while time.monotonic() < deadline:
            for message in consumer.consume(1_000, 0.2):
                if message.error() is not None:
                    return found  # The end of the partition, or its first open transaction.
                key, value = message.key() or b"", message.value() or b""
                found.append(Row(key.decode(), int(value)))
    finally:
        consumer.close()
    raise AssertionError(f"{where} was not read to its end")


def _open(servers: str, prefix: str) -> int:
    options = parsed(**{"kafka.bootstrap.servers": servers})
    with KafkaClient(options.producer.client) as client:
        listed, failures = client.run(list_transactions(client, ["Ongoing"]))
    assert not failures
    return sum(each.transactional_id.startswith(prefix) for each in listed)
