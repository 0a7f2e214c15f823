"""Members that join, leave, freeze and die at random. `timeline` has the rules for them.

Our members and confluent-kafka's share a group on two topics. One topic grows, and an idempotent
producer writes to both. In the long version, brokers are killed and started again, too.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from spark_kafka_source.testing import LocalKafka
from tests.reliability.commit_log import commits_of
from tests.reliability.conftest import Trial
from tests.reliability.crowd import Crowd
from tests.reliability.timeline import Judgement, Where, judge
from tools.reliability.leaders import Leaders
from tools.traffic import TIMEOUT_SECONDS, Writer

pytestmark = [pytest.mark.kafka, pytest.mark.long]

PARTITIONS = 12
FEW, MANY = 2, 8
FIVE_MINUTES = 300.0
A_MOMENT = 10.0


@dataclass
class Traffic:
    """A writer to both topics until it is stopped. Each value is its record's offset, as text."""

    kafka: LocalKafka
    steady: str
    growing: str
    chance: Random
    seconds: float
    written: dict[Where, int] = field(default_factory=dict)
    error: BaseException | None = None
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.kafka.create_topic(self.steady, PARTITIONS)
        self.kafka.create_topic(self.growing, FEW)
        self.written = {(self.steady, each): 0 for each in range(PARTITIONS)}
        self.written |= {(self.growing, each): 0 for each in range(FEW)}
        self.thread = threading.Thread(target=self._run)

    @property
    def topics(self) -> tuple[str, str]:
        return self.steady, self.growing

    def _run(self) -> None:
        try:
            partitions = FEW
            while not self.stop.is_set():
                self._write(self.seconds / (MANY - FEW + 1))
                if partitions < MANY:
                    self.kafka.create_partitions(self.growing, partitions + 1)
                    self.written[self.growing, partitions] = 0
                    partitions += 1
        except BaseException as error:
            self.error = error

    def _write(self, seconds: float) -> None:
        """Write with a producer that knows the present partitions."""
        until = time.monotonic() + seconds
        with Writer(self.kafka.bootstrap_servers) as writer:
            while time.monotonic() < until and not self.stop.is_set():
                for where in self.chance.sample(sorted(self.written), 4):
                    for _ in range(self.chance.randint(1, 5)):
                        value = b"%d" % self.written[where]
                        self._queue(writer, where, value)
                        self.written[where] += 1
                writer.producer.poll(0)
                self.stop.wait(0.02)

    def _queue(self, writer: Writer, where: Where, value: bytes) -> None:
        """Queue a record. A broker that has just come back may not have told of new partitions."""
        until = time.monotonic() + TIMEOUT_SECONDS
        while True:
            try:
                writer.queue(where[0], value, partition=where[1])
            except KafkaException as error:
                is_unknown = error.args[0].code() == KafkaError._UNKNOWN_PARTITION
                if not is_unknown or time.monotonic() > until:
                    raise
                writer.producer.list_topics(where[0], TIMEOUT_SECONDS)
            else:
                return


@dataclass
class Deaths:
    """One broker after another is killed and comes back. The others have its records."""

    kafka: LocalKafka
    topic: str
    chance: Random
    killed: int = 0
    error: BaseException | None = None
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            while not self.stop.wait(self.chance.uniform(15, 35)):
                broker = self.kafka.broker(self.chance.randint(1, 3))
                broker.kill()
                self.killed += 1
                self.stop.wait(self.chance.uniform(2, 8))
                broker.start()
                Leaders(self.kafka, self.topic).await_in_sync(1, 2, 3)
        except BaseException as error:
            self.error = error


def ends_of(servers: str, partitions: list[Where]) -> dict[Where, int]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "nobody", "log_level": 0})
    try:
        return {
            where: consumer.get_watermark_offsets(TopicPartition(*where), TIMEOUT_SECONDS)[1]
            for where in partitions
        }
    finally:
        consumer.close()


def finish(crowds: list[Crowd], ends: dict[Where, int]) -> None:
    """Wait until each group has read everything, or reads no more."""
    for crowd in crowds:
        crowd.calm()
    until = time.monotonic() + TIMEOUT_SECONDS
    left = list(crowds)
    while left and time.monotonic() < until:
        time.sleep(0.5)
        left = [each for each in left if not _has_all(each, ends)]


