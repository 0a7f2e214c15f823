"""The doctor's checks of Spark: its own job, and a row for each fault."""

import json
import threading
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_kafka_source.command_line.main import main
from spark_kafka_source.doctor import Finding, Verdict
from spark_kafka_source.doctor.spark import check_spark, facts, judged
from tests.memory_broker import MemoryBroker


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


def test_an_error_that_nobody_expects_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", fail)
    with pytest.raises(ZeroDivisionError):
        check_spark(60_000)


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
