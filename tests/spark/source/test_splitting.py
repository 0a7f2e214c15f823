"""Splitting drops and doubles no offset, and gives about the wanted number of ranges."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.fetch import OffsetRange
from spark_kafka_source.spark.source.offset_arithmetic import gather_ranges, split_ranges
from spark_kafka_source.topic_partition import TopicPartition


def ranges(*sizes: int) -> list[OffsetRange]:
    return [OffsetRange(TopicPartition("t", at), 10, 10 + size) for at, size in enumerate(sizes)]


def bounds(found: list[OffsetRange]) -> list[tuple[int, int, int]]:
    return [(each.topic_partition.partition, each.start, each.end) for each in found]


many = st.lists(st.integers(0, 2**40), max_size=8).map(lambda sizes: ranges(*sizes))


@given(many, st.none() | st.integers(1, 50), st.none() | st.integers(2**34, 2**41))
def test_every_offset_is_in_exactly_one_range(
    found: list[OffsetRange], min_partitions: int | None, max_records: int | None
) -> None:
    parts = split_ranges(
        found, min_partitions=min_partitions, max_records_per_partition=max_records
    )

    assert all(part.start < part.end for part in parts)
    for whole in found:
        mine = [part for part in parts if part.topic_partition == whole.topic_partition]
        ends = [whole.start, *(part.end for part in mine)]
        assert [part.start for part in mine] == ends[:-1]
        assert ends[-1] == whole.end
    assert max_records is None or all(part.end - part.start <= max_records for part in parts)


@pytest.mark.parametrize(
    ("sizes", "min_partitions", "expected"),
    [
        ((10, 20), None, [(0, 10, 20), (1, 10, 30)]),
        ((10, 0), 1, [(0, 10, 20)]),
        ((10, 10), 2, [(0, 10, 20), (1, 10, 20)]),
        ((8,), 4, [(0, 10, 12), (0, 12, 14), (0, 14, 16), (0, 16, 18)]),
        ((5,), 3, [(0, 10, 11), (0, 11, 13), (0, 13, 15)]),
        ((1, 100), 3, [(0, 10, 11), (1, 10, 60), (1, 60, 110)]),
        ((2,), 5, [(0, 10, 11), (0, 11, 12)]),
    ],
)
def test_min_partitions(
    sizes: tuple[int, ...], min_partitions: int | None, expected: list[tuple[int, int, int]]
) -> None:
    assert bounds(split_ranges(ranges(*sizes), min_partitions=min_partitions)) == expected


def test_a_range_is_never_cut_finer_than_its_offsets() -> None:
    found = split_ranges(ranges(2, 1), min_partitions=2**62)

    assert bounds(found) == [(0, 10, 11), (0, 11, 12), (1, 10, 11)]


def test_each_part_is_of_the_topic_that_was_planned() -> None:
    topic_id = UUID(int=7)
    whole = OffsetRange(TopicPartition("t", 0), 0, 100, topic_id)
    parts = split_ranges([whole], max_records_per_partition=30, min_partitions=9)

    assert len(parts) > 4
    assert {part.topic_id for part in parts} == {topic_id}


def test_records_are_limited_first_and_then_shared_out() -> None:
    found = split_ranges(ranges(4, 12), max_records_per_partition=6, min_partitions=4)

    assert bounds(found) == [(0, 10, 14), (1, 10, 13), (1, 13, 16), (1, 16, 19), (1, 19, 22)]


def test_small_ranges_do_not_take_from_large_ones() -> None:
    found = split_ranges(ranges(1, 1, 1, 1000), min_partitions=10)

    assert len(found) == 10
    assert len([each for each in found if each.topic_partition.partition == 3]) == 7


# -- joining small ranges --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "min_records", "min_partitions", "expected"),
    [
        ((), 5, None, []),
        ((2, 3, 9, 1), 5, None, [2, 1, 1]),
        ((1,) * 10, 100, None, [10]),
        ((1,) * 10, 1, None, [1] * 10),
        ((1,) * 10, 100, 3, [3, 3, 3, 1]),
        ((2, 3, 9, 1), 5, 4, [1, 1, 1, 1]),
        ((1, 1), 5, 9, [1, 1]),
    ],
)
def test_small_ranges_are_gathered(
    sizes: tuple[int, ...], min_records: int, min_partitions: int | None, expected: list[int]
) -> None:
    found = gather_ranges(ranges(*sizes), min_records, min_partitions)
    assert [len(group) for group in found] == expected


@given(many, st.integers(1, 2**41), st.none() | st.integers(1, 10))
def test_gathering_keeps_every_range_and_their_order(
    found: list[OffsetRange], min_records: int, min_partitions: int | None
) -> None:
    groups = gather_ranges(found, min_records, min_partitions)
    assert [each for group in groups for each in group] == found
    assert all(groups)
    assert len(groups) >= min(min_partitions or 0, len(found))
    if min_partitions is None:
        assert all(sum(each.size for each in group) >= min_records for group in groups[:-1])
