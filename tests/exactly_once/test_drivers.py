"""Several drivers, and drivers that go on too late: each row once, or an error."""

import random
import threading
import time

import pytest

from spark_kafka_source.admin.transactions import describe_transactions
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.exactly_once.decision_store import DecisionStore
from spark_kafka_source.exactly_once.errors import (
    DecidedRowsLostError,
    OtherDriverError,
    PrefixInUseError,
    TransactionTimedOutError,
)
from tests.exactly_once.conftest import Trial
from tests.exactly_once.dying import CrashError, dies_at
from tests.exactly_once.query import IN_TIME_SECONDS, Run, client_of
from tests.exactly_once.steps import Step
from tests.producer.blocking import BlockingCoordinator

DUELS = 5
MOST_JITTER_SECONDS = 0.03


def test_two_drivers_at_once(trial: Trial) -> None:
    """Two runs commit the same micro-batch at any distance of time."""
    chance = random.Random(1)
    for batch_id in range(DUELS):
        runs = [trial.query.start(), trial.query.start()]
        errors: list[KafkaError] = []

        def fight(run: Run, errors: list[KafkaError] = errors, batch_id: int = batch_id) -> None:
            winners = run.write(batch_id)
            jitter = [chance.uniform(0, MOST_JITTER_SECONDS) for _ in Step]
            try:
                run.commit(batch_id, winners, lambda step: time.sleep(jitter[step.value - 1]))
            except KafkaError as error:
                errors.append(error)
                run.abort(batch_id, winners)

        threads = [threading.Thread(target=fight, args=[run]) for run in runs]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        # Brokers of the second generation have none but this for a commit that is fenced halfway.
        known = [each for each in errors if "UNKNOWN_SERVER_ERROR" not in str(each)]
        # The other one's abort may have ended the transactions of this one.
        expected = OtherDriverError | TransactionTimedOutError
        assert all(isinstance(each, expected) for each in known), errors
        if len(errors) == 2:  # Each has fenced the other: then the query is started once more.
            run = trial.query.start()
            run.commit(batch_id, run.write(batch_id))
    trial.judge()


def test_a_driver_that_comes_late_decides_nothing(trial: Trial) -> None:
    """The driver stops before its decision. Meanwhile another run writes two more micro-batches."""
    late, other = trial.query.start(), trial.query.start()
    winners = late.write(0)

    def meanwhile(step: Step) -> None:
        if step is Step.RECORDED:
            other.commit(0, other.write(0))
            other.commit(1, other.write(1))

    with pytest.raises(OtherDriverError, match="Another driver now decides under"):
        late.commit(0, winners, meanwhile)
    with pytest.raises(OtherDriverError, match="Another driver now decides under"):
        late.commit(0, winners)
    late.abort(0, winners)
    again = trial.query.start()
    winners = again.write(0)
    with pytest.raises(PrefixInUseError, match="rolled back, or the query runs twice"):
        again.commit(0, winners)
    again.abort(0, winners)
    trial.judge()


@pytest.mark.parametrize("step", [Step.DECIDED, Step.ENDED])
def test_a_driver_that_comes_late_ends_what_it_has_decided(step: Step, trial: Trial) -> None:
    late, other = trial.query.start(), trial.query.start()

    def meanwhile(found: Step) -> None:
        if found is step:
            other.commit(0, other.write(0))
            other.commit(1, other.write(1))

    late.commit(0, late.write(0), meanwhile)
    other.commit(2, other.write(2))
    trial.judge()


def test_a_second_driver_on_an_old_checkpoint(trial: Trial) -> None:
    """The decision's ids are in use again, which proves that it was committed."""
    run = trial.query.start()
    run.commit(0, run.write(0))
    going_on = run.write(1)
    second = trial.query.start()
    second.commit(0, second.write(0))
    with pytest.raises((OtherDriverError, TransactionTimedOutError)):
        run.commit(1, going_on)
    run.abort(1, going_on)
    third = trial.query.start()
    third.commit(1, third.write(1))
    trial.judge()


