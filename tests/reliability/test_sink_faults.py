"""Queries that write exactly once, under many faults. librdkafka sees each row once."""

from pathlib import Path

import pytest

from spark_kafka_source.testing import LocalKafka
from tests.reliability.conftest import Trial
from tools.reliability.sink.judge import Verdict
from tools.reliability.sink.scenarios import SCENARIOS, Copying, run_scenario

EVERY_DAY = ("the driver killed in commit",)


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.peer
@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(each, marks=() if each in EVERY_DAY else pytest.mark.reliability_full)
        for each in SCENARIOS
    ],
)
def test_each_row_is_seen_once(kafka: LocalKafka, tmp_path: Path, trial: Trial, name: str) -> None:
    copying = Copying(kafka, tmp_path, trial.chance)
    verdict = run_scenario(copying, name, trial.rounds)
    done = f"{name}: {copying.rounds} rounds, {copying.faults} with a fault"
    trial.report("exactly-once sink", done, f"of {len(copying.rows)} rows {verdict}")
    assert verdict == Verdict(0, 0, 0, 0)
