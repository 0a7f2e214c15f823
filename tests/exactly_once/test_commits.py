"""Unusual commits, in memory: the errors, and each row once."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from spark_kafka_source.errors import (
    BrokerError,
    KafkaTimeoutError,
    ProtocolError,
    error_named,
)
from spark_kafka_source.exactly_once import endings, step_runner
from spark_kafka_source.exactly_once.decision import Outcome
from spark_kafka_source.exactly_once.errors import (
    DecidedRowsLostError,
    NotYetCommittedError,
    PartlyCommittedError,
    PrefixInUseError,
    PrefixIsGroupError,
    TransactionTimedOutError,
)
from spark_kafka_source.producer import PreparedTransaction
from spark_kafka_source.protocol import Request
from spark_kafka_source.protocol.messages.describe_transactions import DescribeTransactionsRequest
from spark_kafka_source.protocol.messages.groups import OffsetFetchRequest
from spark_kafka_source.protocol.messages.list_transactions import ListTransactionsRequest
from spark_kafka_source.protocol.messages.produce import InitProducerIdRequest
from spark_kafka_source.protocol.messages.transactions import (
    EndTxnRequest,
    TxnOffsetCommitRequest,
)
from spark_kafka_source.testing.memory import Action, MemoryBroker
from spark_kafka_source.testing.memory.cluster import Pending
from spark_kafka_source.testing.memory.transactions import Transaction
from spark_kafka_source.topic_partition import TopicPartition
from tests.exactly_once.conftest import (
    PARTITIONS,
    Trial,
    commit_offset,
    for_each,
    in_memory_trial,
    transaction_of,
)
from tests.exactly_once.dying import CrashError, at, dies_at
from tests.exactly_once.query import Query, Run, RunDriver
from tests.exactly_once.steps import Step

EACH_REQUEST = for_each(
    InitProducerIdRequest,
    OffsetFetchRequest,
    ListTransactionsRequest,
    DescribeTransactionsRequest,
    TxnOffsetCommitRequest,
    EndTxnRequest,
)
EACH_OF_A_DECISION = for_each(TxnOffsetCommitRequest, EndTxnRequest)
DENIED = error_named("TRANSACTIONAL_ID_AUTHORIZATION_FAILED")


@pytest.fixture
def trial(broker: MemoryBroker, topic: str) -> Trial:
    return in_memory_trial(broker, topic)


@pytest.fixture
def query(trial: Trial) -> Query:
    return trial.query


def time_out(broker: MemoryBroker, prepared: PreparedTransaction) -> None:
    transaction_of(broker, prepared).time_out(broker.cluster)


def commit_partly(run: Run, winners: list[PreparedTransaction], ended: int = 0) -> None:
    """Decide, commit this number of transactions, and die."""
    left = iter([None] * ended)

    def reached(step: Step) -> None:
        if step is Step.DECIDED and not ended:
            raise CrashError
        if step is Step.ONE_ENDED and next(left, 0) == 0:
            raise CrashError

    with pytest.raises(CrashError):
        run.commit(0, winners, reached)


# -- brokers that do not answer --------------------------------------------------------------------


@EACH_REQUEST
@pytest.mark.parametrize("action", [Action.LOSE, Action.CLOSE])
def test_an_answer_that_is_lost_costs_nothing(
    action: Action, request_type: type[Request[Any]], broker: MemoryBroker, trial: Trial
) -> None:
    run = trial.query.start()
    for batch_id in range(2):
        winners = run.write(batch_id)
        broker.control(request_type, action, times=2)
        run.commit(batch_id, winners)
    trial.judge()


@EACH_OF_A_DECISION
@pytest.mark.parametrize("action", [Action.LOSE, Action.CLOSE])
def test_an_answer_to_a_decision_that_is_lost_costs_nothing(
    action: Action, request_type: type[Request[Any]], broker: MemoryBroker, trial: Trial
) -> None:
    run = trial.query.start()
    winners = run.write(0)
    lose = partial(broker.control, request_type, action, times=2)
    run.commit(0, winners, at(Step.READ, lose))
    assert len(broker.requests(request_type)) >= 4
    trial.judge()


@EACH_OF_A_DECISION
def test_a_denied_decision_loses_nothing_and_doubles_nothing(
    request_type: type[Request[Any]], broker: MemoryBroker, trial: Trial
) -> None:
    run = trial.query.start()
    winners = run.write(0)
    deny = partial(broker.control, request_type, DENIED, times=None)
    with pytest.raises(BrokerError, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
        run.commit(0, winners, at(Step.READ, deny))
    broker.forget()
    run.abort(0, winners)
    run = trial.query.start()
    run.commit(0, run.write(0))
    trial.judge()


@EACH_REQUEST
def test_a_coordinator_that_is_not_ready_costs_nothing(
    request_type: type[Request[Any]], broker: MemoryBroker, trial: Trial
) -> None:
    run = trial.query.start()
    winners = run.write(0)
    for name in ("COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"):
        broker.control(request_type, error_named(name))
    run.commit(0, winners)
    trial.judge()


@EACH_REQUEST
def test_a_denial_at_any_request_loses_nothing_and_doubles_nothing(
    request_type: type[Request[Any]], broker: MemoryBroker, trial: Trial
) -> None:
    run = trial.query.start()
    winners = run.write(0)
    broker.control(request_type, DENIED, times=None)
    if request_type is ListTransactionsRequest:
        run.commit(0, winners)
    else:
        with pytest.raises(BrokerError, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
            run.commit(0, winners)
    broker.forget()
    run.abort(0, winners)
    run = trial.query.start()
    run.commit(0, run.write(0))
    trial.judge()


def test_open_transactions_that_cannot_be_listed_are_left_to_their_timeouts(
    broker: MemoryBroker, trial: Trial, caplog: pytest.LogCaptureFixture
) -> None:
    run = trial.query.start()
    winners = run.write(0)
    run.write(0)
    broker.control(DescribeTransactionsRequest, DENIED)
    run.commit(0, winners)
    assert "Open transactions are left to their timeouts" in caplog.text
    assert DENIED.name in caplog.text


def test_what_is_decided_and_cannot_be_ended_is_not_called_lost(
    broker: MemoryBroker, trial: Trial
) -> None:
    run = trial.query.start()
    winners = run.write(0, 3)

    def deny(step: Step) -> None:
        if step is Step.DECIDED:
            broker.control(EndTxnRequest, DENIED, times=2)

    with pytest.raises(NotYetCommittedError) as raised:
        run.commit(0, winners, deny)
    assert len(raised.value.left) == 2
    assert raised.value.total == 3
    assert "2 of its 3 transactions could not be committed" in str(raised.value)
    assert "within 'kafka.transaction.timeout.ms'" in str(raised.value)
    run.abort(0, winners)
    trial.judge()


def hurry(driver: RunDriver) -> None:
    """Limit requests to 500 ms and calls to 600 ms from now on."""
    config = driver._client.config
    connection = replace(config.connection, request_timeout_ms=500)
    driver._client.config = replace(config, connection=connection, default_api_timeout_ms=600)


def test_all_ends_together_take_no_longer_than_one_may(broker: MemoryBroker, trial: Trial) -> None:
    run = trial.query.start()
    winners = run.write(0, 40)

    def silence(request: EndTxnRequest) -> Action:
        if not request.transactional_id.endswith(".control"):
            return Action.SILENCE
        if request.committed:  # All before the ends has the usual time.
            hurry(driver)
        return Action.HANDLE

    broker.control(EndTxnRequest, silence, times=None)
    with run.driver() as driver, pytest.raises(NotYetCommittedError) as raised:
        driver.commit(run.batch(0), winners)
    assert len(raised.value.left) == 40
    assert isinstance(raised.value.error, KafkaTimeoutError)
    # Eight at once are tried again. There was no time left for the others.
    assert len(broker.requests(EndTxnRequest)) <= 2 + 40 + 2 * 8
    broker.forget()
    run.abort(0, winners)
    trial.judge()


def test_a_decision_whose_answer_is_lost_for_good_is_found_by_abort(
    broker: MemoryBroker, trial: Trial
) -> None:
    run = trial.query.start()
    winners = run.write(0)

    def lose(step: Step) -> None:
        if step is Step.RECORDED:
            hurry(driver)
            broker.control(EndTxnRequest, Action.LOSE)
            broker.control(EndTxnRequest, Action.SILENCE, times=None)

    said = r"EndTxn \(commit\) of transactional id '.*control"
    with run.driver(lose) as driver, pytest.raises(KafkaTimeoutError, match=said):
        driver.commit(run.batch(0), winners)
    broker.forget()
    run.abort(0, winners)
    trial.judge()


# -- decisions that are not those of this query ----------------------------------------------------


def test_a_prefix_that_is_a_group_of_consumers(broker: MemoryBroker, query: Query) -> None:
    run = query.start()
    run.commit(0, run.write(0))
    commit_offset(broker, query.prefix, TopicPartition(query.topic, 1), 0)
    winners = run.write(1)
    with pytest.raises(PrefixIsGroupError) as raised:
        run.commit(1, winners)
    assert str(raised.value) == (
        f"Option 'transactionalIdPrefix': '{query.prefix}' is also a group of consumers: "
        f"{query.topic}-1 is committed there at offset 0: '' is no decision. Decisions are kept in "
        "the group of that name, and the group must have no other offsets. Give a prefix that is "
        "the name of no group"
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('"v":2', '"v":3'), "it is of version 3; up to 2 are known"),
        (('"parts":1', '"parts":2'), "has no part of it"),
    ],
)
def test_a_decision_that_cannot_be_read(
    change: tuple[str, str], said: str, broker: MemoryBroker, query: Query
) -> None:
    run = query.start()
    run.commit(0, run.write(0))
    text = broker.cluster.metadata[query.prefix, query.where].replace(*change)
    commit_offset(broker, query.prefix, query.where, 0, text)
    winners = run.write(1)
    for call in (run.commit, run.abort):
        with pytest.raises(ProtocolError, match=said) as raised:
            call(1, winners)
        assert f"the last decision in group {query.prefix!r} cannot be read" in str(raised.value)


def test_a_decision_may_be_at_any_offset(broker: MemoryBroker, trial: Trial) -> None:
    """A later version may commit another offset than the number of the micro-batch."""
    query = trial.query
    run = query.start()
    run.commit(0, run.write(0))
    text = broker.cluster.metadata[query.prefix, query.where]
    commit_offset(broker, query.prefix, query.where, 99, text)
    run = query.start()
    run.commit(0, run.write(0))
    run.commit(1, run.write(1))
    trial.judge()


def test_a_group_that_is_given_too_little_metadata(broker: MemoryBroker, query: Query) -> None:
    run = query.start()
    winners = run.write(0)
    broker.control(TxnOffsetCommitRequest, error_named("OFFSET_METADATA_TOO_LARGE"))
    with pytest.raises(BrokerError, match=r"decisions need 4096 of 'offset\.metadata\."):
        run.commit(0, winners)


def test_another_query_under_the_same_prefix(trial: Trial) -> None:
    query = trial.query
    run = query.start()
    run.commit(0, run.write(0))
    other = Query(query.servers, query.topic, PARTITIONS, query.prefix).start()
    winners = other.write(3)
    with pytest.raises(PrefixInUseError, match="another query, or the same with another check"):
        other.commit(3, winners)
    other.abort(3, winners)
    trial.judge()


def test_a_checkpoint_that_was_rolled_back(trial: Trial) -> None:
    run = trial.query.start()
    for batch_id in range(2):
        run.commit(batch_id, run.write(batch_id))
    run = trial.query.start()
    for count in (2, 0):
        with pytest.raises(PrefixInUseError, match="The checkpoint was rolled back"):
            run.commit(0, run.write(0, count))
    run = trial.query.start()
    run.commit(2, run.write(2))
    trial.judge()


def test_batches_that_are_not_the_first_and_find_no_decision(
    query: Query, caplog: pytest.LogCaptureFixture
) -> None:
    run = query.start()
    run.commit(4, [])
    assert not caplog.records
    run.commit(5, run.write(5))
    assert [each.levelname for each in caplog.records] == ["WARNING"]
    assert "nothing was decided before it under " in caplog.text
    run.commit(6, run.write(6))
    assert len(caplog.records) == 1


def test_a_new_query_whose_first_batch_has_no_rows(
    query: Query, caplog: pytest.LogCaptureFixture
) -> None:
    """Spark's first micro-batch of a query that begins at the latest offsets."""
    run = query.start()
    run.commit(0, [])
    run.commit(1, run.write(1))
    run.commit(2, run.write(2))
    assert not caplog.records


