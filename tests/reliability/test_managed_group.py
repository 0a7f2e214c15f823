"""Queries that share a group (`managedGroup`), in drivers that are killed and come back.

Rows are read at least once, and the number of doubled rows is bounded. The new owner of a partition
begins at the committed offset. A query commits a micro-batch when it plans the next one. So the new
owner reads at most the rows of one micro-batch again: the last one of the former owner. It may have
been in flight, and then the former owner finishes it when its driver is back. Or it was finished
and not yet committed. If the commit itself fails (no coordinator for five seconds), it is one more.
"""

import random
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from itertools import permutations, product
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_kafka_source.testing import LocalKafka
from tests.reliability.conftest import Trial
from tests.spark_session import Start
from tools.reliability.child import SparkChild
from tools.reliability.group_driver import GroupOrders, Range, ranges_of
from tools.traffic import TIMEOUT_SECONDS, Batches, Events, stream, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]

MODULE = "tools.reliability.group_driver"
PARTITIONS = 4
ROWS_A_BATCH = 400
PATIENCE_SECONDS = 180
QUICK = {
    "managedGroup": "true",
    "kafka.session.timeout.ms": "6000",
    "kafka.heartbeat.interval.ms": "500",
    "kafka.metadata.max.age.ms": "2000",
}
# A query that is stopped leaves its group. No busy machine may put one out that has not left.
PATIENT = QUICK | {"kafka.session.timeout.ms": "300000"}
PROTOCOLS = pytest.mark.parametrize("protocol", ["classic", "consumer"])


class Drivers:
    """Drivers by name. Each has a directory that outlives it."""

    def __init__(self, options: dict[str, str], directory: Path, stack: ExitStack) -> None:
        self._options, self._directory, self._stack = options, directory, stack
        self._running: dict[str, SparkChild] = {}
        self.names: list[str] = []

    def start(self, name: str) -> None:
        """Start a driver. It goes on from its checkpoint, if it has one."""
        directory = self._directory / name
        directory.mkdir(exist_ok=True)
        child = self._stack.enter_context(closing(SparkChild(MODULE)))
        child.begin(GroupOrders(self._options, str(directory)).to_json())
        self._running[name] = child
        if name not in self.names:
            self.names.append(name)

    def kill(self, name: str) -> None:
        self._running.pop(name).close()

    def stop(self) -> list[int]:
        """Stop the drivers. Return their exit statuses."""
        return [self._running[name].end() for name in list(self._running)]

    def ranges(self, name: str) -> dict[int, list[Range]]:
        return ranges_of(self._directory / name)

    def rows(self, name: str) -> int:
        return sum(each.end - each.first for run in self.ranges(name).values() for each in run)

    def moved_on(self, name: str, before: dict[int, list[Range]]) -> bool:
        """Whether the query has read more of all partitions."""
        now = self.ranges(name)
        return all(
            end_of(now.get(each, [])) > end_of(before.get(each, [])) for each in range(PARTITIONS)
        )

    def read(self) -> dict[int, dict[str, list[Range]]]:
        """Return the ranges by partition and query."""
        found: dict[int, dict[str, list[Range]]] = {each: {} for each in range(PARTITIONS)}
        for name in self.names:
            for partition, ranges in self.ranges(name).items():
                found[partition][name] = ranges
        return found


Run = list[Range]
"""Ranges without a gap between them."""


def runs_of(ranges: list[Range]) -> list[Run]:
    runs: list[Run] = []
    for each in ranges:
        if runs and runs[-1][-1].end == each.first:
            runs[-1].append(each)
        else:
            runs.append([each])
    return runs


def doubled_at_once(had: Run, took: Run) -> int:
    """Return the number of an owner's micro-batches that the next owner read again."""
    first, end = took[0].first, min(had[-1].end, took[-1].end)
    if first < had[0].first:
        return 0  # It is the other way round.
    return len({each.batch_id for each in had if each.first < end and each.end > first})


class Judged:
    """The lost rows of all queries, the doubled rows, and the micro-batches doubled at once."""

    def __init__(self, read: dict[int, dict[str, list[Range]]], ends: dict[int, int]) -> None:
        self.rows = sum(ends.values())
        self.lost = self.doubled = self.most_batches = self.twice_by_one = 0
        for partition, end in ends.items():
            counts = [0] * end
            for ranges in read[partition].values():
                own = {offset for each in ranges for offset in range(each.first, each.end)}
                self.twice_by_one += sum(each.end - each.first for each in ranges) - len(own)
                for offset in own:
                    counts[offset] += offset < end
            self.lost += counts.count(0)
            self.doubled += sum(count - 1 for count in counts if count)
            for (had, has), (took, takes) in permutations(read[partition].items(), 2):
                pairs = product(runs_of(has), runs_of(takes)) if had != took else ()
                found = [doubled_at_once(*pair) for pair in pairs]
                self.most_batches = max(self.most_batches, *found, 0)


class Traffic:
    """A writer to all partitions while the test waits."""

    def __init__(self, events: Events, chance: random.Random) -> None:
        self._events, self._chance = events, chance
        events.create(PARTITIONS)
        self.ends = dict.fromkeys(range(PARTITIONS), 0)

    def until(self, what: str, done: Callable[[], bool]) -> None:
        """Write until the condition is true."""
        gives_up = time.monotonic() + PATIENCE_SECONDS
        while not done():
            assert time.monotonic() < gives_up, f"not within {PATIENCE_SECONDS} s: {what}"
            for partition in self.ends:
                rows = self._chance.randint(1, 20)
                self._events.write(range(rows), partition)
                self.ends[partition] += rows
            time.sleep(0.2)

    def during(self, seconds: float) -> None:
        """Write for this time."""
        until = time.monotonic() + seconds
        self.until("time", lambda: time.monotonic() > until)


