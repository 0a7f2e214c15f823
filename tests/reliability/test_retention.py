"""Retention that overtakes a read: an error or a skip, never a wrong or doubled row.

A segment holds one row, by `internal.segment.bytes`, since `segment.bytes` is at least 1 MiB in
Kafka 4; the broker deletes segments ten times a second, and DeleteRecords comes at random.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from random import Random
from threading import Event, Thread

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Partition
from pyspark.sql import DataFrame, SparkSession

from spark_kafka_source.errors import BrokerError
from spark_kafka_source.testing import LocalKafka
from tests.parity.refusals import refused
from tests.parity.scenario import process_all_available
from tests.reliability.conftest import Trial
from tests.spark_session import Start
from tools.traffic import TIMEOUT_SECONDS, Events, Writer, stream, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]

PARTITIONS = 3
KEPT_BYTES = 80 * 40
BURST = 4 * 40 * PARTITIONS
EAGER = {
    "log.retention.check.interval.ms": "100",
    "log.initial.task.delay.ms": "100",
    "log.segment.delete.delay.ms": "0",
}
SMALL = {
    "internal_segment_bytes": "100",
    "segment_index_bytes": "1000",
    "file_delete_delay_ms": "0",
    "retention_bytes": str(KEPT_BYTES),
}
LIMIT = {"maxOffsetsPerTrigger": 60, "kafka.max.partition.fetch.bytes": 200}

Found = dict[int, list[int]]
"""The offsets read of each partition, in the order they came."""


@pytest.fixture(scope="module")
def eager_kafka() -> Iterator[LocalKafka]:
    """A broker that deletes soon."""
    with LocalKafka(properties=EAGER) as kafka:
        yield kafka


@pytest.fixture
def aging(eager_kafka: LocalKafka, topic: str) -> Events:
    """A topic that keeps about the last forty rows of each partition."""
    events = Events(eager_kafka, topic)
    events.create(PARTITIONS, **SMALL)
    return events


class Sink:
    """A sink that keeps the offsets read. It counts rows that do not match their offsets."""

    def __init__(self) -> None:
        self.found: Found = {partition: [] for partition in range(PARTITIONS)}
        self.wrong = 0

    def __call__(self, frame: DataFrame, _: int) -> None:
        rows = frame.select("partition", "offset", "value").collect()
        for partition, offset, value in sorted(map(tuple, rows)):
            self.wrong += bytes(value) != b"%d:%d" % (partition, offset)
            self.found[partition].append(offset)

    @property
    def rows(self) -> int:
        """Return the number of rows read."""
        return sum(map(len, self.found.values()))

    @property
    def doubled(self) -> int:
        """Return the number of rows read more than once."""
        return sum(len(offsets) - len(set(offsets)) for offsets in self.found.values())

    @property
    def gaps(self) -> int:
        """Return the number of gaps between the rows read."""
        return sum(
            after > offset + 1
            for offsets in self.found.values()
            for offset, after in pairwise(list(offsets))
        )


class Traffic:
    """A writer of rows that name their own places. It also deletes records at random."""

    def __init__(self, events: Events, chance: Random) -> None:
        self._events, self._chance = events, chance
        self._writer = Writer(
            events.kafka.bootstrap_servers, batch_num_messages=1, enable_idempotence=True
        )
        self._stopped = Event()
        self.ends = [0] * PARTITIONS

    def run(self) -> None:
        self._stopped.clear()
        while not self._stopped.is_set():
            self.step()

    def burst(self) -> None:
        """Write a few times more rows than retention keeps."""
        before = sum(self.ends)
        while sum(self.ends) < before + BURST:
            self.step()

    def step(self) -> None:
        self.write()
        if self._chance.random() < 0.1:
            self.delete()

    def stop(self) -> None:
        self._stopped.set()

    def write(self) -> None:
        """Write up to twenty rows to a partition."""
        partition, count = self._chance.randrange(PARTITIONS), self._chance.randint(1, 20)
        first, self.ends[partition] = self.ends[partition], self.ends[partition] + count
        values = [f"{partition}:{first + at}" for at in range(count)]
        self._writer.write(self._events.name, values, partition=partition)

    def delete(self) -> None:
        """Delete a partition's records up to a few before its end."""
        partition = self._chance.randrange(PARTITIONS)
        before = max(0, self.ends[partition] - self._chance.randint(0, 30))
        # Retention may have gone further already.
        with suppress(BrokerError):
            self._events.trim({partition: before})


