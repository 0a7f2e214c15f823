"""The doctor's checks of Spark: its own job, and a row for each fault."""

import json
import os
import subprocess
import sys
import threading
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_kafka_source.command_line.main import main
from spark_kafka_source.doctor import Finding, Verdict
from spark_kafka_source.doctor.spark import check_spark, facts, judged
from spark_kafka_source.testing.memory import MemoryBroker


def wrong(**told: Any) -> list[Finding]:
    found = judged(facts(), [facts(), facts() | {"host": "other"} | told])
    return [each for each in found if each.verdict is Verdict.WRONG]


@pytest.mark.parametrize(
    ("told", "subject", "option"),
    [
        ({"python": "3.9.1"}, "Python", "PYSPARK_PYTHON"),
        ({"pyarrow": None}, "pyarrow", "PYSPARK_PYTHON"),
        ({"spark-kafka-source": "0.0.0"}, "spark-kafka-source", "PYSPARK_PYTHON"),
        ({"numba": True, "writable": False}, "fast", "NUMBA_CACHE_DIR"),
    ],
)
def test_an_executor_with_a_fault(told: dict[str, Any], subject: str, option: str) -> None:
    assert not wrong()
    (found,) = wrong(**told)
    assert (found.subject, found.option) == (subject, option)
    assert found.remedy
    assert " on other" in found.found


def test_a_session_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise RuntimeError("Java gateway process exited")

    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", refuse)
    (found,) = check_spark(60_000)
    assert (found.verdict, found.option) == (Verdict.WRONG, "PYSPARK_PYTHON")
    assert found.found == "Java gateway process exited"


def test_a_session_that_gets_no_core(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    def wait(_: object) -> None:
        ended.wait(60)
        raise RuntimeError("It has ended")

    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", wait)
    (found,) = check_spark(50)
    ended.set()
    assert (found.verdict, found.option) == (Verdict.WRONG, "--timeout")
    assert found.found == "no job has ended within 0.05 s"
    assert "cores" in found.remedy


_TRACE = """An error occurred while calling o60.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0.0 failed
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:1)
Caused by: java.io.IOException: {}
"""


@pytest.mark.parametrize(
    ("text", "found", "option"),
    [
        (
            _TRACE.format('Cannot run program "/no/python": error=2, No such file'),
            'Cannot run program "/no/python": error=2, No such file',
            "PYSPARK_PYTHON",
        ),
        (
            _TRACE.format("ModuleNotFoundError: No module named 'pyspark'"),
            "ModuleNotFoundError: No module named 'pyspark'",
            "PYSPARK_PYTHON",
        ),
        ("[JAVA_GATEWAY_EXITED] Java gateway process exited.", None, "JAVA_HOME"),
        ("[Errno 2] No such file: '/no/such/./bin/spark-submit'", None, "SPARK_HOME"),
        ("", "OSError", "PYSPARK_PYTHON"),
    ],
)
def test_whatever_spark_raises_is_a_finding(
    monkeypatch: pytest.MonkeyPatch, text: str, found: str | None, option: str
) -> None:
    def fail(_: object) -> None:
        raise OSError(text)

    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", fail)
    (finding,) = check_spark(60_000)
    assert finding.verdict is Verdict.WRONG
    assert (finding.found, finding.option) == (text if found is None else found, option)


@pytest.mark.spark
@pytest.mark.long
def test_a_python_that_cannot_be_started_is_named_after_the_cluster() -> None:
    """A session of its own, in a process of its own: the tests' session has another Python."""
    program = [sys.executable, "-m", "spark_kafka_source", "doctor", "--spark", "--json"]
    program += ["--timeout", "60"]  # The session has six times as long.
    wrong_python = os.environ | {"PYSPARK_PYTHON": "/no/such/python"}
    with MemoryBroker() as broker:
        done = subprocess.run(
            [*program, "-b", str(broker.address())],
            capture_output=True,
            text=True,
            check=False,
            env=wrong_python,
        )
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 1
    assert {"round trip", "cluster"} <= {row["check"] for row in rows}
    assert rows[-1]["verdict"] == "wrong"
    assert "/no/such/python" in rows[-1]["found"]
    assert rows[-1]["option"] == "PYSPARK_PYTHON"


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_session(capsys: pytest.CaptureFixture[str]) -> None:
    assert SparkSession.getActiveSession() is not None
    with MemoryBroker() as broker:
        assert main(["doctor", "-b", str(broker.address()), "--spark", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    found = {row["subject"]: row["found"] for row in rows if row["check"] == "spark"}
    assert found["Python"].count(facts()["python"]) == 2
    assert found["executors"] == "64 tasks ran on hosts: 1"
    assert found["Unix socket"].endswith("is true")
    assert {"pyspark", "pyarrow", "numpy", "spark-kafka-source", "fast"} <= set(found)
