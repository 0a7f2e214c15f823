"""The demo says what it has counted, and ends with 1 if something is not as it should be."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from spark_kafka_source.demo import _claims, _Found, _Written
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


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.long
def test_the_demo_counts_and_keeps_its_broker_until_ctrl_c() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "spark_kafka_source.demo", "--seconds", "2", "--keep"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
        cwd=Path(__file__).parents[1],
    ) as process:
        try:
            assert process.stdout is not None
            shown = ""
            while "groups lag -b" not in shown:
                line = process.stdout.readline()
                assert line, shown
                shown += line
            produced, acknowledged = re.findall(r"([\d,]+) (?:events into|acknowledged)", shown)
            assert produced == acknowledged
            assert f"yes  read: {produced} rows" in shown
            assert "yes  committed: the end of 4 of 4 partitions" in shown
            assert f"yes  written: {produced} rows into 'clicks', exactly once: 0 events" in shown
            assert "  NO " not in shown
            children = psutil.Process(process.pid).children(recursive=True)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=TIMEOUT_SECONDS)
            assert (process.returncode, "Traceback" in errors) == (0, False)
            assert not still_there(children)
        finally:
            process.kill()