def test_two_writes_of_a_micro_batch_under_one_prefix(trial: Trial) -> None:
    """The second write is refused. With its own prefix it succeeds. The first is not repeated."""
    query = trial.query
    run = query.start()
    with run.driver() as driver:
        driver.commit(run.batch(0), run.write(0))
        second = run.write(0)
        with pytest.raises(PrefixInUseError, match="a prefix of its own"):
            driver.commit(run.batch(0), second)
    run.abort(0, second)
    trial.judge()
    run = query.start()
    run.commit(0, run.write(0))
    run.commit(1, run.write(1))
    trial.judge()


def test_a_write_that_is_repeated_after_its_abort_has_ended_it(
    broker: MemoryBroker, trial: Trial
) -> None:
    query = trial.query
    run = query.start()
    winners = run.write(0)
    with pytest.raises(CrashError):
        run.commit(0, winners, dies_at(Step.DECIDED))
    with run.driver() as driver:
        driver.abort(run.batch(0), winners)
        again = run.write(0)
        with pytest.raises(PrefixInUseError, match="Do not repeat a write that failed"):
            driver.commit(run.batch(0), again)
    run.abort(0, again)
    run = query.start()
    run.commit(0, run.write(0))
    trial.judge()


# -- micro-batches without rows --------------------------------------------------------------------


