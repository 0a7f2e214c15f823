"""Records without a key: turns of some bytes, and rounds in which each partition has its turn."""

from collections import Counter
from collections.abc import MutableSequence
from itertools import groupby
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.producer.keyless_partitioners import StickyPartitioner


class InOrder(Random):
    """A `Random` that shuffles nothing: a round takes the last partition first."""

    def __init__(self) -> None:
        super().__init__(0)

    def shuffle(self, x: MutableSequence[Any]) -> None:
        x.reverse()


def test_a_partition_is_kept_until_enough_bytes_have_gone_there() -> None:
    sticky = StickyPartitioner(100, chance=InOrder())
    assert sticky.one(99, [0, 1, 2]) == 0
    assert sticky.one(1, [0, 1, 2]) == 0
    assert sticky.one(1, [0, 1, 2]) == 1


def test_a_turn_may_end_early() -> None:
    sticky = StickyPartitioner(100, chance=InOrder())
    assert sticky.one(60, [0, 1]) == 0
    sticky.batch_ended(1)
    assert sticky.one(0, [0, 1]) == 0, "it is not the turn of 1"
    sticky.batch_ended(0)
    assert sticky.one(60, [0, 1]) == 1
    assert sticky.one(0, [0, 1]) == 1, "bytes are those of this turn"


def test_a_partition_without_a_leader_is_left() -> None:
    sticky = StickyPartitioner(100, chance=InOrder())
    assert sticky.one(90, [0, 1]) == 0
    assert sticky.one(90, [1]) == 1
    assert sticky.one(0, [0, 1]) == 1
    with pytest.raises(ValueError, match="no partition has a leader"):
        StickyPartitioner(100).one(1, [])


@given(st.integers(1, 30), st.integers(1, 5), st.integers())
def test_each_partition_has_one_turn_in_each_round(count: int, rounds: int, seed: int) -> None:
    sticky = StickyPartitioner(1, chance=Random(seed))
    turns = [sticky.one(1, range(count)) for _ in range(count * rounds)]
    for number in range(rounds):
        assert sorted(turns[number * count : (number + 1) * count]) == list(range(count))


def test_the_more_waits_for_a_partition_the_fewer_turns_it_has() -> None:
    """The shares are the same as in Java: here 1, 3 and 4 of 8."""
    sticky = StickyPartitioner(1, {3: 3, 5: 1, 7: 0}.__getitem__, Random(1))
    found = Counter(sticky.one(1, [3, 5, 7]) for _ in range(8000))
    shares = [found[partition] / 1000 for partition in (3, 5, 7)]
    assert shares == pytest.approx([1, 3, 4], abs=0.2)


def test_batches_that_wait_for_all_alike_change_nothing() -> None:
    sticky = StickyPartitioner(1, lambda _: 900, Random(1))
    found = [sticky.one(1, range(3)) for _ in range(30)]
    assert Counter(found) == {0: 10, 1: 10, 2: 10}


@given(
    st.lists(st.lists(st.integers(0, 150), max_size=20), max_size=5),
    st.integers(1, 300),
    st.integers(1, 5),
)
def test_columns_have_turns_of_four_times_the_bytes(
    calls: list[list[int]], batch_bytes: int, partition_count: int
) -> None:
    available = range(partition_count)
    at_once = StickyPartitioner(batch_bytes, chance=InOrder())
    one_by_one = StickyPartitioner(4 * batch_bytes, chance=InOrder())
    for sizes in calls:
        if sum(sizes) > 4 * batch_bytes * partition_count:
            continue  # Their turns are longer.
        expected = [one_by_one.one(size, available) for size in sizes]
        assert at_once.many(np.array(sizes, np.int64), available).tolist() == expected


@given(st.integers(1, 12), st.integers(1, 2_000), st.integers())
def test_very_many_records_at_once_give_each_partition_one_long_run(
    count: int, each_bytes: int, seed: int
) -> None:
    rows = 20_000
    sticky = StickyPartitioner(400, chance=Random(seed))
    found = sticky.many(np.full(rows, each_bytes), range(count)).tolist()
    runs = [len(list(run)) for _, run in groupby(found)]
    assert len(runs) == count
    assert max(runs) - min(runs) <= count


def test_all_partitions_get_alike_in_bytes_and_each_many_at_a_time() -> None:
    sizes = np.array([Random(2).randrange(1, 2000) for _ in range(100_000)])
    sticky = StickyPartitioner(16_384, chance=Random(3))
    calls = [sticky.many(part, range(4)) for part in np.split(sizes, 1_000)]
    partitions = np.concatenate(calls)
    shares = np.bincount(partitions, sizes) / sizes.sum()
    assert shares == pytest.approx([0.25] * 4, abs=0.001)
    runs = [len(list(run)) for _, run in groupby(partitions.tolist())]
    assert sum(runs) / len(runs) > 10


def test_batches_have_bytes() -> None:
    with pytest.raises(ValueError, match="batches of 0 bytes"):
        StickyPartitioner(0)
