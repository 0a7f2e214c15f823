"""An abort from outside ends nothing that is decided. If it comes too late, it says so."""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from spark_kafka_source import KafkaAdmin
from spark_kafka_source.admin import TransactionNotFoundError
from spark_kafka_source.admin.transactions import abort_transaction
from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import BrokerError, KafkaError, error_named
from spark_kafka_source.exactly_once import repair
from spark_kafka_source.exactly_once.errors import (
    DecidedTransactionError,
    LateAbortError,
    OtherDriverError,
    TransactionTimedOutError,
)
from spark_kafka_source.producer import PreparedTransaction, ProducerId
from spark_kafka_source.protocol import Request
from spark_kafka_source.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from spark_kafka_source.protocol.messages.find_coordinator import FindCoordinatorRequest
from spark_kafka_source.protocol.messages.groups import OffsetFetchRequest
from spark_kafka_source.protocol.messages.produce import InitProducerIdRequest
from spark_kafka_source.protocol.messages.transactions import TxnOffsetCommitRequest
from spark_kafka_source.testing.memory import Action, MemoryBroker
from spark_kafka_source.topic_partition import TopicPartition
from tests.exactly_once.conftest import Trial, commit_offset, transaction_of
from tests.exactly_once.dying import at, decided
from tests.exactly_once.former import FormerCoordinator
from tests.exactly_once.steps import Step
from tests.producer.transactional import begin_as

IN_TIME_SECONDS = 120.0
BEFORE_DECISION = [Step.FENCED, Step.READ, Step.CHECKED, Step.RECORDED]
ABORTED = {"PrepareAbort", "CompleteAbort", "Empty"}


def abort(trial: Trial, prepared: PreparedTransaction) -> None:
    """Abort a transaction as a user does."""
    with KafkaAdmin(bootstrap_servers=trial.query.servers) as admin:
        admin.abort_transaction(prepared.transactional_id, *prepared.producer)


def state(trial: Trial, prepared: PreparedTransaction) -> str:
    with KafkaAdmin(bootstrap_servers=trial.query.servers) as admin:
        return admin.describe_transaction(prepared.transactional_id).state


class SlowAbort:
    """An abort in a thread, which stands still after its first look at the decisions."""

    def __init__(
        self, trial: Trial, prepared: PreparedTransaction, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self._trial, self._prepared = trial, prepared
        self._has_looked, self._goes_on = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._abort, daemon=True)
        self.error: KafkaError | None = None
        self.then: Callable[[KafkaClient], object] = lambda _: None
        """A test's function, which runs between the abort and the second look."""
        monkeypatch.setattr(f"{repair.__name__}.abort_transaction", self._slowly)
        self._thread.start()
        assert self._has_looked.wait(IN_TIME_SECONDS)

    async def _slowly(
        self, client: KafkaClient, transactional_id: str, producer: ProducerId
    ) -> None:
        self._has_looked.set()
        assert self._goes_on.wait(IN_TIME_SECONDS)
        await abort_transaction(client, transactional_id, producer)
        self.then(client)

    def _abort(self) -> None:
        try:
            abort(self._trial, self._prepared)
        except KafkaError as error:
            self.error = error

    def end(self) -> None:
        """Go on, and wait for the end."""
        self._goes_on.set()
        self._thread.join(IN_TIME_SECONDS)
        assert not self._thread.is_alive()


# -- on real brokers, too --------------------------------------------------------------------------


def test_what_is_decided_is_not_aborted(trial: Trial) -> None:
    run = trial.query.start()
    run.commit(0, run.write(0))
    winners = decided(run, 1)
    for each in winners:
        with pytest.raises(DecidedTransactionError, match="must not be aborted: batch 1 of query"):
            abort(trial, each)
        assert state(trial, each) == "Ongoing"
    run = trial.query.start()
    run.commit(1, run.write(1))
    trial.judge()