def test_a_micro_batch_without_rows_decides_nothing(broker: MemoryBroker, trial: Trial) -> None:
    run = trial.query.start()
    run.commit(0, [])
    run.commit(1, [])
    assert trial.query.prefix not in broker.cluster.committed
    run.commit(2, run.write(2))
    run.commit(3, [])
    trial.judge()


def test_a_replay_without_rows_ends_what_was_decided(trial: Trial) -> None:
    run = trial.query.start()
    commit_partly(run, run.write(0))
    trial.query.start().commit(0, [])
    trial.judge()


# -- places of decisions ---------------------------------------------------------------------------


def test_the_last_decision_counts_wherever_it_is_kept(broker: MemoryBroker, trial: Trial) -> None:
    """A micro-batch may have two decisions, at two topics, if the first timed out as a whole."""
    query = trial.query
    broker.create_topic("a")
    broker.create_topic("z")
    for first, second in (("a", "z"), ("z", "a")):
        query.prefix = f"p-{first}"
        run = query.start()
        winners = run.write(0)
        with run.driver(dies_at(Step.DECIDED)) as driver, pytest.raises(CrashError):
            driver.commit(run.batch(0), winners, TopicPartition(first, 0))
        for each in winners:
            time_out(broker, each)
        run = query.start()
        with run.driver() as driver:
            driver.commit(run.batch(0), run.write(0), TopicPartition(second, 0))
        run = query.start()
        with run.driver() as driver:
            driver.commit(run.batch(0), run.write(0), TopicPartition(first, 0))
        trial.judge()
        broker.create_topic(query.topic, PARTITIONS)
        query.written.clear()


