"""Transactions that time out before a decision, and after one."""

import time
from collections.abc import Collection, Iterable
from contextlib import suppress

import pytest

from spark_kafka_source.admin.transactions import ABORTED, COMMITTED, describe_transactions
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.exactly_once.decision import Outcome
from spark_kafka_source.exactly_once.errors import DecidedRowsLostError, TransactionTimedOutError
from spark_kafka_source.exactly_once.repair import finish
from spark_kafka_source.net import Deadline
from spark_kafka_source.producer import PreparedTransaction
from tests.exactly_once.conftest import REAL_BROKERS, Trial
from tests.exactly_once.dying import at
from tests.exactly_once.query import Query, Run, client_of
from tests.exactly_once.steps import Step
from tests.producer.blocking import BlockingCoordinator

# The broker in memory lets transactions be open for ever.
pytestmark = [
    pytest.mark.kafka,
    pytest.mark.long,
    pytest.mark.parametrize("trial", REAL_BROKERS, indirect=True),
]

SOON_MS = 3_000
PATIENCE_MS = 60_000


def wait_until_aborted(query: Query, transactions: Iterable[PreparedTransaction]) -> None:
    """Wait until the broker has aborted the transactions for their timeouts."""
    wait_until_ended(query, transactions, ABORTED)


def wait_until_ended(
    query: Query,
    transactions: Iterable[PreparedTransaction],
    states: Collection[str] = ABORTED | COMMITTED,
) -> None:
    """Wait until the transactions are in one of these states."""
    names = [each.transactional_id for each in transactions]
    deadline = Deadline.after_ms(PATIENCE_MS)
    with client_of(query.servers) as client:
        while any(
            each is None or each.state not in states
            for each in client.run(describe_transactions(client, names)).values()
        ):
            assert not deadline.expired, names
            time.sleep(0.1)


def decided_in_time(
    query: Query, *, patient: int, soon_ms: int = SOON_MS
) -> tuple[Run, list[PreparedTransaction]]:
    """Write and decide a micro-batch of two tasks. Then die before the end of the transactions.

    So many of the tasks are patient; the transactions of the others are soon out of time. Where
    that is before the decision, or amid a task's rows, since the machine is busy, they are given
    longer. Return the run too: it cannot be read from the decision yet, as brokers may still be
    ending its transaction.
    """
    late: KafkaError | None = None
    for timeout_ms in (soon_ms, 4 * soon_ms, 16 * soon_ms):
        run = query.start()
        winners: list[PreparedTransaction] = []
        try:
            for task in range(2):
                query.timeout_ms = PATIENCE_MS if task < patient else timeout_ms
                with run.producer() as producer:
                    winners.append(run.write_task(producer, 0, task))
            run.commit(0, winners, _interrupting)
        except KeyboardInterrupt:
            return run, winners
        except KafkaError as error:
            late = error
            run.abort(0, winners)
    raise AssertionError("nothing was decided in time") from late


def test_out_of_time_before_the_decision(trial: Trial) -> None:
    query = trial.query
    for query.timeout_ms in (SOON_MS, 4 * SOON_MS, 16 * SOON_MS):
        run = query.start()
        with suppress(KafkaError):  # On a busy machine that may be amid a task's rows.
            winners = run.write(0)
            break
    else:
        pytest.fail("nothing was written in time")
    wait_until_aborted(query, winners)
    with pytest.raises(TransactionTimedOutError, match="is in state CompleteAbort"):
        run.commit(0, winners)
    run.abort(0, winners)
    query.timeout_ms = PATIENCE_MS
    run = query.start()
    run.commit(0, run.write(0))
    trial.judge()


def test_out_of_time_as_a_whole_after_the_decision(trial: Trial) -> None:
    """Nobody has seen a row of it, so it is decided anew, as often as necessary."""
    query = trial.query
    for _ in range(2):
        _, winners = decided_in_time(query, patient=0)
        wait_until_aborted(query, winners)
    query.timeout_ms = PATIENCE_MS
    run = query.start()
    run.commit(0, run.write(0))
    run.commit(1, run.write(1))
    trial.judge()