def end_of(ranges: list[Range]) -> int:
    return ranges[-1].end if ranges else 0


@pytest.mark.reliability_full
@PROTOCOLS
def test_drivers_that_share_a_group_are_killed(
    kafka: LocalKafka, topic: str, tmp_path: Path, trial: Trial, protocol: str
) -> None:
    events = Events(kafka, topic)
    traffic = Traffic(events, trial.chance)
    options = events.options(maxOffsetsPerTrigger=ROWS_A_BATCH) | QUICK
    options |= {"kafka.group.id": topic, "kafka.group.protocol": protocol}
    kills = max(1, trial.rounds // 10)
    with ExitStack() as stack:
        drivers = Drivers({name: str(each) for name, each in options.items()}, tmp_path, stack)

        drivers.start("a")
        drivers.start("b")
        traffic.until("both read", lambda: drivers.rows("a") > 0 and drivers.rows("b") > 0)
        for turn in range(kills):
            killed, other = ("a", "b") if turn % 2 == 0 else ("b", "a")
            traffic.during(trial.chance.uniform(0, 3))
            drivers.kill(killed)
            before = drivers.ranges(other)
            traffic.until(
                f"{other} has all",
                lambda: drivers.moved_on(other, before),  # noqa: B023 - called now
            )
            drivers.start(killed)
            before = drivers.ranges(killed)
            traffic.until(
                f"{killed} reads again",
                lambda: drivers.ranges(killed) != before,  # noqa: B023 - called now
            )
        drivers.start("c")
        traffic.until("the third reads", lambda: drivers.rows("c") > 0)
        wait_until(
            lambda: Judged(drivers.read(), traffic.ends).lost == 0, timeout_seconds=PATIENCE_SECONDS
        )
        statuses = drivers.stop()
        judged = Judged(drivers.read(), traffic.ends)
        trial.report(
            "managed group",
            f"{protocol}: {kills} of 3 drivers killed and back, {judged.rows} rows",
            f"rows lost: {judged.lost}; doubled: {judged.doubled}, at once of at most "
            f"{judged.most_batches} micro-batches; twice by one query: {judged.twice_by_one}",
        )
    assert statuses == [0, 0, 0]
    assert (judged.lost, judged.twice_by_one) == (0, 0)
    assert judged.most_batches <= 2


@PROTOCOLS
def test_two_queries_of_one_session_share_a_group(
    spark: SparkSession, events: Events, start: Start, trial: Trial, protocol: str
) -> None:
    """One query is stopped, and the other one goes on with all partitions.

    No row is lost. At most the rows in flight are doubled.
    """
    events.create(PARTITIONS)
    written: set[str] = set()
    sinks = {"a": Batches(), "b": Batches()}

    def write(what: str) -> None:
        for partition in range(PARTITIONS):
            rows = [f"{what}:{partition}:{each}" for each in range(10)]
            events.write(rows, partition)
            written.update(rows)

    def read() -> set[str]:
        return {value for sink in sinks.values() for value in sink.values}

    options = events.options() | PATIENT
    options |= {"kafka.group.id": events.name, "kafka.group.protocol": protocol}
    queries = {
        name: start(stream(spark, options).writeStream.foreachBatch(sink), name)
        for name, sink in sinks.items()
    }
    write("first")
    for turn in range(TIMEOUT_SECONDS):
        wait_until(lambda: read() == written, queries["a"])
        if all(sink.values for sink in sinks.values()):
            break
        write(f"more {turn}")  # Until the other has joined, and has something of what is new.
    assert all(sink.values for sink in sinks.values())
    queries["a"].stop()
    write("last")
    wait_until(lambda: read() == written, queries["b"])
    rows = [value for sink in sinks.values() for value in sink.values]
    trial.report(
        "managed group",
        f"{protocol}: two queries of a session, of which one is stopped, {len(written)} rows",
        f"rows lost: {len(written - set(rows))}; doubled: {len(rows) - len(set(rows))}",
    )
    assert len(rows) - len(written) <= 10 * PARTITIONS  # What was in flight, at most.


@PROTOCOLS
def test_two_runs_at_once_read_what_is_available_between_them(
    spark: SparkSession, events: Events, start: Start, trial: Trial, protocol: str
) -> None:
    """Each row is read once, though partitions move after a run has read its own part."""
    events.fill(*[100] * PARTITIONS)
    options = events.options(maxOffsetsPerTrigger=60) | PATIENT
    options |= {"kafka.group.id": events.name, "kafka.group.protocol": protocol}
    sinks = {"a": Batches(), "b": Batches()}
    queries = [
        start(
            stream(spark, options).writeStream.foreachBatch(sink).trigger(availableNow=True), name
        )
        for name, sink in sinks.items()
    ]
    for query in queries:
        assert query.awaitTermination(TIMEOUT_SECONDS)
    rows = [value for sink in sinks.values() for value in sink.values]
    trial.report(
        "managed group",
        f"{protocol}: two runs of AvailableNow at once, {len(rows)} rows",
        f"by each: {[len(sink.values) for sink in sinks.values()]}",
    )
    assert sorted(rows) == sorted(f"{each}:{at}" for each in range(PARTITIONS) for at in range(100))
