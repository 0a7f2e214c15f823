"""Ranges to read, and their limits. No offset is dropped, and no partition starves."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.fetch import OffsetRange
from spark_kafka_source.spark.source.offset_arithmetic import (
    LogEnds,
    limit_offsets,
    moved,
    offset_ranges,
)
from spark_kafka_source.spark.source.offsets import Offsets
from spark_kafka_source.topic_partition import TopicPartition
from tests.spark.settings import A0, A1, A2, A10, B0

INT64_MAX = 2**63 - 1


@st.composite
def starts_and_ends(draw: st.DrawFn) -> tuple[Offsets, Offsets]:
    """Draw starts and ends of some partitions. No partition ends before it starts."""
    names = draw(st.lists(st.builds(TopicPartition, st.sampled_from("ab"), st.integers(0, 20))))
    sizes = st.integers(0, 50) | st.integers(0, INT64_MAX // 2)
    starts = {each: draw(sizes) for each in names}
    return starts, {each: start + draw(sizes) for each, start in starts.items()}


def test_ranges_in_order_without_the_empty() -> None:
    starts = {A10: 0, A2: 5, A0: 3, B0: 1, A1: 9}
    ends = {A10: 4, A2: 5, A0: 8, B0: 2, A1: 2}
    assert offset_ranges(starts, LogEnds(ends)) == [
        OffsetRange(A0, 3, 8),
        OffsetRange(A10, 0, 4),
        OffsetRange(B0, 1, 2),
    ]


def test_ranges_are_of_the_topics_that_were_planned() -> None:
    ends = LogEnds({A0: 1, B0: 1}, {A0: 4}, {"a": UUID(int=7)})
    assert offset_ranges({A0: 0, B0: 0}, ends) == [
        OffsetRange(A0, 0, 1, UUID(int=7), leader_epoch=4),
        OffsetRange(B0, 0, 1),
    ]


def test_offsets_that_are_not_wanted_are_in_no_range() -> None:
    starts, ends = {A0: 0, A1: 7, A2: 0, B0: 9}, LogEnds({A0: 20, A1: 9, A2: 5, B0: 12})
    assert offset_ranges(starts, ends, range(5, 10)) == [
        OffsetRange(A0, 5, 10),
        OffsetRange(A1, 7, 9),
        OffsetRange(B0, 9, 10),
    ]


@given(starts_and_ends())
def test_ranges_never_drop_an_offset(bounds: tuple[Offsets, Offsets]) -> None:
    starts, ends = bounds
    found = {
        each.topic_partition: (each.start, each.end)
        for each in offset_ranges(starts, LogEnds(ends))
    }
    assert found == {each: (starts[each], ends[each]) for each in ends if ends[each] > starts[each]}


def test_a_limit_is_shared_out_by_what_waits() -> None:
    latest = {A0: 101, A1: 11, A2: 1}
    first = limit_offsets({A0: 0, A1: 0, A2: 0}, latest, 10)
    assert first == {A0: 8, A1: 1, A2: 1}
    second = limit_offsets(first, latest, 10)
    assert {each: second[each] - first[each] for each in latest} == {A0: 9, A1: 1, A2: 0}


def test_what_fits_into_the_limit_is_read_whole() -> None:
    latest = {A0: 7, A1: 3}
    assert limit_offsets({A0: 0, A1: 0}, latest, 10) == latest
    assert limit_offsets(latest, latest, 1) == latest


def test_the_largest_limit_does_not_overflow() -> None:
    latest = {A0: INT64_MAX, A1: INT64_MAX}
    assert limit_offsets({A0: 0, A1: INT64_MAX - 5}, latest, INT64_MAX) == {
        A0: INT64_MAX * INT64_MAX // (INT64_MAX + 5),
        A1: INT64_MAX - 1,
    }


@given(starts_and_ends(), st.integers(1, 100) | st.integers(1, INT64_MAX))
def test_a_limit_is_fair(bounds: tuple[Offsets, Offsets], limit: int) -> None:
    starts, latest = bounds
    ends = limit_offsets(starts, latest, limit)
    waiting = [each for each in latest if latest[each] > starts[each]]
    assert ends.keys() == latest.keys()
    for each in latest:
        assert starts[each] <= ends[each] <= latest[each]
    for each in waiting:
        assert ends[each] > starts[each]
    assert sum(ends.values()) - sum(starts.values()) <= limit + len(waiting)
    if sum(latest.values()) - sum(starts.values()) <= limit:
        assert ends == latest


@given(starts_and_ends(), st.integers(1, 100))
def test_batch_after_batch_reaches_the_end(bounds: tuple[Offsets, Offsets], share: int) -> None:
    """Each batch is as large as the limit, except for the rounding of each partition's share."""
    position, latest = bounds
    limit = (sum(latest.values()) - sum(position.values())) // share + 1
    while position != latest:
        before = position
        position = limit_offsets(before, latest, limit)
        waiting = [latest[each] - before[each] for each in latest if latest[each] > before[each]]
        taken = sum(position.values()) - sum(before.values())
        assert taken >= min(sum(waiting), max(limit - len(waiting) + 1, len(waiting)))


def test_what_moved() -> None:
    assert moved({A0: 1, A1: 2, B0: 9}, {A0: 1, A1: 3, A2: 0}) == {A1: 3, A2: 0}
    assert moved({}, {A0: 0}) == {A0: 0}