def test_out_of_time_in_part_of_which_nothing_is_seen(trial: Trial) -> None:
    """The open transactions are aborted first. Then the micro-batch is decided anew."""
    query = trial.query
    _, (_, late) = decided_in_time(query, patient=1)
    wait_until_aborted(query, [late])
    query.timeout_ms = PATIENCE_MS
    run = query.start()
    run.commit(0, run.write(0))
    trial.judge()


def test_out_of_time_in_part_after_the_decision(trial: Trial) -> None:
    """One task is committed, so the other one's rows are lost. No replay hides the loss."""
    query = trial.query
    _, (committed, late) = decided_in_time(query, patient=1)
    wait_until_aborted(query, [late])
    with client_of(query.servers) as client:
        coordinator = BlockingCoordinator(client, committed.transactional_id)
        coordinator.end(committed.producer, commit=True)
    query.timeout_ms = PATIENCE_MS
    for _ in range(2):
        replay = query.start()
        winners = replay.write(0)
        with pytest.raises(DecidedRowsLostError) as raised:
            replay.commit(0, winners)
        assert raised.value.found == {Outcome.ABORTED: (late.transactional_id,)}
        assert "Of its 2 transactions 1 are aborted: ids that end with" in str(raised.value)
        assert f"'spark-kafka-source groups delete {query.prefix}'" in str(raised.value)
        replay.abort(0, winners)
    query.written -= set(query.values(0, 1))
    trial.judge()


@pytest.mark.parametrize("tasks", [2, 1, 0])
def test_out_of_time_after_an_error_that_was_swallowed(tasks: int, trial: Trial) -> None:
    """The next commit says so, also if its tasks have begun under the same ids, or if it has none.

    The query can be started again once somebody has accepted the loss.
    """
    query = trial.query
    run, winners = decided_in_time(query, patient=0)
    lost = set(query.written)
    wait_until_aborted(query, winners)
    query.timeout_ms = PATIENCE_MS
    later = run.write(1, tasks)
    with pytest.raises(DecidedRowsLostError) as raised:
        run.commit(1, later)
    assert raised.value.found == {Outcome.ABORTED: tuple(each.transactional_id for each in winners)}
    assert "The query does not write that batch again" in str(raised.value)
    run.abort(1, later)
    with client_of(query.servers) as client:
        finish(client, query.names, accept_loss=True)
    run = query.start()
    run.commit(1, run.write(1))
    query.written -= lost
    trial.judge()


@pytest.mark.parametrize("step", [Step.CHECKED, Step.RECORDED, Step.DECIDED])
def test_a_driver_that_stands_still_until_a_transaction_is_out_of_time(
    step: Step, trial: Trial
) -> None:
    """Of two transactions one is patient. It must not be committed if the other one is gone."""
    query = trial.query
    run = query.start()
    winners = []
    for task, timeout_ms in enumerate((4 * SOON_MS, PATIENCE_MS)):
        query.timeout_ms = timeout_ms
        with run.producer() as producer:
            winners.append(run.write_task(producer, 0, task))
    stands_still = at(step, lambda: wait_until_aborted(query, winners[:1]))
    with pytest.raises(TransactionTimedOutError, match=r"stood still|only -?\d+ ms of"):
        run.commit(0, winners, stands_still)
    run.abort(0, winners)
    query.timeout_ms = PATIENCE_MS
    run = query.start()
    run.commit(0, run.write(0))
    trial.judge()


def test_a_replay_whose_rows_take_longer_than_the_decided_ones_may_wait(trial: Trial) -> None:
    """Its first task commits what was decided. Nothing was committed before.

    The decided transactions time out after half a minute. The first task commits them sooner.
    """
    query = trial.query
    _, (committed, late) = decided_in_time(query, patient=1, soon_ms=PATIENCE_MS // 2)
    with client_of(query.servers) as client:
        coordinator = BlockingCoordinator(client, committed.transactional_id)
        coordinator.end(committed.producer, commit=True)
    query.timeout_ms = PATIENCE_MS
    run = query.start()
    run.look(0)
    wait_until_ended(query, [late])
    run.commit(0, run.write(0))
    trial.judge()


def _interrupting(step: Step) -> None:
    if step is Step.DECIDED:
        raise KeyboardInterrupt
