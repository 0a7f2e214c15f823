"""The partition of records without a key: one for a while, then another, alike in bytes.

https://cwiki.apache.org/confluence/display/KAFKA/KIP-794%3A+Strictly+Uniform+Sticky+Partitioner
"""

import random
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from spark_kafka_source.records import Integers


class StickyPartitioner:
    """One topic's partition for records without a key, until `batch_bytes` have gone there.

    Kafka's own (`BuiltInPartitioner`) switches after `batch.size` bytes once the batch is full, and
    after twice that in any case. Not for two threads at once.
    """

    def __init__(self, batch_bytes: int, chance: random.Random | None = None) -> None:
        if batch_bytes < 1:
            raise ValueError(f"batches of {batch_bytes} bytes: there must be one or more")
        self._batch_bytes = batch_bytes
        # It spreads load, and guards nothing.
        self._chance = chance or random.Random()  # noqa: S311
        self._partition: int | None = None
        self._bytes = 0

    @property
    def has_partition(self) -> bool:
        """Whether the last partition goes on, if it is available."""
        return self._partition is not None

    def partition(self, available: Sequence[int], queued: Sequence[int] | None = None) -> int:
        """The partition for the next record, out of those that have a leader.

        `queued` is how many batches wait for each of them: the more, the less often a switch comes
        to it (`partitioner.adaptive.partitioning.enable`). Raises `ValueError` for none.
        """
        if self._partition is None or self._partition not in available:
            self._partition = self._next(available, queued)
            self._bytes = 0
        return self._partition

    def appended(self, size: int, *, batch_full: bool = True) -> None:
        """So many bytes went to the partition; the batch they went to takes no more, or does."""
        self._bytes += size
        if self._bytes >= self._batch_bytes * (1 if batch_full else 2):
            self._partition = None

    def partitions(
        self, sizes: Integers, available: Sequence[int], queued: Sequence[int] | None = None
    ) -> Integers:
        """The partition of each of many records, of which `sizes` are the bytes, at least 0."""
        found = np.empty(len(sizes), np.int64)
        ends = np.cumsum(sizes)
        start = 0
        while start < len(sizes):
            before = int(ends[start - 1]) if start else 0
            room = self._batch_bytes - self._held(available)
            stop = max(int(np.searchsorted(ends, before + room)), start) + 1
            found[start:stop] = self.partition(available, queued)
            self.appended(int(ends[min(stop, len(sizes)) - 1]) - before)
            start = stop
        return found

    def _held(self, available: Sequence[int]) -> int:
        return self._bytes if self._partition in available else 0

    def _next(self, available: Sequence[int], queued: Sequence[int] | None) -> int:
        if not available:
            raise ValueError("no partition has a leader")
        if queued is None:
            return self._chance.choice(available)
        # As in Java: a partition's share is how many fewer batches wait for it than for the one
        # with most, and one more.
        most = max(queued) + 1
        ends = list(accumulate(most - each for each in queued))
        return available[bisect_right(ends, self._chance.randrange(ends[-1]))]
