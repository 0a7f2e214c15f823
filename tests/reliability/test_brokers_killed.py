"""Brokers go away under a query. The query goes on, and no row is lost or doubled."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from threading import Event, Thread

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_kafka_source.testing import LocalKafka
from tests.parity.scenario import OURS, PEER
from tests.reliability.conftest import Trial
from tests.reliability.readers import rows_of
from tests.spark_session import Start
from tools.reliability.leaders import Leaders
from tools.traffic import TIMEOUT_SECONDS, Batches, Events, Writer, batch, stream, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.peer, pytest.mark.long]

PARTITIONS = 3
BROKERS = (1, 2, 3)
WRITES_PAUSE_SECONDS = 0.05
ROWS = 20_000
ROUNDS_A_KILL_TAKES = 5
# The peer's stream can stand for a minute.
PATIENCE_SECONDS = 180


class Sink(Batches):
    """A sink that also keeps the times of new rows."""

    def __init__(self) -> None:
        super().__init__()
        self.moments: list[float] = []

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        before = len(self.seen)
        super().__call__(frame, batch_id)
        if any(rows for _, rows in self.seen[before:]):
            self.moments.append(time.monotonic())

    def longest_stall(self, since: float) -> float:
        """Return the longest time without a new row, in seconds."""
        moments = [since, *(each for each in self.moments if each > since)]
        return max((after - before for before, after in pairwise(moments)), default=0.0)


class Steady:
    """A writer of one row at a time, to each partition in turn, each row once."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._stopped = Event()
        self.written: list[str] = []

    def run(self) -> None:
        # A send that is tried again, since its broker is gone, is not written twice.
        servers = self._events.kafka.bootstrap_servers
        with Writer(servers) as writer:
            while not self._stopped.wait(WRITES_PAUSE_SECONDS):
                number = len(self.written)
                value = f"{number:06d}"
                writer.write(self._events.name, [value], partition=number % PARTITIONS)
                self.written.append(value)

    def stop(self) -> None:
        self._stopped.set()


@contextmanager
def running(steady: Steady) -> Iterator[None]:
    thread = Thread(target=steady.run)
    thread.start()
    try:
        yield
    finally:
        steady.stop()
        thread.join(2 * TIMEOUT_SECONDS)
        assert not thread.is_alive()


@pytest.mark.reliability_full  # for minutes: the peer's stream stands still so long
def test_a_stream_outlives_every_broker(
    spark: SparkSession, all_brokers: LocalKafka, topic: str, start: Start, trial: Trial
) -> None:
    events = Events(all_brokers, topic)
    events.create(PARTITIONS)
    steady, stalls = Steady(events), {OURS: 0.0, PEER: 0.0}
    sinks = {name: Sink() for name in stalls}
    group = {"kafka.group.id": topic}
    queries = {
        name: start(
            stream(
                spark, events.options(**(group if name == OURS else {})), name
            ).writeStream.foreachBatch(sinks[name]),
            name,
        )
        for name in stalls
    }
    coordinators = 0
    kills = max(len(BROKERS), trial.rounds // ROUNDS_A_KILL_TAKES)
    with running(steady):
        for turn in range(kills):
            broker = all_brokers.broker(BROKERS[turn % len(BROKERS)])
            await_rows_after(len(steady.written), queries, sinks)
            coordinators += coordinator(events) == broker.node_id
            killed_at = time.monotonic()
            broker.kill()
            await_rows_after(len(steady.written), queries, sinks)
            broker.start()
            Leaders(all_brokers, topic).await_in_sync(*BROKERS)
            for name, sink in sinks.items():
                stalls[name] = max(stalls[name], sink.longest_stall(killed_at))
    await_rows_after(len(steady.written) - 1, queries, sinks)
    wait_until(lambda: lag(events) == 0, queries[OURS])
    bad = sorted(sinks[OURS].values) != steady.written
    trial.report(
        "11",
        f"{kills} of three brokers killed one after another under a stream of "
        f"{len(steady.written)} rows",
        f"longest stall {stalls[OURS]:.1f} s, the peer's at the same time {stalls[PEER]:.1f} s; "
        f"rows lost or doubled: {'some' if bad else 0}",
    )
    trial.report(
        "13", f"{coordinators} of those led the query's group", f"lag at the end: {lag(events)}"
    )
    assert sinks[OURS].values == steady.written
    assert coordinators


def await_rows_after(
    number: int, queries: dict[str, StreamingQuery], sinks: dict[str, Sink]
) -> None:
    """Wait until both streams have a row that was written after this number of rows."""
    wanted = f"{number:06d}"
    for name, query in queries.items():
        sink = sinks[name]
        wait_until(lambda: max(sink.values, default="") >= wanted, query, PATIENCE_SECONDS)  # noqa: B023 - called now


def coordinator(events: Events) -> int:
    """Return the coordinator of the group with the topic's name, once there is one."""
    client = AdminClient({"bootstrap.servers": events.kafka.bootstrap_servers, "log_level": 0})
    node_ids: list[int] = []

    def found() -> list[int]:
        # It may be moving from a broker that was killed to another.
        with suppress(KafkaException):
            groups = client.describe_consumer_groups([events.name], request_timeout=TIMEOUT_SECONDS)
            node_ids.append(groups[events.name].result().coordinator.id)
        return node_ids

    wait_until(found)
    return node_ids[0]


def lag(events: Events) -> int:
    """Return the lag of the group with the topic's name."""
    consumer = Consumer(
        {
            "bootstrap.servers": events.kafka.bootstrap_servers,
            "group.id": events.name,
            "log_level": 0,
        }
    )
    try:
        where = [TopicPartition(events.name, partition) for partition in range(PARTITIONS)]
        committed = {each.partition: each.offset for each in consumer.committed(where, 30)}
        ends = {
            each.partition: consumer.get_watermark_offsets(each, TIMEOUT_SECONDS)[1]
            for each in where
        }
        return sum(ends[each] - max(0, committed[each]) for each in ends)
    finally:
        consumer.close()


class Moving:
    """A series of restarts, one broker after another. The partitions get other leaders in order."""

    def __init__(self, kafka: LocalKafka, moves: int) -> None:
        self._kafka, self._moves = kafka, moves
        self.thread = Thread(target=self.run)

    def run(self) -> None:
        for turn in range(self._moves):
            self._kafka.broker(BROKERS[turn % len(BROKERS)]).restart()


def test_leaders_that_move_in_mid_read(
    spark: SparkSession, all_brokers: LocalKafka, topic: str, trial: Trial
) -> None:
    events = Events(all_brokers, topic)
    events.create(PARTITIONS)
    with Writer(all_brokers.bootstrap_servers, batch_num_messages=50) as writer:
        for number in range(ROWS):
            writer.queue(topic, b"%d" % number, partition=number % PARTITIONS)
    frame_options = events.options() | {"kafka.max.partition.fetch.bytes": 1_000}
    expected = rows_of(batch(spark, frame_options))
    assert len(expected) == ROWS
    moving = Moving(all_brokers, moves=max(len(BROKERS), trial.rounds // ROUNDS_A_KILL_TAKES))
    reads = differ = 0
    slowest = 0.0
    moving.thread.start()
    while moving.thread.is_alive():
        began = time.monotonic()
        differ += rows_of(batch(spark, frame_options)) != expected
        slowest, reads = max(slowest, time.monotonic() - began), reads + 1
    moving.thread.join()
    trial.report(
        "12",
        f"{reads} reads of {ROWS} rows while brokers were restarted one after another",
        f"reads with a row lost or doubled: {differ}; slowest read: {slowest:.1f} s",
    )
    assert differ == 0
    assert reads
