"""The demo says what it has counted, and ends with 1 if something is not as it should be."""

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from pyspark.errors import PySparkException

from spark_kafka_source.demo import _claims, _Found, _reason, _Written
from spark_kafka_source.errors import LocalError
from spark_kafka_source.topic_partition import TopicPartition
from tests.command_line.test_process import ENVIRONMENT, ctrl_c_ends_processes
from tests.testing.processes import still_there

__all__ = ["ctrl_c_ends_processes"]

TIMEOUT_SECONDS = 300
LAGS: dict[TopicPartition, int | None] = {TopicPartition("events", each): 0 for each in range(4)}
GOOD = {"read": 10, "batches": 2, "lags": LAGS, "copies": 10, "distinct": 10}


def failed(acknowledged: int = 10, **found: object) -> list[str]:
    claims = _claims(_Written(10, acknowledged), _Found(**{**GOOD, **found}))  # type: ignore[arg-type]
    assert len(claims) == 4
    return [text for holds, text in claims if not holds]


def test_what_does_not_hold_is_said() -> None:
    assert failed() == []
    assert failed(acknowledged=9) == ["produced: 10 events into 'events', 9 acknowledged"]
    assert failed(read=9) == ["read: 9 rows, in 2 micro-batches"]
    (lost,) = failed(copies=9, distinct=9)
    assert lost.endswith("1 events are lost, 0 are doubled")
    (doubled,) = failed(copies=12)
    assert doubled.endswith("0 events are lost, 2 are doubled")
    assert len(failed(copies=10, distinct=9)) == 1
    for lags in ({**LAGS, TopicPartition("events", 3): 7}, {}, {TopicPartition("events", 0): None}):
        (behind,) = failed(lags=lags)
        assert behind.startswith("committed: the end of ")


def test_a_failure_of_spark_is_a_line() -> None:
    python = "  File 'x.py', line 1\nspark_kafka_source.errors.KafkaTimeoutError: no answer\n\n"
    text = f"[STREAM_FAILED] Query [id = 1] terminated: Traceback\n{python}\tat org.apache.X"
    found = _reason(PySparkException(text))
    assert found == "spark_kafka_source.errors.KafkaTimeoutError: no answer"
    assert _reason(PySparkException("[NO_SUCH] one line\nand another")).endswith("one line")
    assert _reason(LocalError("TypeError: x")) == "TypeError: x"


SLOW_END = """
import time
from spark_kafka_source.demo import _CtrlC
_CtrlC().listen()
try:
    print("begun", flush=True)
    time.sleep(300)
except KeyboardInterrupt:
    time.sleep(300)
"""


def test_a_second_ctrl_c_ends_it_at_once() -> None:
    with started("-c", SLOW_END) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        said = process.stdout.readline() + process.stdout.readline()
        assert said == "\nCtrl-C: the demo stops. Another one ends it at once.\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT_SECONDS) == 130


@contextmanager
def started(*words: str, **environment: str) -> Iterator["subprocess.Popen[str]"]:
    """Run Python. A timeout kills it, which also ends the reads of its output."""
    with subprocess.Popen(
        [sys.executable, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT | environment,
        cwd=Path(__file__).parents[1],
    ) as process:
        too_long = threading.Timer(TIMEOUT_SECONDS, process.kill)
        too_long.start()
        try:
            yield process
        finally:
            too_long.cancel()
            process.kill()


def read_until(process: "subprocess.Popen[str]", word: str) -> str:
    """Return what the process says, up to the line with this word."""
    assert process.stdout is not None
    shown = ""
    while word not in shown:
        line = process.stdout.readline()
        assert line, shown
        shown += line
    return shown


def words_of(process: psutil.Process) -> list[str]:
    """Return the command line of a process; nothing of one that has ended meanwhile."""
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def is_broker(words: list[str]) -> bool:
    """Whether a command line is the broker's. That of its supervisor has the same words behind."""
    return "kafka.Kafka" in words and words[0].endswith("java")


# After these lines the demo creates topics and writes the backlog; starts the query; and watches.
@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize(
    "line",
    [
        pytest.param("Apache Kafka is up", marks=pytest.mark.reliability_full),
        "|user-",
        pytest.param("batch ", marks=pytest.mark.reliability_full),
    ],
    ids=["up", "rows", "batch"],
)
def test_ctrl_c_ends_the_demo_wherever_it_is(line: str, tmp_path: Path) -> None:
    with started("-m", "spark_kafka_source.demo", TMPDIR=str(tmp_path)) as process:
        read_until(process, line)
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        said, errors = process.communicate()
        assert "Ctrl-C: the demo stops" in said
        assert "What this run shows" not in said
        assert (process.returncode, "Traceback" in errors) == (0, False)
        assert not still_there(children)
        assert list(tmp_path.iterdir()) == []


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.long
def test_a_broker_that_dies_ends_the_demo_with_a_line() -> None:
    with started("-m", "spark_kafka_source.demo") as process:
        read_until(process, "batch ")
        children = psutil.Process(process.pid).children(recursive=True)
        (broker,) = (each for each in children if is_broker(words_of(each)))
        broker.kill()
        _, errors = process.communicate()
        assert process.returncode == 1
        assert "The demo cannot go on: The broker has ended" in errors
        assert "Traceback" not in errors
        assert not still_there(children)


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.long
def test_the_demo_counts_and_keeps_its_broker_until_ctrl_c() -> None:
    with started("-m", "spark_kafka_source.demo", "--seconds", "2", "--keep") as process:
        shown = read_until(process, "groups lag -b")
        produced, acknowledged = re.findall(r"([\d,]+) (?:events into|acknowledged)", shown)
        assert produced == acknowledged
        assert f"yes  read: {produced} rows" in shown
        assert "yes  committed: the end of 4 of 4 partitions" in shown
        assert f"yes  written: {produced} rows into 'clicks', exactly once: 0 events" in shown
        assert "  NO " not in shown
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
        assert (process.returncode, "Traceback" in errors) == (0, False)
        assert not still_there(children)