def test_a_decision_that_is_about_to_be_made_is_waited_for(
    broker: MemoryBroker, trial: Trial
) -> None:
    """Brokers before 4.0 end a transaction before its offsets can be seen."""
    query = trial.query
    run = query.start()
    run.commit(0, run.write(0))
    kept = broker.cluster.committed.pop(query.prefix)
    metadata = broker.cluster.metadata[query.prefix, query.where]
    pending = Pending(0, next(broker.cluster.commits), metadata)
    broker.cluster.pending[query.prefix] = {1: {query.where: pending}}
    asked = iter(range(3))

    def later(_: object) -> Action:
        if next(asked) == 2:  # Of all first, then of this one, which is to come.
            broker.cluster.pending.clear()
            broker.cluster.committed[query.prefix] = kept
        return Action.HANDLE

    broker.control(OffsetFetchRequest, later, times=3)
    run = query.start()
    run.commit(0, run.write(0))
    trial.judge()


# -- what was decided and is gone ------------------------------------------------------------------


def test_what_is_left_of_a_decision_is_aborted_before_it_is_decided_anew(
    broker: MemoryBroker, trial: Trial
) -> None:
    run = trial.query.start()
    winners = run.write(0, 3)
    commit_partly(run, winners)
    time_out(broker, winners[1])
    run = trial.query.start()
    run.commit(0, run.write(0, 3))
    assert {transaction_of(broker, each).state for each in winners} == {"CompleteAbort"}
    trial.judge()


