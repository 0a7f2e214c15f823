"""Limits of a micro-batch: the most and the least offsets, and the number of tasks."""

from collections import Counter
from collections.abc import Iterable

import pytest
from pyspark.sql import DataFrame

from tests.parity.refusals import refused
from tests.parity.scenario import Follow, Source, Stream, process_all_available
from tests.spark_session import Start
from tools.traffic import TIMEOUT_SECONDS, Batches, Events, Writer, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.peer]
FULL = pytest.mark.parity_full


def sizes(stream: Stream) -> list[int]:
    """Return the number of rows of each micro-batch."""
    return [len(values) for values in stream.batches]


def shares(stream: Stream) -> list[dict[str, int]]:
    """Return the rows per partition of each micro-batch. The topic was filled by `fill`."""
    return [Counter(value.partition(":")[0] for value in values) for values in stream.batches]


def write_at_once(events: Events, values: Iterable[object], partition: int = 0) -> None:
    """Write values in one record batch. A running stream has all or none in a micro-batch."""
    # The end of the block sends what waits. Until then the producer sends no part of it.
    with Writer(events.kafka.bootstrap_servers, linger_ms=60_000) as writer:
        for value in values:
            writer.queue(events.name, str(value).encode(), partition=partition)


def test_the_most_are_shared_out_in_proportion_also_after_a_restart(
    source: Source, events: Events, follow: Follow
) -> None:
    events.fill(101, 11, 1)
    stream = follow(source.stream(events.options(maxOffsetsPerTrigger=10)))
    wait_until(lambda: len(stream.batches) > 1, stream.query)
    stream.stop()
    query = stream.start()
    wait_until(lambda: len(stream.batches) > 3, query)
    assert shares(stream)[:4] == [{"0": 8, "1": 1, "2": 1}, *[{"0": 9, "1": 1}] * 3]


def test_the_greatest_limit_does_not_overflow(
    source: Source, events: Events, follow: Follow
) -> None:
    events.fill(5)
    found = events.options(startingOffsets=events.offsets(5), maxOffsetsPerTrigger=2**63 - 1)
    stream = follow(source.stream(found))
    assert stream.read() == []
    events.write(range(30, 35))
    assert stream.numbers() == [30, 31, 32, 33, 34]


@pytest.mark.parametrize("most", [pytest.param(None, marks=FULL), 20])
def test_the_least_are_waited_for(
    source: Source, events: Events, follow: Follow, most: int | None
) -> None:
    events.fill(21, 11, 1)
    found = events.options(
        minOffsetsPerTrigger=15, maxTriggerDelay="100s", maxOffsetsPerTrigger=most
    )
    stream = follow(source.stream(found))
    first = len(stream.read())
    assert first == (33 if most is None else 19)
    waiting = 33 - first
    events.write(range(14 - waiting))
    assert len(stream.read()) == first
    write_at_once(events, range(19), 1)
    stream.read()
    assert sizes(stream) == ([33, 33] if most is None else [19, 19])


@pytest.mark.parametrize("most", [None, pytest.param(20, marks=FULL)])
def test_the_least_are_not_waited_for_longer_than_a_delay(
    source: Source, events: Events, follow: Follow, most: int | None
) -> None:
    events.fill(10)
    found = events.options(minOffsetsPerTrigger=10, maxTriggerDelay="1s", maxOffsetsPerTrigger=most)
    stream = follow(source.stream(found))
    assert len(stream.read()) == 10
    write_at_once(events, range(9))
    wait_until(lambda: len(stream.sink.values) == 19, stream.query)
    assert sizes(stream) == [10, 9]


@pytest.mark.parametrize(
    "limit",
    [
        pytest.param({"maxOffsetsPerTrigger": 5}, id="most", marks=FULL),
        pytest.param({"minOffsetsPerTrigger": 16}, id="least", marks=FULL),
        pytest.param({"minOffsetsPerTrigger": 3, "maxOffsetsPerTrigger": 5}, id="both"),
    ],
)
def test_trigger_once_ignores_limits(
    source: Source, events: Events, follow: Follow, limit: dict[str, int]
) -> None:
    events.fill(15)
    stream = follow(source.stream(events.options() | limit), once=True)
    assert stream.query.awaitTermination(TIMEOUT_SECONDS)
    events.write(range(11))
    assert stream.start().awaitTermination(TIMEOUT_SECONDS)
    assert sizes(stream) == [15, 11]


def test_two_limited_sources_of_which_one_falls_idle(
    source: Source, events: Events, follow: Follow
) -> None:
    other = events.another("other")
    events.create()
    events.write(range(10))
    other.create()
    other.write(range(100, 120))
    limited = [source.stream(each.options(maxOffsetsPerTrigger=5)) for each in (events, other)]
    stream = follow(limited[0].union(limited[1]))
    wait_until(lambda: len(stream.batches) > 2, stream.query)
    stream.stop()
    stream.start()
    stream.read()
    batches = [sorted(map(int, values)) for values in stream.batches]
    both = [[*range(at, at + 5), *range(100 + at, 105 + at)] for at in (0, 5)]
    assert batches == [*both, *[list(range(at, at + 5)) for at in (110, 115)]]


class Split:
    """A sink that also keeps the number of tasks of each micro-batch."""

    def __init__(self) -> None:
        self.sink, self.tasks = Batches(), list[int]()

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        self.tasks.append(frame.rdd.getNumPartitions())
        self.sink(frame, batch_id)


def test_a_micro_batch_is_split_into_min_partitions(
    source: Source, events: Events, start: Start
) -> None:
    events.fill(10, 10, 1)
    split = Split()
    frame = source.stream(events.options(minPartitions=6))
    process_all_available(start(frame.writeStream.foreachBatch(split)))
    assert len(split.sink.values) == 21
    (tasks,) = split.tasks
    assert tasks >= 6


@pytest.mark.parametrize(("least", "expected"), [(None, 1), (1, 1), (4, 4)])
def test_one_partition_is_split_into_min_partitions(
    source: Source, events: Events, least: int | None, expected: int
) -> None:
    events.fill(100)
    frame = source.batch(events.options(minPartitions=least))
    assert frame.rdd.getNumPartitions() == expected
    assert frame.count() == 100


@pytest.mark.parametrize("least", ["a", "1.0", "0", "-1"])
def test_min_partitions_that_are_no_number(source: Source, events: Events, least: str) -> None:
    events.fill(1)
    found = events.options(minPartitions=least)
    text = refused(lambda: source.batch(found).count())
    if source.is_ours:
        assert "Option 'minPartitions'" in text
