"""The committed records of a topic. On real brokers an independent client reads them."""

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

from spark_kafka_source.records import AbortedTransaction, chunks, to_arrow
from spark_kafka_source.records import IsolationLevel as Level
from spark_kafka_source.testing.memory import MemoryBroker
from spark_kafka_source.topic_partition import TopicPartition as Place

TIMEOUT_SECONDS = 60.0
_SEEN_WITHIN_SECONDS = 30.0
_NEW_LEADER = {KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.OFFSET_NOT_AVAILABLE}


@dataclass(frozen=True, slots=True)
class Found:
    """All committed values of a topic, and the number of partitions with an open transaction."""

    values: list[bytes]
    held_up: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """Numbers of lost and of doubled rows, and of partitions with an open transaction."""

    lost: int
    doubled: int
    held_up: int

    @property
    def is_good(self) -> bool:
        return not (self.lost or self.doubled or self.held_up)


def judge(found: Found, written: Iterable[bytes]) -> Verdict:
    """Compare the committed values with the rows to be written. Each row must be there once."""
    there, expected = Counter(found.values), Counter(set(written))
    return Verdict((expected - there).total(), (there - expected).total(), found.held_up)


def found_by_confluent(
    servers: str, topic: str, partitions: int, patience_seconds: float = _SEEN_WITHIN_SECONDS
) -> Found:
    """Return the values that confluent-kafka reads."""
    waiting = wait_for_markers(servers, topic, partitions, patience_seconds)
    return Found(committed(servers, topic, partitions), waiting)


def found_in_memory(broker: MemoryBroker, _: str, topic: str, partitions: int) -> Found:
    """Return the values that a reader of the logs in memory finds."""
    found: list[bytes] = []
    logs = [broker.cluster.topics[topic].logs[each] for each in range(partitions)]
    for log in logs:
        read = chunks(
            log.read(0, log.last_stable_offset, 1 << 30),
            topic_partition=Place(topic, 0),
            isolation_level=Level.READ_COMMITTED,
            aborted=[
                AbortedTransaction(each.producer_id, each.first_offset) for each in log.aborted
            ],
        )
        for chunk in read:
            found += to_arrow(chunk)["value"].to_pylist()
    return Found(found, sum(each.last_stable_offset != each.end_offset for each in logs))


def committed(servers: str, topic: str, partitions: int) -> list[bytes]:
    """Return all committed values, partition after partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "-",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in range(partitions)])
    rows: list[bytes] = []
    at_end = 0
    while at_end < partitions:
        message = consumer.poll(TIMEOUT_SECONDS)
        assert message is not None, f"nothing within {TIMEOUT_SECONDS} s"
        error = message.error()
        if error is None:
            rows.append(message.value() or b"")
        elif error.code() == KafkaError._PARTITION_EOF:
            at_end += 1
        else:
            raise KafkaException(error)
    consumer.close()
    return rows


def wait_for_markers(
    servers: str, topic: str, partitions: int, patience_seconds: float = _SEEN_WITHIN_SECONDS
) -> int:
    """Wait for the end of open transactions. Return how many partitions wait after that.

    A coordinator answers as soon as the end of a transaction is certain. It writes the markers
    after that.
    """
    until_seconds = time.monotonic() + patience_seconds
    while (waiting := held_up(servers, topic, partitions)) and time.monotonic() < until_seconds:
        time.sleep(0.05)
    return waiting


def held_up(servers: str, topic: str, partitions: int) -> int:
    """Return the number of partitions in which an open transaction holds readers up."""
    ends = [
        _ends(servers, topic, partitions, level)
        for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED)
    ]
    return sum(stable != end for stable, end in zip(*ends, strict=True))


def _ends(servers: str, topic: str, partitions: int, level: IsolationLevel) -> list[int]:
    admin = AdminClient({"bootstrap.servers": servers})
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # confluent has no type for it
    asked = {TopicPartition(topic, each): latest for each in range(partitions)}
    until_seconds = time.monotonic() + TIMEOUT_SECONDS
    while True:
        found = admin.list_offsets(asked, isolation_level=level, request_timeout=TIMEOUT_SECONDS)
        try:
            return [found[each].result().offset for each in asked]
        except KafkaException as error:
            # A new leader may not know yet that it leads, or its high watermark.
            if error.args[0].code() not in _NEW_LEADER or time.monotonic() > until_seconds:
                raise
        time.sleep(0.05)
