"""The partition of records without a key: one for a while, then the next, with equal shares.

https://cwiki.apache.org/confluence/display/KAFKA/KIP-794%3A+Strictly+Uniform+Sticky+Partitioner
"""

import random
from collections.abc import Callable, Sequence

import numpy as np

from spark_kafka_source.records import Integers

STICKY_BYTES = 16 * 1024
"""The bytes of records after which Java's producer goes to another partition: its `batch.size`."""

_TURNS_OF_COLUMNS = 4

Queued = Callable[[Sequence[int]], Sequence[int]]
"""A function of the available partitions. It returns how many batches wait for each of them."""


class StickyPartitioner:
    """One topic's partition for records without a key. It changes after `batch_bytes`.

    Partitions are dealt in rounds: in each round, each available partition has one turn, in random
    order. Kafka's own (`BuiltInPartitioner`) draws each turn by itself, so that some partitions get
    several in a row. Only one thread may use it at a time; another may call `end_turn`.
    """

    def __init__(self, batch_bytes: int, chance: random.Random | None = None) -> None:
        if batch_bytes < 1:
            raise ValueError(f"batches of {batch_bytes} bytes: there must be one or more")
        self._batch_bytes = batch_bytes
        # The random numbers spread load. They are not for security.
        self._chance = chance or random.Random()  # noqa: S311
        self._round: list[int] = []
        self._partition: int | None = None
        self._bytes = 0

    def end_turn(self, partition: int) -> None:
        """Give the next record to another partition, if it would go to this one."""
        if self._partition == partition:
            self._partition = None

    def partition(self, available: Sequence[int], queued: Queued | None = None) -> int:
        """Return the partition for the next record, out of the available ones.

        `queued` is called at the begin of a round. The more batches wait for a partition, the more
        rounds it sits out (`partitioner.adaptive.partitioning.enable`). Raises `ValueError` if no
        partition is available.
        """
        present = self._partition  # Another thread may end the turn at any time.
        if present is None or present not in available:
            present = self._partition = self._next(available, queued)
            self._bytes = 0
        return present

    def appended(self, size: int, turn_bytes: int | None = None) -> None:
        """Count `size` bytes for the present partition, and end its turn if they are enough."""
        self._bytes += size
        if self._bytes >= (turn_bytes or self._batch_bytes):
            self._partition = None

    def partitions(
        self, sizes: Integers, available: Sequence[int], queued: Queued | None = None
    ) -> Integers:
        """Return the partition of each of many records. `sizes` are their bytes, at least 0.

        Turns are longer than for single records, as long runs of rows cost less than short ones:
        four times `batch_bytes`, or, if that is more, so long that each partition has one turn.
        """
        found = np.empty(len(sizes), np.int64)
        ends = np.cumsum(sizes)
        share = -(-int(ends[-1]) // len(available)) if len(ends) and available else 0
        turn_bytes = max(_TURNS_OF_COLUMNS * self._batch_bytes, share)
        start = 0
        while start < len(sizes):
            before = int(ends[start - 1]) if start else 0
            room = turn_bytes - self._held(available)
            stop = max(int(np.searchsorted(ends, before + room)), start) + 1
            found[start:stop] = self.partition(available, queued)
            self.appended(int(ends[min(stop, len(sizes)) - 1]) - before, turn_bytes)
            start = stop
        return found

    def _held(self, available: Sequence[int]) -> int:
        return self._bytes if self._partition in available else 0

    def _next(self, available: Sequence[int], queued: Queued | None) -> int:
        if not available:
            raise ValueError("no partition has a leader")
        while True:
            while self._round:
                dealt = self._round.pop()
                if dealt in available:
                    return dealt
            self._round = self._dealt(available, queued)

    def _dealt(self, available: Sequence[int], queued: Queued | None) -> list[int]:
        """Return the partitions of the next round, in random order."""
        waiting = [0] * len(available) if queued is None else queued(available)
        # The weights are Java's: the most batches that wait for any partition, less those of this
        # one, plus one. The partitions with the greatest weight take part in every round.
        least, most = min(waiting), max(waiting) + 1
        taking_part = [
            each
            for each, waits in zip(available, waiting, strict=True)
            if waits == least or self._chance.randrange(most - least) < most - waits
        ]
        self._chance.shuffle(taking_part)
        return taking_part
