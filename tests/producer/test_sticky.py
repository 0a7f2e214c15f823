"""Records without a key: one partition for a batch's bytes, and equal shares for all."""

from collections import Counter
from itertools import groupby
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.producer import StickyPartitioner


class NextInTurn(Random):
    """A `Random` that chooses one element after the other."""

    def __init__(self) -> None:
        super().__init__(0)
        self.turn = -1

    def choice(self, seq):  # type: ignore[no-untyped-def]  # as Random has it
        self.turn += 1
        return seq[self.turn % len(seq)]


def test_a_partition_is_kept_until_a_batch_has_gone_there() -> None:
    sticky = StickyPartitioner(100, NextInTurn())
    assert sticky.partition([0, 1, 2]) == 0
    sticky.appended(99)
    assert sticky.partition([0, 1, 2]) == 0
    sticky.appended(1)
    assert sticky.partition([0, 1, 2]) == 1


def test_a_batch_that_is_not_full_is_filled_but_not_beyond_twice_its_size() -> None:
    sticky = StickyPartitioner(100, NextInTurn())
    sticky.partition([0, 1])
    sticky.appended(199, batch_full=False)
    assert sticky.partition([0, 1]) == 0
    sticky.appended(1, batch_full=False)
    assert sticky.partition([0, 1]) == 1
    sticky.appended(150, batch_full=False)
    assert sticky.partitions(np.array([1, 1]), [0, 1]).tolist() == [1, 0]


def test_a_partition_without_a_leader_is_left() -> None:
    sticky = StickyPartitioner(100, NextInTurn())
    assert sticky.partition([0, 1]) == 0
    sticky.appended(90)
    assert sticky.partition([1]) == 1
    sticky.appended(90)
    assert sticky.partition([0, 1]) == 1
    with pytest.raises(ValueError, match="no partition has a leader"):
        StickyPartitioner(100).partition([])


def test_the_more_waits_for_a_partition_the_less_often_it_is_taken() -> None:
    """The shares are the same as in Java: here 1, 3 and 4 of 8."""
    sticky = StickyPartitioner(1, Random(1))
    found = Counter[int]()
    for _ in range(8000):
        found[sticky.partition([3, 5, 7], [3, 1, 0])] += 1
        sticky.appended(1)
    shares = [found[partition] / 1000 for partition in (3, 5, 7)]
    assert shares == pytest.approx([1, 3, 4], abs=0.2)


@given(
    st.lists(st.lists(st.integers(0, 150), max_size=20), max_size=5),
    st.integers(1, 300),
    st.integers(1, 5),
)
def test_many_records_at_once_go_where_they_would_one_by_one(
    calls: list[list[int]], batch_bytes: int, partition_count: int
) -> None:
    available = range(partition_count)
    at_once = StickyPartitioner(batch_bytes, NextInTurn())
    one_by_one = StickyPartitioner(batch_bytes, NextInTurn())
    for sizes in calls:
        expected = []
        for size in sizes:
            expected.append(one_by_one.partition(available))
            one_by_one.appended(size)
        assert at_once.partitions(np.array(sizes, np.int64), available).tolist() == expected


def test_all_partitions_get_alike_in_bytes_and_each_many_at_a_time() -> None:
    sizes = np.array([Random(2).randrange(1, 2000) for _ in range(100_000)])
    partitions = StickyPartitioner(16_384, Random(3)).partitions(sizes, range(4))
    shares = np.bincount(partitions, sizes) / sizes.sum()
    assert shares == pytest.approx([0.25] * 4, abs=0.03)
    runs = [len(list(run)) for _, run in groupby(partitions.tolist())]
    assert sum(runs) / len(runs) > 10


def test_batches_have_bytes() -> None:
    with pytest.raises(ValueError, match="batches of 0 bytes"):
        StickyPartitioner(0)
