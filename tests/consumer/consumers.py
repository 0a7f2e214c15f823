"""Consumers of an in-memory broker, and the records that they return."""

import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from spark_kafka_source.consumer.consumer_records import ConsumerRecords
from spark_kafka_source.consumer.kafka_consumer import KafkaConsumer
from spark_kafka_source.consumer.rebalance_listener import ConsumerRebalanceListener
from spark_kafka_source.net import Deadline
from spark_kafka_source.protocol.messages.fetch import FetchRequest
from spark_kafka_source.testing.memory import MemoryBroker
from spark_kafka_source.topic_partition import TopicPartition

T0, T1, T2 = (TopicPartition("t", partition) for partition in range(3))
PATIENCE_MS = 60_000
"""The longest wait for anything that must come. Only a hang takes so long."""

QUICK: dict[str, Any] = {
    "retry_backoff_ms": 1,
    "retry_backoff_max_ms": 20,
    "fetch_max_wait_ms": 50,
    "auto_offset_reset": "earliest",
    "default_api_timeout_ms": PATIENCE_MS,
}
IN_GROUP: dict[str, Any] = {
    "group_id": "g",
    "heartbeat_interval_ms": 20,
    # A machine that is busy may keep the thread of a member from its heartbeats for seconds. Tests
    # end sessions themselves: see `MemoryBroker.drop_member`.
    "session_timeout_ms": 60_000,
    "enable_auto_commit": False,
}


@contextmanager
def consuming(broker: MemoryBroker, *assigned: TopicPartition, **config: Any) -> Iterator[Any]:
    """Run a consumer that retries at once. The broker delays empty fetches, as real brokers do."""
    broker.held_step_seconds = 0.002
    address = broker.address()
    with KafkaConsumer(
        bootstrap_servers=f"{address.host}:{address.port}", **QUICK | config
    ) as consumer:
        if assigned:
            consumer.assign(assigned)
        yield consumer


Place = tuple[TopicPartition, int]
_kept: WeakKeyDictionary[KafkaConsumer, list[Place]] = WeakKeyDictionary()
"""Records that a consumer returned while a test waited for something else."""


def polled(consumer: KafkaConsumer, count: int) -> list[Place]:
    """Poll for `count` records. Return partition and offset of each, in order.

    Records that `poll_until` kept come first: a test that waits loses no record.
    """
    found = _kept.pop(consumer, [])
    poll_until(consumer, lambda: len(found) >= count, lambda records: found.extend(places(records)))
    return found


def poll_until(
    consumer: KafkaConsumer,
    done: Callable[[], bool],
    hear: Callable[[ConsumerRecords], object] | None = None,
) -> None:
    """Poll, at least once, until `done` holds.

    Keep the records for the next `polled` of this consumer, unless `hear` takes them.
    """
    deadline = Deadline.after_ms(PATIENCE_MS)
    while not done():
        assert not deadline.expired, "it was to be done by now"
        records = consumer.poll(timeout_ms=50)
        if hear is None:
            keep(consumer, records)
        else:
            hear(records)


def poll_all_until(*consumers: KafkaConsumer, done: Callable[[], bool]) -> None:
    """Poll all consumers in turn, and keep their records as `poll_until` does."""
    deadline = Deadline.after_ms(PATIENCE_MS)
    while not done():
        assert not deadline.expired, [each.assignment() for each in consumers]
        for each in consumers:
            keep(each, each.poll(timeout_ms=10))


def keep(consumer: KafkaConsumer, records: ConsumerRecords) -> None:
    """Keep the records for the next `polled` of this consumer."""
    _kept.setdefault(consumer, []).extend(places(records))


def eventually(done: Callable[[], bool]) -> None:
    """Wait until another thread makes `done` true."""
    deadline = Deadline.after_ms(PATIENCE_MS)
    while not done():
        assert not deadline.expired, "it was to be done by now"
        time.sleep(0.002)


def clients_threads(since: Collection[threading.Thread]) -> list[str]:
    """Return the names of the clients' threads that began after these threads, and live."""
    return [
        each.name
        for each in threading.enumerate()
        if each not in since and each.name.startswith(("connecting to ", "group "))
    ]


def longer_and_longer(first_ms: int) -> Iterator[int]:
    """Yield a time, then ten times and a hundred times as much.

    For a test that waits until a time is over. On a busy machine the time may be over before the
    test has come to what it tests. The test leaves the loop once it has come to that.
    """
    yield from (first_ms, 10 * first_ms, 100 * first_ms)


def places(records: ConsumerRecords) -> list[Place]:
    return [(TopicPartition(each.topic, each.partition), each.offset) for each in records]


def of(where: TopicPartition, offsets: Any) -> list[Place]:
    return [(where, offset) for offset in offsets]


def fill(broker: MemoryBroker, where: TopicPartition, batches: int, size: int = 10) -> None:
    """Append `batches` batches of `size` records. Each value is the record's offset."""
    log = broker.cluster.topics[where.topic].logs[where.partition]
    for _ in range(batches):
        start = log.end_offset
        log.append(*(str(start + each).encode() for each in range(size)))


def forget_group(broker: MemoryBroker) -> None:
    """Let the broker forget group `g` with its members, all requests and all controls."""
    for node_id in broker.cluster.ports:  # So that nothing of the former members comes in.
        broker.hang_up(node_id)
    broker.cluster.groups.pop("g", None)
    broker.cluster.consumer_groups.pop("g", None)
    broker.forget()


def fetches(broker: MemoryBroker) -> list[tuple[int, int, list[tuple[int, int]]]]:
    """Return the session id, session epoch, partitions and offsets of each Fetch request."""
    return [
        (
            each.session_id,
            each.session_epoch,
            [(p.partition, p.fetch_offset) for topic in each.topics for p in topic.partitions],
        )
        for each in broker.requests(FetchRequest)
    ]


class Listener(ConsumerRebalanceListener):
    """A listener that keeps its calls, in order. Each call also calls `during`."""

    def __init__(self, during: Any = lambda *_: None) -> None:
        self.said: list[tuple[str, set[TopicPartition]]] = []
        self.during = during

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self._hear("revoked", partitions)

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self._hear("assigned", partitions)

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        self._hear("lost", partitions)

    def _hear(self, what: str, partitions: Collection[TopicPartition]) -> None:
        self.said.append((what, set(partitions)))
        self.during(what, partitions)
