"""The demo says what it has counted, and ends with 1 if something is not as it should be."""

import re
import signal
from contextlib import nullcontext
from pathlib import Path

import psutil
import pytest
from pyspark.errors import PySparkException

from spark_kafka_source.demo.__main__ import _claims, _columns, _Outcome
from spark_kafka_source.demo.events import Written
from spark_kafka_source.demo.running import Claim, CtrlC, Stage, exit_status, python, reason
from spark_kafka_source.errors import LocalError
from spark_kafka_source.topic_partition import TopicPartition
from tests.command_line.test_process import ctrl_c_ends_processes
from tests.demo.processes import OTHER_SPARK, TIMEOUT_SECONDS, read_until, started
from tests.testing.processes import still_there

__all__ = ["ctrl_c_ends_processes"]

LAGS: dict[TopicPartition, int | None] = {TopicPartition("events", each): 0 for each in range(4)}
GOOD = {"read": 10, "batches": 2, "lags": LAGS, "copies": 10, "distinct": 10}


def failed(acknowledged: int = 10, **found: object) -> list[str]:
    claims = _claims(Written(10, acknowledged), _Outcome(**{**GOOD, **found}))  # type: ignore[arg-type]
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
    found = reason(PySparkException(text))
    assert found == "spark_kafka_source.errors.KafkaTimeoutError: no answer"
    assert reason(PySparkException("[NO_SUCH] one line\nand another")).endswith("one line")
    assert reason(LocalError("TypeError: x")) == "TypeError: x"


def stays(_: Stage) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(("holds", "status"), [(True, 0), (False, 1)])
def test_a_demo_that_stays_until_ctrl_c_ends_with_what_it_counted(
    monkeypatch: pytest.MonkeyPatch, holds: bool, status: int
) -> None:
    monkeypatch.setattr("spark_kafka_source.demo.running._broker", nullcontext)
    monkeypatch.setattr(CtrlC, "listen", lambda _: None)
    assert exit_status(lambda _: [(holds, "counted")], stays) == status


def test_ctrl_c_before_anything_is_counted_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(stage: Stage) -> list[Claim]:
        raise KeyboardInterrupt

    monkeypatch.setattr("spark_kafka_source.demo.running._broker", nullcontext)
    monkeypatch.setattr(CtrlC, "listen", lambda _: None)
    assert exit_status(interrupted, stays) == 0


TABLE = """
GROUP  TOPIC   PARTITION  CONSUMER-ID
demo   events  0          -
"""


def test_a_table_of_a_tool_fits_the_screen() -> None:
    assert _columns(TABLE, 2) == "  GROUP  TOPIC\n  demo   events"
    assert _columns("Error: no such group", 2) == "Error: no such group"


def test_what_to_try_next_names_a_python_that_has_the_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.executable", "/somewhere/bin/python")
    assert python() == "/somewhere/bin/python"
    monkeypatch.chdir("/usr")
    monkeypatch.setattr("sys.executable", "/usr/x/bin/python")
    assert python() == "x/bin/python"
    monkeypatch.setattr("shutil.which", lambda _: "/usr/x/bin/python")
    assert python() == "python"


SLOW_END = """
import time
from spark_kafka_source.demo.running import CtrlC
CtrlC().listen()
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


IN_A_FINALIZER = """
import os, signal
from spark_kafka_source.demo.running import CtrlC

class Finalized:
    def __init__(self, act):
        self.act = act
    def __del__(self):
        self.act()

ctrl_c = CtrlC()
ctrl_c.listen()
Finalized(lambda: 1 / 0)
Finalized(lambda: os.kill(os.getpid(), signal.SIGINT))
try:
    ctrl_c.check()
except KeyboardInterrupt:
    print("checked")
"""


def test_ctrl_c_in_a_finalizer_is_heard_and_shows_no_stack() -> None:
    with started("-c", IN_A_FINALIZER) as process:
        said, errors = process.communicate()
    assert said.endswith("checked\n")
    assert "ZeroDivisionError" in errors
    assert "KeyboardInterrupt" not in errors


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
        pytest.param(" is up at ", marks=pytest.mark.reliability_full),
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
    """Also where there is another Spark."""
    command = ("-m", "spark_kafka_source.demo", "--seconds", "2", "--keep")
    with started(*command, COLUMNS="80", **OTHER_SPARK) as process:
        shown = read_until(process, "groups lag -b")
        lines = [line for line in shown.splitlines() if " -m " not in line]  # A path may be long.
        assert [line for line in lines if len(line) > 80] == []
        produced, acknowledged = re.findall(r"([\d,]+) (?:events into|acknowledged)", shown)
        assert produced == acknowledged
        assert f"yes  read: {produced} rows" in shown
        assert "yes  committed: the end of 4 of 4 partitions" in shown
        assert f"yes  written: {produced} rows into 'clicks', exactly once:\n" in shown
        assert "       0 events are lost, 0 are doubled\n" in shown
        assert "  NO " not in shown
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
        assert (process.returncode, "Traceback" in errors) == (0, False)
        assert not still_there(children)
