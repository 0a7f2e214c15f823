"""The partition of records without a key: one for a while, then another, with equal bytes.

https://cwiki.apache.org/confluence/display/KAFKA/KIP-794%3A+Strictly+Uniform+Sticky+Partitioner
"""

import random
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from spark_kafka_source.records import Integers


class StickyPartitioner:
    """One topic's partition for records without a key. It changes after `batch_bytes`.

    Kafka's own (`BuiltInPartitioner`) switches after `batch.size` bytes once the batch is full, and
    after twice that in any case. Only one thread may use it at a time.
    """

    def __init__(self, batch_bytes: int, chance: random.Random | None = None) -> None:
        if batch_bytes < 1:
            raise ValueError(f"batches of {batch_bytes} bytes: there must be one or more")
        self._batch_bytes = batch_bytes
        # The random numbers spread load. They are not for security.
        self._chance = chance or random.Random()  # noqa: S311
        self._partition: int | None = None
        self._bytes = 0

    @property
    def has_partition(self) -> bool:
        """Whether the present partition stays, if it is available."""
        return self._partition is not None

    def partition(self, available: Sequence[int], queued: Sequence[int] | None = None) -> int:
        """Return the partition for the next record, out of the available ones.

        `queued` is the number of batches that wait for each available partition. The more wait,
        the less often the partition is chosen (`partitioner.adaptive.partitioning.enable`). Raises
        `ValueError` if no partition is available.
        """
        if self._partition is None or self._partition not in available:
            self._partition = self._next(available, queued)
            self._bytes = 0
        return self._partition

    def appended(self, size: int, *, batch_full: bool = True) -> None:
        """Count `size` bytes for the partition. `batch_full` says whether their batch is full."""
        self._bytes += size
        if self._bytes >= self._batch_bytes * (1 if batch_full else 2):
            self._partition = None

    def partitions(
        self, sizes: Integers, available: Sequence[int], queued: Sequence[int] | None = None
    ) -> Integers:
        """Return the partition of each of many records. `sizes` are their bytes, at least 0."""
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
        # As in Java: the weight of a partition is the most batches that wait for any partition,
        # less its own batches, plus one.
        most = max(queued) + 1
        ends = list(accumulate(most - each for each in queued))
        return available[bisect_right(ends, self._chance.randrange(ends[-1]))]
