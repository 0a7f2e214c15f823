"""The choice of a partition for records that neither a key nor a function gives one.

https://cwiki.apache.org/confluence/display/KAFKA/KIP-794%3A+Strictly+Uniform+Sticky+Partitioner
"""

import random
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from spark_kafka_source.producer.config import Partitioner, ProducerConfig
from spark_kafka_source.records import Integers
from spark_kafka_source.topic_partition import TopicPartition

_STICKY_BYTES = 16 * 1024
"""The bytes of records after which Java's producer goes to another partition: its `batch.size`."""

_TURNS_OF_COLUMNS = 4

Queued = Callable[[TopicPartition], int]
"""A function that returns how many closed batches of a partition wait."""


class KeylessPartitioner(Protocol):
    """The partitions for one topic's records. Only one thread may use it at a time."""

    def one(self, size: int, available: Sequence[int]) -> int:
        """Return the partition for a record of this size."""

    def many(self, sizes: Integers, available: Sequence[int]) -> Integers:
        """Return the partition for each of many records."""

    def batch_ended(self, partition: int) -> None:
        """Note that a batch of this partition takes no more records. Any thread may call it.

        By default, do nothing: each record has a partition by itself.
        """
        del partition


class StickyPartitioner(KeylessPartitioner):
    """One partition until it has so many bytes of records, or its batch is sent; then another.

    The first is KIP-794, the second KIP-480: without it, a slow producer stays on one partition for
    minutes. Partitions are dealt in rounds: in each round, each available partition has one turn,
    in random order. Kafka's own (`BuiltInPartitioner`) draws each turn by itself, so that some
    partitions get several in a row.
    """

    def __init__(
        self,
        batch_bytes: int,
        queued: Callable[[int], int] | None = None,
        chance: random.Random | None = None,
    ) -> None:
        """`queued` returns how many batches of a partition wait.

        The more batches wait for a partition at the begin of a round, the more rounds it sits out
        (`partitioner.adaptive.partitioning.enable`).
        """
        if batch_bytes < 1:
            raise ValueError(f"batches of {batch_bytes} bytes: there must be one or more")
        self._batch_bytes = batch_bytes
        self._queued = queued or (lambda _: 0)
        # The random numbers spread load. They are not for security.
        self._chance = chance or random.Random()  # noqa: S311
        self._round: list[int] = []
        self._partition: int | None = None
        self._bytes = 0

    def one(self, size: int, available: Sequence[int]) -> int:
        """Return the partition for a record of this size."""
        partition = self._current(available)
        self._appended(size, self._batch_bytes)
        return partition

    def many(self, sizes: Integers, available: Sequence[int]) -> Integers:
        """Return the partition for each of many records, in runs.

        Turns are longer than for single records, as long runs of rows cost less than short ones:
        four times `batch_bytes`, or, if that is more, so long that each partition has one turn.
        """
        partitions = np.empty(len(sizes), np.int64)
        ends = np.cumsum(sizes)
        share = -(-int(ends[-1]) // len(available)) if len(ends) and available else 0
        turn_bytes = max(_TURNS_OF_COLUMNS * self._batch_bytes, share)
        start = before = 0
        while start < len(sizes):
            room = turn_bytes - (self._bytes if self._partition in available else 0)
            stop = min(max(int(np.searchsorted(ends, before + room)), start) + 1, len(sizes))
            partitions[start:stop] = self._current(available)
            start, after = stop, int(ends[stop - 1])
            self._appended(after - before, turn_bytes)
            before = after
        return partitions

    def batch_ended(self, partition: int) -> None:
        """Give the next record to another partition, if it would go to this one."""
        if self._partition == partition:
            self._partition = None

    def _current(self, available: Sequence[int]) -> int:
        """Return the partition of this turn, or of the next one."""
        present = self._partition  # Another thread may end the turn at any time.
        if present is None or present not in available:
            present = self._partition = self._next(available)
            self._bytes = 0
        return present

    def _appended(self, size: int, turn_bytes: int) -> None:
        self._bytes += size
        if self._bytes >= turn_bytes:
            self._partition = None

    def _next(self, available: Sequence[int]) -> int:
        if not available:
            raise ValueError("no partition has a leader")
        while True:
            while self._round:
                dealt = self._round.pop()
                if dealt in available:
                    return dealt
            self._round = self._dealt(available)

    def _dealt(self, available: Sequence[int]) -> list[int]:
        """Return the partitions of the next round, in random order."""
        waiting = [self._queued(partition) for partition in available]
        # The weights are Java's: the most batches that wait for any partition, less those of this
        # one, plus one. The partitions with the greatest weight take part in every round.
        least, most = min(waiting), max(waiting) + 1
        taking_part = [
            partition
            for partition, waits in zip(available, waiting, strict=True)
            if waits == least or self._chance.randrange(most - least) < most - waits
        ]
        self._chance.shuffle(taking_part)
        return taking_part


class RoundRobinPartitioner(KeylessPartitioner):
    """One record for each partition in turn: Java's `RoundRobinPartitioner`."""

    def __init__(self) -> None:
        self._next = 0

    def one(self, size: int, available: Sequence[int]) -> int:
        """Return the next partition."""
        self._next += 1
        return available[(self._next - 1) % len(available)]

    def many(self, sizes: Integers, available: Sequence[int]) -> Integers:
        """Return the next partition for each record."""
        turns = np.arange(self._next, self._next + len(sizes)) % len(available)
        self._next += len(sizes)
        return np.asarray(available, np.int64)[turns]


class RandomPartitioner(KeylessPartitioner):
    """Any partition for each record: librdkafka's `_random`."""

    def __init__(self) -> None:
        # The random numbers spread load. They are not for security.
        self._chance = np.random.default_rng()

    def one(self, size: int, available: Sequence[int]) -> int:
        """Return any partition."""
        return int(self._chance.choice(available))

    def many(self, sizes: Integers, available: Sequence[int]) -> Integers:
        """Return any partition for each record."""
        partitions: Integers = self._chance.choice(available, len(sizes))
        return partitions


def keyless_partitioner(topic: str, config: ProducerConfig, queued: Queued) -> KeylessPartitioner:
    """Return the configured choice for a topic's records."""
    if config.partitioner is Partitioner.ROUND_ROBIN:
        return RoundRobinPartitioner()
    if not config.has_sticky_partition:
        return RandomPartitioner()
    is_adaptive = config.partitioner_adaptive_partitioning_enable
    return StickyPartitioner(
        min(_STICKY_BYTES, config.batch_size),
        (lambda partition: queued(TopicPartition(topic, partition))) if is_adaptive else None,
    )
