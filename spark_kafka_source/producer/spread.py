"""The choice of a partition for records that neither a key nor a function gives one."""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from spark_kafka_source.producer.config import Partitioner, ProducerConfig
from spark_kafka_source.producer.sticky import STICKY_BYTES, StickyPartitioner
from spark_kafka_source.records import Integers
from spark_kafka_source.topic_partition import TopicPartition

Queued = Callable[[TopicPartition], int]
"""A function that returns how many closed batches of a partition wait."""


class Spread(Protocol):
    """The partitions for one topic's records. Only one thread may use it at a time."""

    def one(self, size: int, available: Sequence[int]) -> int:
        """Return the partition for a record of this size."""

    def many(self, sizes: Integers, available: Sequence[int]) -> Integers:
        """Return the partition for each of many records."""

    def batch_ended(self, partition: int) -> None:
        """Note that a batch of this partition takes no more records. Any thread may call it."""


class Sticky:
    """One partition until it has 16 KiB of records or its batch is sent, then another.

    The first is KIP-794, the second KIP-480: without it, a slow producer stays on one partition for
    minutes.
    """

    def __init__(self, topic: str, config: ProducerConfig, queued: Queued) -> None:
        self._topic, self._queued_in = topic, queued
        is_adaptive = config.partitioner_adaptive_partitioning_enable
        self._queued = self._waiting if is_adaptive else None
        self._sticky = StickyPartitioner(min(STICKY_BYTES, config.batch_size))

    def one(self, size: int, available: Sequence[int]) -> int:
        """Return the partition for a record of this size."""
        found = self._sticky.partition(available, self._queued)
        self._sticky.appended(size)
        return found

    def many(self, sizes: Integers, available: Sequence[int]) -> Integers:
        """Return the partition for each of many records, in runs."""
        return self._sticky.partitions(sizes, available, self._queued)

    def batch_ended(self, partition: int) -> None:
        """End the turn of this partition."""
        self._sticky.end_turn(partition)

    def _waiting(self, available: Sequence[int]) -> Sequence[int]:
        return [self._queued_in(TopicPartition(self._topic, each)) for each in available]


class InTurn:
    """One record for each partition in turn: Java's `RoundRobinPartitioner`."""

    def __init__(self) -> None:
        self._next = 0

    def one(self, _: int, available: Sequence[int]) -> int:
        """Return the next partition."""
        self._next += 1
        return available[(self._next - 1) % len(available)]

    def many(self, sizes: Integers, available: Sequence[int]) -> Integers:
        """Return the next partition for each record."""
        turns = np.arange(self._next, self._next + len(sizes)) % len(available)
        self._next += len(sizes)
        return np.asarray(available, np.int64)[turns]

    def batch_ended(self, _: int) -> None:
        """Do nothing: each record has a partition by itself."""


class Anywhere:
    """Any partition for each record: librdkafka's `_random`."""

    def __init__(self) -> None:
        # The random numbers spread load. They are not for security.
        self._chance = np.random.default_rng()

    def one(self, _: int, available: Sequence[int]) -> int:
        """Return any partition."""
        return int(self._chance.choice(available))

    def many(self, sizes: Integers, available: Sequence[int]) -> Integers:
        """Return any partition for each record."""
        found: Integers = self._chance.choice(available, len(sizes))
        return found

    def batch_ended(self, _: int) -> None:
        """Do nothing: each record has a partition by itself."""


def spread_of(topic: str, config: ProducerConfig, queued: Queued) -> Spread:
    """Return the configured choice for a topic's records."""
    if config.partitioner is Partitioner.ROUND_ROBIN:
        return InTurn()
    return Sticky(topic, config, queued) if config.has_sticky_partition else Anywhere()