@contextmanager
def running(traffic: Traffic) -> Iterator[None]:
    """Run the traffic in its own thread. The thread ends with the context."""
    thread = Thread(target=traffic.run)
    thread.start()
    try:
        yield
    finally:
        traffic.stop()
        thread.join(TIMEOUT_SECONDS)
        assert not thread.is_alive()


def test_rows_overtaken_are_passed_over(
    spark: SparkSession, aging: Events, start: Start, trial: Trial
) -> None:
    sink, traffic = Sink(), Traffic(aging, trial.chance)
    frame = stream(spark, aging.options(failOnDataLoss=False, **LIMIT))
    query = start(frame.writeStream.foreachBatch(sink))
    for _ in range(trial.rounds):
        # A limited stream that is far behind reads one range after another that is gone, and
        # comes to no row while more are written: so it is let catch up.
        traffic.burst()
        process_all_available(query)
    keep_the_rest(aging)
    traffic.burst()
    process_all_available(query)
    query.stop()
    left = earliest(aging)
    missed = sum(
        len(set(range(left[each], traffic.ends[each])) - set(sink.found[each])) for each in left
    )
    trial.report(
        "6",
        f"a stream of {sink.rows} rows of {sum(traffic.ends)} overtaken {sink.gaps} times, with "
        "failOnDataLoss=false",
        f"wrong rows: {sink.wrong}; doubled: {sink.doubled}; missed of those that are there: "
        f"{missed}",
    )
    assert sink.gaps >= trial.rounds
    assert (sink.wrong, sink.doubled, missed) == (0, 0, 0)


@pytest.mark.reliability_full  # another like it runs every day
def test_rows_overtaken_end_the_query(
    spark: SparkSession, aging: Events, start: Start, trial: Trial
) -> None:
    frame = stream(spark, aging.options(**LIMIT))
    sinks, named = [], 0
    traffic = Traffic(aging, trial.chance)
    for turn in range(trial.rounds):
        traffic.burst()
        sinks.append(Sink())
        query = start(frame.writeStream.foreachBatch(sinks[-1]), f"checkpoint-{turn}")
        wait_until(lambda: sinks[-1].rows or not query.isActive)  # noqa: B023 - called now
        with running(traffic):
            text = refused(lambda: query.awaitTermination(TIMEOUT_SECONDS))  # noqa: B023 - called now
            named += "[KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE]" in text
    wrong, doubled = sum(each.wrong for each in sinks), sum(each.doubled for each in sinks)
    skipped = sum(each.gaps for each in sinks)
    rows = sum(each.rows for each in sinks)
    trial.report(
        "6",
        f"{trial.rounds} streams overtaken, after {rows} rows in all, with failOnDataLoss=true",
        f"ended by the named error: {named}; skipped before it: {skipped}; wrong rows: {wrong}; "
        f"doubled: {doubled}",
    )
    assert (named, skipped, wrong, doubled) == (trial.rounds, 0, 0, 0)


def keep_the_rest(events: Events) -> None:
    """Make retention delete nothing from now on."""
    change = ("--alter", "--entity-type", "topics", "--entity-name", events.name)
    events.kafka.tool("configs", *change, "--add-config", "retention.bytes=-1")


def earliest(events: Events) -> dict[int, int]:
    """Return the first offset left in each partition, as confluent-kafka sees it."""
    consumer = Consumer({"bootstrap.servers": events.kafka.bootstrap_servers, "group.id": "-"})
    try:
        return {
            each: consumer.get_watermark_offsets(Partition(events.name, each), TIMEOUT_SECONDS)[0]
            for each in range(PARTITIONS)
        }
    finally:
        consumer.close()