def test_it_is_not_decided_anew_where_its_driver_commits_it_meanwhile(
    broker: MemoryBroker, trial: Trial
) -> None:
    run = trial.query.start()
    winners = run.write(0)
    commit_partly(run, winners)
    time_out(broker, winners[0])

    def wakes(request: EndTxnRequest) -> Action:
        if request.transactional_id != trial.query.names.control_id:
            found: Transaction = broker.cluster.transactions[request.transactional_id]
            found.end_and_bump(broker.cluster, commit=True)
        return Action.HANDLE

    broker.control(EndTxnRequest, wakes, times=None)
    replay = trial.query.start()
    replayed = replay.write(0)
    with pytest.raises(DecidedRowsLostError) as raised:
        replay.commit(0, replayed)
    assert raised.value.found == {Outcome.ABORTED: (winners[0].transactional_id,)}
    replay.abort(0, replayed)


def test_it_is_not_decided_anew_where_what_is_left_cannot_be_aborted(
    broker: MemoryBroker, trial: Trial
) -> None:
    run = trial.query.start()
    winners = run.write(0)
    commit_partly(run, winners)
    time_out(broker, winners[0])
    broker.control(EndTxnRequest, DENIED)
    replay = trial.query.start()
    replayed = replay.write(0)
    with pytest.raises(BrokerError, match=DENIED.name):
        replay.commit(0, replayed)
    replay.abort(0, replayed)
    replay = trial.query.start()
    replay.commit(0, replay.write(0))
    trial.judge()


def test_ids_in_use_again_say_nothing_of_what_was_decided(trial: Trial) -> None:
    run = trial.query.start()
    run.commit(0, run.write(0))
    run.write(1)
    replay = trial.query.start()
    replay.commit(0, replay.write(0))
    replay.commit(1, replay.write(1))
    trial.judge()


def test_rows_that_are_lost_while_they_are_ended(broker: MemoryBroker, trial: Trial) -> None:
    run = trial.query.start()
    winners = run.write(0)

    def late(step: Step) -> None:
        if step is Step.DECIDED:
            time_out(broker, winners[1])

    with pytest.raises(DecidedRowsLostError) as raised:
        run.commit(0, winners, late)
    assert raised.value.found == {Outcome.ABORTED: (winners[1].transactional_id,)}
    assert transaction_of(broker, winners[0]).state == "CompleteCommit"


@pytest.mark.parametrize("tasks", [1, 2])
def test_what_is_aborted_as_a_whole_while_it_is_ended_is_not_lost(
    tasks: int, broker: MemoryBroker, trial: Trial
) -> None:
    """The driver stands still after its look at the clock. No reader has seen a row."""
    run = trial.query.start()
    winners = run.write(0, tasks)

    def late(step: Step) -> None:
        if step is Step.DECIDED:
            for each in winners:
                time_out(broker, each)

    with pytest.raises(TransactionTimedOutError, match="no reader has seen a row of it"):
        run.commit(0, winners, late)
    run = trial.query.start()
    run.commit(0, run.write(0, tasks))
    trial.judge()


def test_brokers_that_are_gone_are_told_before_what_is_lost(
    broker: MemoryBroker, trial: Trial
) -> None:
    """The loss is unknown while some transactions can still be committed."""
    run = trial.query.start()
    winners = run.write(0, 3)

    def late(step: Step) -> None:
        if step is Step.DECIDED:
            time_out(broker, winners[1])
            broker.control(EndTxnRequest, DENIED)

    with pytest.raises(NotYetCommittedError):
        run.commit(0, winners, late)
    with pytest.raises(DecidedRowsLostError):
        trial.query.start().commit(0, [])