def test_a_driver_of_which_a_part_is_ended_while_another_undoes_it(trial: Trial) -> None:
    """One of two transactions times out after the decision.

    The driver wakes, and ends the other one.

    That is between the look of the second driver and its undoing of what is left.
    """
    run, second = trial.query.start(), trial.query.start()
    first, other = run.write(0)
    with pytest.raises(CrashError):
        run.commit(0, [first, other], dies_at(Step.DECIDED))
    with client_of(trial.query.servers) as client:
        BlockingCoordinator(client, first.transactional_id).end(first.producer, commit=False)

        def wakes(step: Step) -> None:
            if step is Step.READ:
                end = BlockingCoordinator(client, other.transactional_id)
                end.end(other.producer, commit=True)

        replayed = second.write(0)
        with pytest.raises(DecidedRowsLostError, match="1 are aborted: ids that end"):
            second.commit(0, replayed, wakes)
    second.abort(0, replayed)


def test_a_run_that_goes_on_after_a_commit_that_failed(trial: Trial) -> None:
    """foreachBatch can swallow the error. The decided transactions are ended all the same."""
    run = trial.query.start()
    with pytest.raises(CrashError):
        run.commit(0, run.write(0), dies_at(Step.DECIDED))
    run.commit(1, run.write(1))
    trial.judge()


def test_a_write_that_is_repeated_in_the_same_run_loses_nothing(trial: Trial) -> None:
    """foreachBatch can try again.

    The write says so, and the next run ends the decided transactions.
    """
    run = trial.query.start()
    with pytest.raises(CrashError):
        run.commit(0, run.write(0), dies_at(Step.DECIDED))
    again = run.write(0)
    with pytest.raises(PrefixInUseError, match="Do not repeat a write that failed"):
        run.commit(0, again)
    run.abort(0, again)
    trial.judge()


def test_an_attempt_of_the_same_number_leaves_the_first_alone(trial: Trial) -> None:
    """Spark can run a stage twice, and both attempts can reach their end."""
    run = trial.query.start()
    first, second = run.write(0), run.write(0)
    assert {each.transactional_id for each in first}.isdisjoint(
        each.transactional_id for each in second
    )
    run.commit(0, first)
    trial.judge()


@pytest.mark.parametrize("step", [None, *Step])
def test_an_abort_of_what_may_be_decided(step: Step | None, trial: Trial) -> None:
    """Spark calls `abort` after `commit` has raised. The abort commits decided transactions."""
    run = trial.query.start()
    winners = run.write(0)
    if step is not None:
        with pytest.raises(CrashError):
            run.commit(0, winners, dies_at(step))
    run.abort(0, winners)
    is_decided = step is not None and step.value >= Step.DECIDED.value
    if is_decided:
        trial.judge()
    run = trial.query.start()
    run.commit(0, run.write(0))
    trial.judge()


def test_a_driver_that_is_fenced_says_so_whichever_step_it_is_at(trial: Trial) -> None:
    run, query = trial.query.start(), trial.query
    for batch_id, step in enumerate([Step.FENCED, Step.READ, Step.CHECKED, Step.RECORDED]):
        winners = run.write(batch_id)

        def fence(found: Step, step: Step = step) -> None:
            if found is step:
                with client_of(query.servers, **query.settings) as client:
                    client.run(DecisionStore(client, query.names).fence())

        with pytest.raises(OtherDriverError):
            run.commit(batch_id, winners, fence)
        run.abort(batch_id, winners)
        run = trial.query.start()
        run.commit(batch_id, run.write(batch_id))
    trial.judge()


def test_what_was_aborted_amid_its_rows_is_not_decided(trial: Trial) -> None:
    """This also holds if the task has written rows since, in a transaction that began later."""
    query = trial.query
    run = query.start()
    with run.producer() as producer, client_of(query.servers) as client:
        task_id = run.begin(producer, 0).transactional_id
        producer.send(query.topic, b"aborted", partition=0).result(IN_TIME_SECONDS)
        found = client.run(describe_transactions(client, [task_id]))[task_id]
        assert found is not None
        BlockingCoordinator(client, task_id).end(found.producer, commit=False)
        producer.send(query.topic, b"since", partition=1)
        prepared = producer.prepare_transaction()
    assert prepared is not None
    with pytest.raises(TransactionTimedOutError, match="has aborted it in the middle of its rows"):
        run.commit(0, [prepared])
    run.abort(0, [prepared])
    trial.judge()
