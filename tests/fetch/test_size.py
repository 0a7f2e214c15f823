"""The size of fetches: it depends on the size of answers and on waits for them."""

from dataclasses import replace

import pytest

from spark_kafka_source.fetch import FetchConfig
from spark_kafka_source.fetch.positions import Position
from spark_kafka_source.fetch.size import FetchSize
from spark_kafka_source.topic_partition import TopicPartition

CONFIG = FetchConfig(max_partition_fetch_bytes=1 << 20, fetch_max_bytes=50 << 20)
AT_ONCE, LATE = 0.0, 1.0
MIB = 1 << 20


def ranges(*sizes: int) -> list[Position]:
    found = [Position(TopicPartition("t", number)) for number in range(len(sizes))]
    for position, size in zip(found, sizes, strict=True):
        position.begin(0, size, -1, None)
    return found


@pytest.mark.parametrize(
    ("waits", "expected"),
    [
        ([AT_ONCE], 2),
        ([AT_ONCE] * 5, 2),
        ([LATE, LATE], 4),
        ([LATE] * 9, 8),
        ([LATE] * 3 + [AT_ONCE], 4),
        ([LATE] * 3 + [AT_ONCE] * 5, 2),
        ([LATE] * 3 + [AT_ONCE, LATE], 8),
    ],
)
def test_answers_grow_while_they_are_waited_for(waits: list[float], expected: int) -> None:
    size = FetchSize(CONFIG)
    for waited_seconds in waits:
        size.answered(size.answer_bytes, waited_seconds)
    assert size.answer_bytes == expected * MIB


@pytest.mark.parametrize("waited_seconds", [AT_ONCE, LATE])
def test_answers_that_are_not_full_are_large_enough(waited_seconds: float) -> None:
    size = FetchSize(CONFIG)
    size.answered(MIB // 2 - 1, waited_seconds)
    assert size.answer_bytes == MIB


def test_of_a_range_not_much_more_is_asked_for_than_it_may_have() -> None:
    size = FetchSize(CONFIG)
    small, large, other = ranges(1_000, 10**9, 10)
    assert size.of_partition(small) == MIB, "nothing is known yet"
    size.brought(large, 200_000, 1_000)
    assert size.of_partition(small) == 400_000
    assert size.of_partition(large) == MIB
    assert size.of_partition(other) == 64 << 10
    other.batch_bytes = 3 * MIB
    assert size.of_partition(other) == 3 * MIB
    assert size.of_answer([small, other], 50 * MIB) == 3 * MIB
    assert size.of_answer([small], 1_000) == 1_000


def test_ranges_are_asked_for_as_long_as_they_may_fit() -> None:
    size = FetchSize(CONFIG)
    many = ranges(*[10_000] * 100)
    assert list(size.first_of(many)) == many[:64]
    size.brought(many[0], 1_000_000, 10_000)
    assert list(size.first_of(many)) == many[:3]
    assert list(size.first_of(ranges(10**9, 5))) == ranges(10**9, 5)[:1]


def test_a_limit_of_each_partition_leaves_room_for_others() -> None:
    size = FetchSize(replace(CONFIG, limits_partitions=True))
    for _ in range(3):
        size.answered(size.answer_bytes, LATE)
    many = ranges(*[10_000_000] * 100)
    size.brought(many[0], 1_000_000, 10_000)
    assert size.of_partition(many[0]) == MIB
    assert size.answer_bytes == size.of_answer(many, 50 * MIB) == 8 * MIB
    assert len(list(size.first_of(many))) == 16
    many[0].batch_bytes = 3 * MIB
    assert size.of_partition(many[0]) == 3 * MIB, "a batch comes whole"


def test_partitions_without_an_end_are_all_asked_for() -> None:
    size = FetchSize(CONFIG)
    many = [Position(TopicPartition("t", number)) for number in range(100)]
    assert list(size.first_of(many)) == many
    assert size.of_partition(many[0]) == MIB
    assert size.of_answer(many, 50 * MIB) == 50 * MIB
