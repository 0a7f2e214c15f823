"""A driver dies at each step of a commit. After the next driver, each row is there once."""

import pytest

from tests.exactly_once.conftest import Trial
from tests.exactly_once.driver import commit_in_process
from tests.exactly_once.steps import Step

pytestmark = pytest.mark.kafka

TASKS = 12
"""More than are ended at once."""


@pytest.mark.parametrize("step", Step)
def test_a_crash_and_a_replay(step: Step, trial: Trial) -> None:
    run = trial.query.start()
    run.commit(0, run.write(0, TASKS))
    end = commit_in_process(run, 1, run.write(1, TASKS), step)
    assert end.is_dead
    run = trial.query.start()
    run.commit(1, run.write(1, TASKS))
    run.commit(2, run.write(2, TASKS))
    trial.judge()