def _has_all(crowd: Crowd, ends: dict[Where, int]) -> bool:
    reached: dict[Where, int] = {}
    for life in crowd.lives():
        for stint in life.stints:
            if stint.reads:
                reached[stint.where] = max(reached.get(stint.where, 0), stint.reads[-1].end)
    return all(reached.get(where, 0) >= end for where, end in ends.items())


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def struggle(
    traffic: Traffic, crowds: dict[str, Crowd], chance: Random, pause_seconds: float
) -> dict[str, Judgement]:
    """Run the groups while the traffic lasts. Return the judgement of each group."""
    traffic.thread.start()
    try:
        ends_at = time.monotonic() + traffic.seconds
        while time.monotonic() < ends_at:
            for crowd in crowds.values():
                crowd.something()
            time.sleep(chance.uniform(0, 2 * pause_seconds))
    finally:
        traffic.stop.set()
        traffic.thread.join()
    assert traffic.error is None, traffic.error
    servers = traffic.kafka.bootstrap_servers
    ends = ends_of(servers, list(traffic.written))
    assert ends == traffic.written
    finish(list(crowds.values()), ends)
    found = {}
    for group_id, crowd in crowds.items():
        ended = crowd.close()
        found[group_id] = judge(crowd.lives(), commits_of(servers, group_id), ends)
        found[group_id].wrong += ended
    return found


def told(trial: Trial, protocol: str, crowd: Crowd, found: Judgement, more: str = "") -> None:
    happened = ", ".join(f"{count} {what}" for what, count in crowd.done.items())
    trial.report(
        "chaos",
        f"{protocol}: {happened}{more}; {found.rebalances} assignments, {found.stints} partitions "
        "changed hands",
        str(found),
    )
    print(*found.wrong, *found.theirs, sep="\n")


def test_members_come_and_go_for_a_moment(
    kafka: LocalKafka, topic: str, tmp_path: Path, trial: Trial, stack: ExitStack
) -> None:
    """Groups of two protocols run at once."""
    traffic = Traffic(kafka, topic, f"{topic}-growing", trial.chance, A_MOMENT)
    crowds = {
        f"{topic}-{protocol}": Crowd(
            (kafka.bootstrap_servers, f"{topic}-{protocol}", traffic.topics, protocol),
            tmp_path / protocol,
            Random(trial.chance.random()),
            most=4,
        )
        for protocol in ("cooperative-sticky", "consumer")
    }
    for crowd in crowds.values():
        stack.callback(crowd.close)
    found = struggle(traffic, crowds, trial.chance, pause_seconds=0.7)
    for group_id, judgement in found.items():
        told(trial, group_id.removeprefix(topic), crowds[group_id], judgement)
    for judgement in found.values():
        assert (judgement.lost, judgement.doubled_although_committed) == (0, 0)
        assert judgement.wrong == []


@pytest.mark.reliability_full
@pytest.mark.parametrize("protocol", ["range", "cooperative-sticky", "consumer"])
def test_members_come_and_go_for_five_minutes(
    all_brokers: LocalKafka, tmp_path: Path, trial: Trial, stack: ExitStack, protocol: str
) -> None:
    topic = f"chaos-{protocol}-{uuid4().hex[:8]}"
    traffic = Traffic(all_brokers, topic, f"{topic}-growing", trial.chance, FIVE_MINUTES)
    crowd = Crowd(
        (all_brokers.bootstrap_servers, topic, traffic.topics, protocol),
        tmp_path / "members",
        Random(trial.chance.random()),
        most=10,
    )
    stack.callback(crowd.close)
    deaths = Deaths(all_brokers, topic, Random(trial.chance.random()))
    deaths.thread.start()
    try:
        found = struggle(traffic, {topic: crowd}, trial.chance, pause_seconds=1.5)[topic]
    finally:
        deaths.stop.set()
        deaths.thread.join()
    assert deaths.error is None, deaths.error
    told(trial, protocol, crowd, found, f", {deaths.killed} brokers killed")
    assert (found.lost, found.doubled_although_committed, found.wrong) == (0, 0, [])
