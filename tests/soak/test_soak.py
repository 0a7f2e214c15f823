"""Two minutes of `make soak`."""

from pathlib import Path

import pytest

from tools.soak.run import soak

HOURS = 2 / 60
ROWS_A_SECOND = 100


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.registry
@pytest.mark.java
@pytest.mark.reliability_full
@pytest.mark.timeout(1_800)
def test_each_row_is_accounted_for(tmp_path: Path) -> None:
    outcome = soak(HOURS, 1, tmp_path, ROWS_A_SECOND)
    assert outcome.anomalies == 0, outcome
    assert all(each.rows for each in outcome.verdicts.values())
    assert sum(outcome.nemesis.values()) > 1
