"""Unclean elections: logs lose rows that were read, and grow again with other rows.

Of three brokers, two hold the topic: the third lets the controllers keep their majority while one
of the two is down.
"""

from collections.abc import Sequence
from random import Random

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_kafka_source.testing import LocalKafka
from tests.parity.refusals import refused
from tests.reliability.conftest import Trial
from tests.spark_session import Start
from tools.reliability.leaders import Leaders
from tools.traffic import TIMEOUT_SECONDS, Batches, Events, stream, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]

PARTITIONS = 5
ROUNDS_A_CLUSTER_TAKES = 5  # Each has four brokers end and start.


class Diverging:
    """A topic with replicas on brokers 1 and 2, and all rows ever written to it."""

    def __init__(self, events: Events, chance: Random) -> None:
        self._events, self._chance = events, chance
        self.leader, self.follower = 1, 2
        self.written: list[str] = []
        self.ends = [0] * PARTITIONS
        self.parted = [0] * PARTITIONS
        self._leaders = Leaders(events.kafka, events.name)
        self._create()

    def _create(self) -> None:
        events = self._events
        events.kafka.tool(
            *("topics", "--create", "--topic", events.name),
            *("--replica-assignment", ",".join([f"{self.leader}:{self.follower}"] * PARTITIONS)),
            *("--config", "unclean.leader.election.enable=true"),
            *("--config", "min.insync.replicas=1"),
        )
        events.partitions = PARTITIONS
        self._leaders.await_leader(self.leader)

    def write(self, *counts: int) -> None:
        """Write the same number of different rows to each partition."""
        for partition, count in enumerate(counts):
            first = len(self.written)
            rows = [f"{number:06d}" for number in range(first, first + count)]
            self._events.write(rows, partition)
            self.written += rows
            self.ends[partition] += count

    def write_what_one_broker_will_lose(self) -> None:
        """Write rows that both brokers have, then rows that only the leader has."""
        kafka = self._events.kafka
        self.write(*self._some(0, 20))
        self._leaders.await_in_sync(1, 2)
        kafka.broker(self.follower).kill()
        self._leaders.await_in_sync(self.leader)
        self.parted = list(self.ends)
        self.write(*self._some(1, 20))

    def elect_the_other(self) -> None:
        """Make the follower the leader, without the last rows. The logs part at `parted`."""
        kafka = self._events.kafka
        kafka.broker(self.leader).kill()
        kafka.broker(self.follower).start()
        self.leader, self.follower = self.follower, self.leader
        self._leaders.await_leader(self.leader)
        self.ends = list(self.parted)
        # The log has lost what an idempotent producer has written, so another one goes on.
        self._events = Events(kafka, self._events.name)

    def heal(self) -> None:
        """Let the old leader follow."""
        self._events.kafka.broker(self.follower).start()
        self._leaders.await_in_sync(1, 2)

    def write_others(self) -> None:
        """Write fewer, as many, or more rows than were lost: at least one partition of each."""
        self.write(*self._some(1, 40))

    def _some(self, least: int, most: int) -> list[int]:
        return [self._chance.randint(least, most) for _ in range(PARTITIONS)]


def test_logs_that_part(
    spark: SparkSession,
    all_brokers: LocalKafka,
    topic: str,
    start: Start,
    trial: Trial,
) -> None:
    events = Events(all_brokers, topic)
    log = Diverging(events, trial.chance)
    going_on = Batches()
    frame = stream(spark, events.options(failOnDataLoss=False))
    query = start(frame.writeStream.foreachBatch(going_on), "going-on")
    elections = -(-trial.rounds // ROUNDS_A_CLUSTER_TAKES)
    named = 0
    for _ in range(elections):
        failing = stream(spark, events.options())
        log.write_what_one_broker_will_lose()
        wait_until(lambda: going_on.values == log.written, query)
        checkpoint = f"failing-{len(log.written)}"
        to_the_end(start, failing, checkpoint)
        log.elect_the_other()
        log.write_others()
        text = refused(lambda: to_the_end(start, failing, checkpoint))  # noqa: B023 - called now
        named += names_where_it_parted(text, topic, log.parted)
        wait_until(lambda: len(going_on.values) >= len(log.written), query)
        log.heal()
    query.stop()
    read, written = going_on.values, log.written
    trial.report(
        "5",
        f"{elections} unclean elections of the leader of {PARTITIONS} partitions",
        f"named with the offset where the logs part: {named} of {elections}; with "
        f"failOnDataLoss=false, of {len(written)} rows missed {len(set(written) - set(read))}, "
        f"doubled {len(read) - len(set(read))}",
    )
    assert named == elections
    assert read == written


def to_the_end(start: Start, frame: DataFrame, checkpoint: str) -> None:
    writer = frame.writeStream.format("noop").trigger(availableNow=True)
    query = start(writer, checkpoint)
    assert query.awaitTermination(TIMEOUT_SECONDS)


def names_where_it_parted(text: str, topic: str, parted: Sequence[int]) -> bool:
    return "[KAFKA_DATA_LOSS.PARTITION_OFFSET_CHANGED]" in text and any(
        f"{topic}-{partition} " in text and f"truncated at offset {offset} " in text
        for partition, offset in enumerate(parted)
    )
