"""Micro-batches of so many tasks that a decision has several parts."""

import pytest

from tests.exactly_once.conftest import Trial
from tests.exactly_once.driver import commit_in_process
from tests.exactly_once.steps import Step

pytestmark = [pytest.mark.kafka, pytest.mark.long]


@pytest.mark.parametrize("tasks", [200, pytest.param(600, marks=pytest.mark.reliability_full)])
def test_many_tasks(tasks: int, trial: Trial) -> None:
    """Drivers die while they end transactions. Then a smaller micro-batch has fewer parts."""
    query = trial.query
    query.timeout_ms = 120_000  # So many tasks take their time, and nothing waits for it.
    run = query.start()
    assert commit_in_process(run, 0, run.write(0, tasks, count=1), Step.ONE_ENDED).is_dead
    run = query.start()
    replayed = run.write(0, tasks, count=1)  # The first task commits the rest.
    assert commit_in_process(run, 0, replayed, Step.READ).is_dead
    run = query.start()
    run.commit(0, run.write(0, tasks, count=1))
    run.commit(1, run.write(1, 2))
    run = query.start()
    run.commit(1, run.write(1, 2))
    trial.judge()
