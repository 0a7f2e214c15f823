"""A process is ended while it sends. Its acknowledged records are there, once and in order."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from random import Random

import pytest

from spark_kafka_source.testing import LocalKafka
from tests.producer.reading import read_by_confluent
from tests.reliability.conftest import Trial

pytestmark = [pytest.mark.kafka, pytest.mark.long]

CHILD = "tools.reliability.writing.child"
END_SECONDS = 60
READ_BYTES = 1 << 16
PARTITIONS = 2
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class Told:
    """A child's report: the records given to its producer, and the acknowledged ones."""

    given: set[int]
    there: set[int]

    @classmethod
    def by(cls, output: bytes) -> "Told":
        # One that is killed may leave half a line.
        lines = [each.split(" ") for each in output.decode().split("\n")[:-1]]
        return cls(*({int(number) for kind, number in lines if kind == what} for what in WORDS))


WORDS = ("given", "there")


def child(kafka: LocalKafka, topic: str, way: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", CHILD, kafka.bootstrap_servers, topic, way],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def some_output(process: "subprocess.Popen[bytes]", chance: Random) -> bytes:
    """Return the output until some records are acknowledged, and a little more."""
    assert process.stdout is not None
    said = b""
    least = chance.randrange(1, 200_000)
    while b"there" not in said or len(said) < least:
        more = os.read(process.stdout.fileno(), READ_BYTES)  # Not ahead: `communicate` reads on.
        assert more, process.communicate()
        said += more
    return said


def found(kafka: LocalKafka, topic: str) -> tuple[Counter[int], int]:
    """Return how often each number is there, and how many are out of order."""
    read = read_by_confluent(kafka.bootstrap_servers, topic, PARTITIONS)
    numbers = [[int(row.value or b"") for row in rows] for rows in read.values()]
    descents = sum(after <= before for each in numbers for before, after in pairwise(each))
    return Counter(number for each in numbers for number in each), descents


@pytest.mark.parametrize("way", ["send", "columns"])
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_what_was_acknowledged_is_there_when_a_signal_ends_the_process(
    kafka: LocalKafka, topic: str, trial: Trial, number: signal.Signals, way: str
) -> None:
    """After Ctrl-C all given records are there: the producer sends them when it is closed."""
    lost = doubled = disorder = acknowledged = left = 0
    for turn in range(trial.rounds):
        name = f"{topic}-{turn}"
        kafka.create_topic(name, PARTITIONS)
        with child(kafka, name, way) as process:
            said = some_output(process, trial.chance)
            process.send_signal(number)
            more, errors = process.communicate(timeout=END_SECONDS)
        assert process.returncode == -number, errors
        told = Told.by(said + more)
        counts, descents = found(kafka, name)
        acknowledged += len(told.there)
        lost += len(told.there - counts.keys())
        left += len(told.given - counts.keys())
        doubled += counts.total() - len(counts)
        disorder += descents
    done = f"{trial.rounds} processes ended by {number.name} as they wrote by `{way}`"
    shown = (
        f"of {acknowledged} acknowledged lost {lost}; doubled {doubled}, out of order {disorder}"
    )
    trial.report("stopped", done, f"{shown}; given and not written {left}")
    assert (lost, doubled, disorder) == (0, 0, 0)
    if number is signal.SIGINT:
        assert left == 0


def test_ctrl_c_that_is_caught_harms_no_record(kafka: LocalKafka, topic: str, trial: Trial) -> None:
    """Ctrl-C may come at any point of `send`. Records of calls that returned are written."""
    interrupts = 0
    lost = doubled = disorder = given = 0
    for turn in range(trial.rounds):
        name = f"{topic}-{turn}"
        kafka.create_topic(name, PARTITIONS)
        with child(kafka, name, "stubborn") as process:
            said = some_output(process, trial.chance)
            for _ in range(100):
                process.send_signal(signal.SIGINT)
                interrupts += 1
                time.sleep(trial.chance.uniform(0, 0.01))
            more, errors = process.communicate(timeout=END_SECONDS)
        assert process.returncode == 0, errors
        told = Told.by(said + more)
        counts, descents = found(kafka, name)
        given += len(told.given)
        lost += len(told.given - counts.keys())
        doubled += counts.total() - len(counts)
        disorder += descents
    trial.report(
        "stopped",
        f"{interrupts} times Ctrl-C while {given} records were given, and caught",
        f"of those not written {lost}; doubled {doubled}, out of order {disorder}",
    )
    assert (lost, doubled, disorder) == (0, 0, 0)