def test_a_decision_between_the_look_and_the_abort_is_told(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = trial.query.start()
    run.commit(0, run.write(0))
    winners = run.write(1)
    slow = SlowAbort(trial, winners[0], monkeypatch)
    with suppress(KafkaError):  # What the query says is not the matter here.
        run.commit(1, winners, at(Step.DECIDED, slow.end))
    assert isinstance(slow.error, LateAbortError)
    assert slow.error.batch == run.batch(1)
    assert str(slow.error) == (
        f"{winners[0].transactional_id} is aborted, and {run.batch(1)} was decided meanwhile, with "
        "its rows. Start the query again: if no row of that batch is committed, it writes the "
        "batch again, and nothing is lost. Else it ends with DecidedRowsLostError, which says what "
        "to choose"
    )
    assert state(trial, winners[0]) in ABORTED


@pytest.mark.parametrize("step", BEFORE_DECISION)
def test_a_driver_that_comes_between_does_not_decide_after_the_abort(
    step: Step, trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it would decide after the second look. It has found the transaction open."""
    run = trial.query.start()
    run.commit(0, run.write(0))
    winners = run.write(1)
    slow = SlowAbort(trial, winners[0], monkeypatch)
    with pytest.raises((OtherDriverError, TransactionTimedOutError)):
        run.commit(1, winners, at(step, slow.end))
    assert slow.error is None
    run.abort(1, winners)
    again = trial.query.start()
    again.commit(1, again.write(1))
    trial.judge()


# -- what is whose ---------------------------------------------------------------------------------


def begun(trial: Trial, transactional_id: str) -> PreparedTransaction:
    """Return an open transaction of another program."""
    with trial.query.start().producer() as producer:
        begin_as(producer, transactional_id, 60_000)
        producer.send(trial.query.topic, b"x")
        prepared = producer.prepare_transaction()
    assert prepared is not None
    return prepared


@pytest.mark.parametrize("has_group", [True, False], ids=["of a group", "without a group"])
def test_another_programs_id_that_looks_like_a_tasks_is_aborted(
    has_group: bool, broker: MemoryBroker, written: Trial
) -> None:
    if has_group:
        commit_offset(broker, "billing", TopicPartition("orders", 1), 5)
    prepared = begun(written, "billing.eu.0.1")
    abort(written, prepared)
    assert state(written, prepared) in ABORTED
    assert "billing.control" not in broker.cluster.transactions


def test_decisions_tell_a_query_whose_control_id_has_expired(
    broker: MemoryBroker, written: Trial
) -> None:
    query = written.query
    prepared = begun(written, str(query.names.task_id("r", 0, 1)))
    broker.cluster.transactions.pop(query.names.control_id)
    abort(written, prepared)
    assert query.names.control_id in broker.cluster.transactions  # It has fenced.
    assert state(written, prepared) in ABORTED


def test_an_unknown_id_fences_no_driver(broker: MemoryBroker, written: Trial) -> None:
    control = broker.cluster.transactions[written.query.names.control_id]
    before = control.producer_id, control.epoch
    unknown = str(written.query.names.task_id("r", 0, 99))
    with (
        KafkaAdmin(bootstrap_servers=written.query.servers) as admin,
        pytest.raises(TransactionNotFoundError),
    ):
        admin.abort_transaction(unknown, 1, 0)
    assert (control.producer_id, control.epoch) == before


# -- rights, and brokers that do not answer --------------------------------------------------------


LACKING = [
    (FindCoordinatorRequest, "GROUP_AUTHORIZATION_FAILED", "READ on groups that begin with '{}'"),
    (OffsetFetchRequest, "GROUP_AUTHORIZATION_FAILED", "READ on groups that begin with '{}'"),
    (TxnOffsetCommitRequest, "GROUP_AUTHORIZATION_FAILED", "READ on groups that begin with '{}'"),
    (TxnOffsetCommitRequest, "TOPIC_AUTHORIZATION_FAILED", "READ on the topic"),
    (
        InitProducerIdRequest,
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        "WRITE on transactional ids that begin with '{}.'",
    ),
]


@pytest.mark.parametrize(("request_type", "error", "right"), LACKING)
def test_a_right_that_is_lacking_is_named_and_nothing_is_aborted(
    request_type: type[Request[Any]], error: str, right: str, broker: MemoryBroker, written: Trial
) -> None:
    (prepared,) = written.query.start().write(1, 1)
    denied = error_named(error)

    def deny(request: Any) -> Any:  # Not of a look-up of the transaction.
        return Action.HANDLE if getattr(request, "key_type", 0) else denied

    broker.control(request_type, deny, times=None)
    with pytest.raises(BrokerError, match=error) as raised:
        abort(written, prepared)
    needs = f"the user needs {right.format(written.query.prefix)}, to look whether "
    assert str(raised.value).endswith(
        f"{needs}{prepared.transactional_id} is decided. Nothing is aborted"
    )
    assert transaction_of(broker, prepared).state == "Ongoing"


def test_an_abort_is_told_if_nobody_tells_what_was_decided(
    broker: MemoryBroker, written: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    (prepared,) = written.query.start().write(1, 1)
    slow = SlowAbort(written, prepared, monkeypatch)
    denied = error_named("GROUP_AUTHORIZATION_FAILED")
    slow.then = lambda _: broker.control(OffsetFetchRequest, denied, times=None)
    slow.end()
    assert isinstance(slow.error, LateAbortError)
    assert slow.error.batch is None
    assert isinstance(slow.error.error, BrokerError)
    assert str(slow.error).startswith(
        f"{prepared.transactional_id} is aborted, and a batch with its rows may be decided, which "
        f"is not known: {slow.error.error}. Start the query again"
    )
    assert transaction_of(broker, prepared).state in ABORTED


@pytest.mark.parametrize("drivers", [1, 2, 3])
def test_drivers_that_fence_a_look(drivers: int, broker: MemoryBroker, written: Trial) -> None:
    """A look begins anew after two of them, and gives up after the third."""
    (prepared,) = written.query.start().write(1, 1)
    control = broker.cluster.transactions[written.query.names.control_id]

    def fence(_: TxnOffsetCommitRequest) -> Action:
        control.epoch += 1
        return Action.HANDLE

    broker.control(TxnOffsetCommitRequest, fence, times=drivers)
    if drivers < 3:
        abort(written, prepared)
    else:
        with pytest.raises(OtherDriverError):
            abort(written, prepared)
    assert (transaction_of(broker, prepared).state == "Ongoing") is (drivers == 3)


# -- former coordinators ---------------------------------------------------------------------------


def test_a_former_coordinator_does_not_hide_what_is_decided_meanwhile(
    broker: MemoryBroker, written: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    former = FormerCoordinator(broker, written.query.prefix)
    run = written.query.start()
    winners = run.write(1)
    slow = SlowAbort(written, winners[0], monkeypatch)

    def find_former(client: KafkaClient) -> None:
        former.is_found = True
        client.cluster.coordinators.clear()

    slow.then = find_former
    with suppress(KafkaError):
        run.commit(1, winners, at(Step.DECIDED, slow.end))
    assert isinstance(slow.error, LateAbortError)
    assert slow.error.batch == run.batch(1)


def test_former_coordinators_of_both_do_not_hide_what_is_decided(
    broker: MemoryBroker, written: Trial
) -> None:
    """That of the transaction tells its earlier state, which has no partition to confirm by."""
    former = FormerCoordinator(broker, written.query.prefix)
    winners = decided(written.query.start(), 1)
    name, (producer_id, epoch), *_ = winners[0]
    old = TransactionState(0, name, "CompleteCommit", 60_000, 1, producer_id, epoch, [])

    def tell(request: DescribeTransactionsRequest) -> DescribeTransactionsResponse | Action:
        is_of_it = request.transactional_ids == [name]
        return DescribeTransactionsResponse(0, [old]) if is_of_it else Action.HANDLE

    broker.control(DescribeTransactionsRequest, tell, times=None)
    former.is_found = True
    with pytest.raises(DecidedTransactionError):
        abort(written, winners[0])
    assert transaction_of(broker, winners[0]).state == "Ongoing"