# -- checks before a decision ----------------------------------------------------------------------


@pytest.mark.parametrize("clock_ms", [0, 1_000_000_000_000, 1 << 45])
def test_broker_clocks_may_differ_from_the_driver_clock(
    clock_ms: int, broker: MemoryBroker, trial: Trial
) -> None:
    broker.cluster.now_ms = lambda: clock_ms
    run = trial.query.start()
    run.commit(0, run.write(0))
    trial.judge()


@pytest.fixture
def clock_ms(broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch) -> int:
    """The time by the clocks of the brokers and of the driver, which stand still."""
    found: int = broker.cluster.now_ms()
    broker.cluster.now_ms = lambda: found
    clock = SimpleNamespace(monotonic=lambda: 1_000.0, time_ns=lambda: found * 1_000_000)
    monkeypatch.setattr(step_runner, "time", clock)
    return found


def written_with(
    left_ms: int, clock_ms: int, broker: MemoryBroker, trial: Trial
) -> tuple[Run, list[PreparedTransaction]]:
    """Write a micro-batch, and let one of its transactions have this time left.

    Return the run, and the transactions.
    """
    run = trial.query.start()
    winners = run.write(0)
    late = transaction_of(broker, winners[1])
    late.started_at_ms = clock_ms + left_ms - trial.query.timeout_ms
    return run, winners


@pytest.mark.parametrize(("timeout_ms", "left_ms"), [(60_000, 9_000), (10_000, 1_900)])
def test_a_transaction_with_little_time_left_is_not_decided(
    timeout_ms: int, left_ms: int, clock_ms: int, broker: MemoryBroker, trial: Trial
) -> None:
    trial.query.timeout_ms = timeout_ms
    run, winners = written_with(left_ms, clock_ms, broker, trial)
    with pytest.raises(TransactionTimedOutError, match=r"only \d+ ms of 'kafka.transaction"):
        run.commit(0, winners)
    run.abort(0, winners)
    run = trial.query.start()
    run.commit(0, run.write(0))
    trial.judge()


@pytest.mark.parametrize(("timeout_ms", "left_ms"), [(60_000, 11_500), (10_000, 3_500)])
def test_a_transaction_with_enough_time_left_is_decided(
    timeout_ms: int, left_ms: int, clock_ms: int, broker: MemoryBroker, trial: Trial
) -> None:
    """Enough is ten seconds, or a fifth of the timeout if that is less."""
    trial.query.timeout_ms = timeout_ms
    run, winners = written_with(left_ms, clock_ms, broker, trial)
    run.commit(0, winners)
    trial.judge()


