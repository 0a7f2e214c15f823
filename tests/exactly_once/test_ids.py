"""The number of transactional ids stays, however often a query is started."""

import gc

import pytest

from spark_kafka_source.admin.transactions import list_transactions
from spark_kafka_source.exactly_once.leases import Owner
from tests.exactly_once import query as query_module
from tests.exactly_once.conftest import Trial
from tests.exactly_once.dying import CrashError, dies_at
from tests.exactly_once.query import Query, client_of
from tests.exactly_once.steps import Step

RUNS = 4


def ids(query: Query) -> set[str]:
    """Return all transactional ids of tasks that the brokers know."""
    with client_of(query.servers, **query.settings) as client:
        found, _ = client.run(list_transactions(client))
    return {
        each.transactional_id for each in found if query.names.is_task_id(each.transactional_id)
    }


def test_each_run_goes_on_with_the_ids_of_the_former_one(trial: Trial) -> None:
    query = trial.query
    for batch_id in range(RUNS):
        run = query.start()
        run.commit(batch_id, run.write(batch_id))
        del run
        gc.collect()  # Its lease must end here, and errors hold what has caught them.
    assert len(ids(query)) == 2
    trial.judge()


def test_runs_whose_driver_dies_leave_few_ids(trial: Trial) -> None:
    """The next run's tasks commit what was decided, and then go on under these ids."""
    query = trial.query
    for batch_id in range(RUNS):
        run = query.start()
        with pytest.raises(CrashError):
            run.commit(batch_id, run.write(batch_id), dies_at(Step.DECIDED))
        del run
        gc.collect()
        run = query.start()
        run.commit(batch_id, run.write(batch_id))
        del run
        gc.collect()
    # The second run's rows of each micro-batch are aborted, and so are their ids.
    assert len(ids(query)) <= 2 + 2 * RUNS
    trial.judge()


def test_without_leases_each_run_has_ids_of_its_own(
    in_memory_second: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_module, "leased", lambda *_: Owner())
    query = in_memory_second.query
    for batch_id in range(RUNS):
        run = query.start()
        run.commit(batch_id, run.write(batch_id))
    assert len(ids(query)) == 2 * RUNS
    in_memory_second.judge()
