"""Each offset is in exactly one micro-batch, and a replay has the same offsets.

The model of Spark is its offset log, its commit log, and a sink that keeps rows by batch.
"""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.fetch import OffsetRange
from spark_kafka_source.spark.source import idle_pace
from spark_kafka_source.spark.source.admission import ReadLimit, ReadMaxRows
from spark_kafka_source.spark.source.bounds import Given
from spark_kafka_source.spark.source.offsets import Offsets
from spark_kafka_source.spark.source.options import SourceOptions
from spark_kafka_source.topic_partition import TopicPartition
from tests.spark.settings import A0, A1, parsed
from tests.spark.source.engine import (
    READ_ALL,
    Json,
    Log,
    initial,
    latest,
    ranges,
    reader_of,
    tell,
)

pytestmark = pytest.mark.memory(nodes=2)

OPTIONS = st.sampled_from(
    [
        parsed(startingOffsets="earliest"),
        parsed(startingOffsets="latest", kafka_group_id="g"),
        parsed(startingOffsets='{"a":{"0":2,"1":-1}}'),
        parsed(startingOffsets="earliest", maxOffsetsPerTrigger="4"),
    ]
)
EVENTS = st.lists(
    st.tuples(st.just("write"), st.integers(0, 2), st.integers(1, 30))
    | st.tuples(st.just("run"), st.sampled_from([1, 3, 10, None]))
    | st.tuples(st.sampled_from(["plan", "run, crash", "grow", "restart", "restart and pin"])),
    max_size=25,
)


class Spark:
    """Runner of one query's micro-batches over a log. A crash loses only the reader."""

    def __init__(self, options: SourceOptions, log: Log) -> None:
        self._options, self._log = options, log
        self._reader = reader_of(options, log)
        self._offset_log: list[Json] = []
        self._finished = 0
        self.sink: dict[int, list[OffsetRange]] = {}

    def restart(self, *, pin: bool) -> None:
        self._reader = reader_of(self._options, self._log)
        self._begin(pin=pin)

    def plan(self, limit: ReadLimit = READ_ALL) -> bool:
        """Plan a micro-batch. Return whether there is one to run."""
        if self._finished < len(self._offset_log):
            return True
        end = self._next_end(limit)
        if end == self._start():
            return False
        self._offset_log.append(end)
        return True

    def run(self, *, crash: bool = False) -> None:
        batch = ranges(self._reader, self._start(), self._offset_log[self._finished])
        assert self.sink.setdefault(self._finished, batch) == batch
        if crash:
            self.restart(pin=False)
        else:
            self._finished += 1

    def _begin(self, *, pin: bool) -> None:
        if pin:
            self._reader.prepareForTriggerAvailableNow()

    def _next_end(self, limit: ReadLimit) -> Json:
        return latest(self._reader, self._start(), limit)

    def _start(self) -> Json:
        return self._offset_log[self._finished - 1] if self._finished else initial(self._reader)


class EarlierSpark(Spark):
    """Spark 4.0 or 4.1: it tells the last planned end at a restart, and gives no start or limit.

    A run with Trigger.AvailableNow looks like any other to the reader.
    """

    def _begin(self, *, pin: bool) -> None:
        if self._offset_log:
            tell(self._reader, self._offset_log[-1])

    def _next_end(self, limit: ReadLimit) -> Json:
        return latest(self._reader)


def happen(event: tuple[str | int | None, ...], log: Log, spark: Spark) -> None:
    match event:
        case ["write", int(partition), int(count)]:
            where = TopicPartition("a", partition)
            if where in log.end:
                log.end[where] += count
        case ["grow"]:
            added = TopicPartition("a", len(log.end))
            log.end[added], log.first[added] = 0, 0
        case ["plan"]:
            spark.plan()
        case ["run", limit]:
            if spark.plan(ReadMaxRows(limit) if isinstance(limit, int) else READ_ALL):
                spark.run()
        case ["run, crash"]:
            if spark.plan():
                spark.run(crash=True)
        case ["restart"] | ["restart and pin"]:
            spark.restart(pin="pin" in str(event))


def starts_of(options: SourceOptions, log: Log, first_end: Offsets) -> Offsets:
    if options.group_id:
        return first_end
    explicit = options.starting is not None and isinstance(options.starting.bound, Given)
    return {A0: 2, A1: first_end[A1]} if explicit else dict.fromkeys(log.end, 0)


@given(st.sampled_from([Spark, EarlierSpark]), OPTIONS, EVENTS)
def test_each_offset_is_in_exactly_one_batch(
    version: type[Spark], options: SourceOptions, events: list[tuple[str | int | None, ...]]
) -> None:
    log = Log({A0: 5, A1: 3})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "sleep", lambda _: None)
        patch.setattr(idle_pace, "LEAST_PAUSE_SECONDS", 0.0)
        spark = version(options, log)
        spark.plan()
        first_end = dict(log.end)
        for event in events:
            happen(event, log, spark)
        spark.restart(pin=False)
        while spark.plan(ReadMaxRows(7)):
            spark.run()
    position = dict(starts_of(options, log, first_end))
    for _, batch in sorted(spark.sink.items()):
        for read in batch:
            assert read.start == position.get(read.topic_partition, 0)
            position[read.topic_partition] = read.end
    assert {each: position.get(each, 0) for each in log.end} == log.end