@pytest.mark.parametrize("how", ["forgotten", "aborted", "timed out"])
def test_a_transaction_that_is_not_open_is_not_decided(
    how: str, broker: MemoryBroker, trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = trial.query.start()
    winners = run.write(0)
    found = transaction_of(broker, winners[0])
    if how == "aborted":
        found.end(broker.cluster, commit=False)
    else:
        found.time_out(broker.cluster)
    if how == "forgotten":
        del broker.cluster.transactions[winners[0].transactional_id]
    said = "is unknown to the brokers" if how == "forgotten" else "is in state CompleteAbort"
    with monkeypatch.context() as patch, pytest.raises(TransactionTimedOutError, match=said):
        patch.setattr(endings, "_OLD_MS", 100)
        run.commit(0, winners)
    run.abort(0, winners)
    run = trial.query.start()
    run.commit(0, run.write(0))
    trial.judge()


def test_an_abort_whose_topic_is_deleted_does_not_wait_for_it(
    broker: MemoryBroker, trial: Trial
) -> None:
    run = trial.query.start()
    winners = run.write(0)
    broker.delete_topic(trial.query.topic)
    with run.driver() as driver:
        driver.abort(run.batch(0), winners)
    assert not broker.requests(TxnOffsetCommitRequest)
    assert {transaction_of(broker, each).state for each in winners} == {"CompleteAbort"}


def test_a_driver_that_remembers_goes_on_after_an_error(broker: MemoryBroker, trial: Trial) -> None:
    """Code in foreachBatch has swallowed it. Nobody has fenced, and nothing was decided."""
    query = trial.query
    run = query.start()
    with run.driver() as driver:
        driver.commit(run.batch(0), run.write(0))
        winners = run.write(1)
        time_out(broker, winners[0])
        with pytest.raises(TransactionTimedOutError):
            driver.commit(run.batch(1), winners)
        driver.commit(run.batch(2), run.write(2))
    query.written -= {*query.values(1, 0), *query.values(1, 1)}
    trial.judge()


# -- what others have left open --------------------------------------------------------------------


def test_what_other_attempts_have_left_open_is_aborted(broker: MemoryBroker, trial: Trial) -> None:
    query = trial.query
    former = query.start()
    left = [*former.write(0), *former.write(0, 1)]
    other = Query(query.servers, query.topic, PARTITIONS, f"{query.prefix}-2").start().write(0)
    run = query.start()
    run.commit(0, run.write(0))
    assert {transaction_of(broker, each).state for each in left} == {"CompleteAbort"}
    assert {transaction_of(broker, each).state for each in other} == {"Ongoing"}


def test_a_replay_aborts_what_was_left_open(broker: MemoryBroker, trial: Trial) -> None:
    """It has listed that before its fence. No driver can decide on it since."""
    run = trial.query.start()
    run.commit(0, run.write(0))
    others = trial.query.start().write(0)
    replay = trial.query.start()
    own = [*replay.write(0), *replay.write(0)]
    replay.commit(0, own[:2])
    assert {transaction_of(broker, each).state for each in own + others} == {"CompleteAbort"}
    replay.commit(1, replay.write(1))
    trial.judge()


# -- without a decision ----------------------------------------------------------------------------


def test_transactions_that_nobody_runs_again(trial: Trial) -> None:
    run = trial.query.start()
    winners = run.write(0, 3)
    with run.driver() as driver:
        driver.end_all(winners)
    trial.judge()


def test_they_are_ended_all_or_none_if_one_has_timed_out(
    broker: MemoryBroker, trial: Trial
) -> None:
    run = trial.query.start()
    winners = run.write(0, 3)
    time_out(broker, winners[2])
    with run.driver() as driver:
        with pytest.raises(TransactionTimedOutError):
            driver.end_all(winners)
        driver.abort_all(winners)
    trial.query.written.clear()
    trial.judge()


def test_transactions_that_could_not_be_ended_are_named(broker: MemoryBroker, trial: Trial) -> None:
    run = trial.query.start()
    winners = run.write(0, 3)
    broker.control(EndTxnRequest, DENIED)
    with run.driver() as driver, pytest.raises(PartlyCommittedError) as raised:
        driver.end_all(winners)
    assert len(raised.value.failed) == 1
    assert "2 of 3 transactions are committed" in str(raised.value)


# -- epochs that come to their end -----------------------------------------------------------------

LAST_EPOCHS = range(32_760, 32_767)


@pytest.mark.parametrize("step", [None, Step.RECORDED, Step.DECIDED, Step.ONE_ENDED])
def test_epochs_of_all_ids_come_to_their_end(
    step: Step | None, broker: MemoryBroker, trial: Trial
) -> None:
    """An id that begins once a second has used up its epochs after nine hours."""
    query = trial.query
    run = query.start()
    run.commit(0, run.write(0))
    for found in broker.cluster.transactions.values():
        found.epoch = LAST_EPOCHS[0]
    run = query.start()
    for batch_id in range(1, 2 * len(LAST_EPOCHS)):
        winners = run.write(batch_id)
        if step is None:
            run.commit(batch_id, winners)
            continue
        with pytest.raises(CrashError):
            run.commit(batch_id, winners, dies_at(step))
        run.abort(batch_id, winners)
        run = query.start()
        run.commit(batch_id, run.write(batch_id))
    assert broker.cluster.transactions[query.names.control_id].epoch < 100
    trial.judge()
