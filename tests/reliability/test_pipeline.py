"""Consume, transform and produce exactly once, while members and brokers die and freeze at random.

Of three members of a group one is Kafka's own clients', two are ours.
"""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from spark_kafka_source import KafkaProducer
from spark_kafka_source.testing import LocalKafka, kafka_jars
from spark_kafka_source.testing.java import QUICK_START, find_java
from tests.producer.reading import read_by_confluent
from tests.reliability.conftest import Trial
from tools.reliability.leaders import Leaders
from tools.reliability.writing import pipeline
from tools.traffic import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.java, pytest.mark.long]

BROKERS = (1, 2, 3)
OURS, JAVAS = "ours", "Java's"
CREW = (OURS, OURS, JAVAS)
PARTITIONS = 4
ROWS_A_ROUND = 400
FEWEST_ROUNDS = 4
PATIENCE_SECONDS = 240
_JAVA = Path(pipeline.__file__).with_name("Pipeline.java")


class Crew:
    """Members, each in a process. One that has ended gets a successor of its kind."""

    def __init__(self, servers: str, topic: str, chance: Random, log: Path) -> None:
        self._log = log
        self._arguments = (servers, topic, topic, f"{topic}-out")
        self._chance = chance
        self._running = [self._start(place) for place in range(len(CREW))]
        self.fenced = dict.fromkeys(CREW, 0)
        self.killed = dict.fromkeys(CREW, 0)
        self.frozen = dict.fromkeys(CREW, 0)

    def _start(self, place: int) -> "subprocess.Popen[bytes]":
        program = [sys.executable, "-m", pipeline.__name__]
        if CREW[place] == JAVAS:
            jars = os.pathsep.join(map(str, kafka_jars()))
            quiet = "-Dorg.apache.logging.log4j.level=OFF"
            program = [find_java(), *QUICK_START, quiet, "-cp", jars, str(_JAVA)]
        # One with the same transactional id ends what the one before it has left.
        command = [*program, *self._arguments, f"{self._arguments[1]}-{place}"]
        with self._log.open("ab") as errors:
            return subprocess.Popen(command, stderr=errors)

    def look_after(self) -> None:
        """Replace members that ended by themselves. Only a fenced member may do so."""
        for place, process in enumerate(self._running):
            if process.poll() is not None:
                assert process.returncode == pipeline.FENCED, self._log.read_text()
                self.fenced[CREW[place]] += 1
                self._running[place] = self._start(place)

    def kill(self) -> None:
        place = self._chance.randrange(len(CREW))
        self._running[place].kill()
        self._running[place].wait()
        self.killed[CREW[place]] += 1
        self._running[place] = self._start(place)

    def freeze(self) -> None:
        """Freeze a member for longer than its session, sometimes than its transaction timeout."""
        place = self._chance.randrange(len(CREW))
        process = self._running[place]
        process.send_signal(signal.SIGSTOP)
        time.sleep(self._chance.choice([1.2, 1.2, 4.0]) * pipeline.SESSION_MS / 1000)
        process.send_signal(signal.SIGCONT)
        self.frozen[CREW[place]] += 1

    def close(self) -> None:
        for process in self._running:
            process.kill()
            process.wait()


@contextmanager
def working(servers: str, topic: str, chance: Random, log: Path) -> Iterator[Crew]:
    crew = Crew(servers, topic, chance, log)
    try:
        yield crew
    finally:
        crew.close()


def copies(kafka: LocalKafka, topic: str) -> Counter[bytes | None]:
    """Return how often each record is in the output, for a reader of committed records."""
    found = read_by_confluent(
        kafka.bootstrap_servers, f"{topic}-out", PARTITIONS, isolation_level="read_committed"
    )
    return Counter(row.value for rows in found.values() for row in rows)


def test_each_record_is_copied_once_whoever_is_killed(
    all_brokers: LocalKafka, topic: str, trial: Trial, tmp_path: Path
) -> None:
    kafka, chance = all_brokers, trial.chance
    for name in (topic, f"{topic}-out"):
        kafka.create_topic(name, PARTITIONS)
    written: list[bytes] = []
    brokers_killed = 0
    rounds = max(trial.rounds, FEWEST_ROUNDS)
    with (
        KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer,
        working(kafka.bootstrap_servers, topic, chance, tmp_path / "members.log") as crew,
    ):
        for number in range(rounds):
            before = copies(kafka, topic).total()
            values = [b"%d:%d" % (number, each) for each in range(ROWS_A_ROUND)]
            for each in values:
                producer.send(topic, each, key=each)
            written += values
            wait_until(lambda: copies(kafka, topic).total() > before, None, PATIENCE_SECONDS)  # noqa: B023 - called now
            if number % 4 == 3:
                broker = kafka.broker(chance.choice(BROKERS))
                broker.kill()
                time.sleep(chance.uniform(0, 4))
                broker.start()
                Leaders(kafka, f"{topic}-out").await_in_sync(*BROKERS)
                brokers_killed += 1
            elif number % 4 == 2:
                crew.freeze()
            else:
                crew.kill()
            crew.look_after()

        def is_done() -> bool:
            crew.look_after()
            return copies(kafka, topic).total() >= len(written)

        wait_until(is_done, None, PATIENCE_SECONDS)
    found = copies(kafka, topic)
    lost = len(set(written) - found.keys())
    doubled = found.total() - len(found)
    trial.report(
        "pipeline",
        f"{len(written)} records copied by two of ours and one of Java's: killed {crew.killed}, "
        f"frozen {crew.frozen}, brokers killed {brokers_killed}",
        f"lost {lost}, doubled {doubled}; members fenced {crew.fenced}",
    )
    assert (lost, doubled, found.keys() - set(written)) == (0, 0, set())
