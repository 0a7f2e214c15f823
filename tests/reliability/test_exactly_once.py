"""Two members are killed and frozen. They store results and offsets in one transaction."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from random import Random

import pytest

psycopg = pytest.importorskip("psycopg", reason="the PostgreSQL driver psycopg is not installed")

from spark_kafka_source.testing import LocalKafka  # noqa: E402 - what is skipped imports nothing
from tests.reliability.conftest import Trial  # noqa: E402
from tests.reliability.exactly_once import SESSION_MS, TABLES  # noqa: E402
from tests.reliability.postgres import postgres, program  # noqa: E402
from tools.traffic import Events, wait_until  # noqa: E402

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.postgres,
    pytest.mark.long,
    pytest.mark.skipif(program("postgres") is None, reason="PostgreSQL is not installed"),
]

PARTITIONS = 4
ROWS_A_ROUND = 400
FEWEST_ROUNDS = 2


@pytest.fixture
def database() -> Iterator[str]:
    with postgres() as conninfo:
        with psycopg.connect(conninfo) as connection:
            connection.execute(TABLES)
        yield conninfo


class Members:
    """Two processes of `tests.reliability.exactly_once`. A new one follows a killed one."""

    def __init__(self, arguments: list[str], chance: Random, stack: ExitStack) -> None:
        self._command = [sys.executable, "-m", "tests.reliability.exactly_once", *arguments]
        self._chance, self._stack = chance, stack
        self.running = [self._start(), self._start()]

    def _start(self) -> "subprocess.Popen[bytes]":
        process = self._stack.enter_context(subprocess.Popen(self._command))
        self._stack.callback(process.kill)
        return process

    def kill(self) -> None:
        place = self._chance.randrange(2)
        process = self.running[place]
        process.kill()
        assert process.wait() == -signal.SIGKILL
        self.running[place] = self._start()

    def freeze(self) -> None:
        """Freeze a member for longer than its session. Then it goes on, unaware of this."""
        pid = self._chance.choice(self.running).pid
        os.kill(pid, signal.SIGSTOP)
        time.sleep(SESSION_MS / 1000 * 1.5)
        os.kill(pid, signal.SIGCONT)

    def end(self) -> list[int]:
        for process in self.running:
            process.terminate()
        return [process.wait(60) for process in self.running]


def test_every_record_counts_once_though_members_are_killed(
    kafka: LocalKafka, topic: str, database: str, trial: Trial
) -> None:
    events = Events(kafka, topic)
    events.create(PARTITIONS)
    rounds = max(trial.rounds, FEWEST_ROUNDS)
    written: set[str] = set()
    mid_way = kills = freezes = 0
    with ExitStack() as stack:
        connection = stack.enter_context(closing(psycopg.connect(database, autocommit=True)))

        def counted() -> int:
            row = connection.execute("SELECT count(*) FROM counts").fetchone()
            return int(row[0]) if row else 0

        members = Members([kafka.bootstrap_servers, topic, topic, database], trial.chance, stack)
        for number in range(rounds):
            before = counted()
            for partition in range(PARTITIONS):
                rows = [f"{number}:{partition}:{each}" for each in range(ROWS_A_ROUND)]
                events.write(rows, partition)
                written.update(rows)
            wait_until(lambda: counted() > before)  # noqa: B023 - called now
            time.sleep(trial.chance.uniform(0, 0.2))
            mid_way += counted() < len(written)
            if number % 3 == 1:
                members.freeze()
                freezes += 1
            else:
                members.kill()
                kills += 1
        wait_until(lambda: counted() >= len(written))
        # One that was started a moment ago does not know yet how to end by itself.
        assert set(members.end()) <= {0, -signal.SIGTERM}
        found = dict(connection.execute("SELECT word, number FROM counts").fetchall())
    lost, doubled = len(written - found.keys()), sum(found.values()) - len(found)
    trial.report(
        "exactly once",
        f"{kills} members killed, {freezes} frozen, {mid_way} of them amid {len(written)} records",
        f"records without effect: {lost}; with two: {doubled}",
    )
    assert (lost, doubled, found.keys() - written) == (0, 0, set())
    assert mid_way
