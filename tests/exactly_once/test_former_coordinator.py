"""Old decisions that a former coordinator tells: no driver believes them."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from spark_kafka_source.client import CoordinatorKey, KafkaClient
from spark_kafka_source.errors import error_named
from spark_kafka_source.exactly_once.decision_store import DecisionStore
from spark_kafka_source.exactly_once.errors import (
    DecidedTransactionError,
    OtherDriverError,
    PrefixInUseError,
)
from spark_kafka_source.exactly_once.repair import abort_undecided, finish
from spark_kafka_source.exactly_once.requests import Confirmed
from spark_kafka_source.net import Deadline
from spark_kafka_source.producer import ProducerId
from spark_kafka_source.protocol import Request
from spark_kafka_source.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from spark_kafka_source.protocol.messages.transactions import (
    EndTxnRequest,
    EndTxnResponse,
    TxnOffsetCommitRequest,
)
from spark_kafka_source.testing.memory import Action, MemoryBroker
from spark_kafka_source.topic_partition import TopicPartition
from tests.exactly_once.conftest import Trial, for_each, transaction_of
from tests.exactly_once.dying import CrashError, at, decided
from tests.exactly_once.former import FormerCoordinator
from tests.exactly_once.query import Query, client_of
from tests.exactly_once.steps import Step

NOT_COORDINATOR = error_named("NOT_COORDINATOR").code
NOT_FOUND = error_named("TRANSACTIONAL_ID_NOT_FOUND").code


@pytest.fixture
def former(broker: MemoryBroker, written: Trial) -> FormerCoordinator:
    """The coordinator of then. It knows the first micro-batch only."""
    return FormerCoordinator(broker, written.query.prefix)


@pytest.fixture
def client(written: Trial) -> Iterator[KafkaClient]:
    with client_of(written.query.servers) as client:
        yield client


def test_a_driver_that_is_started_again(former: FormerCoordinator, written: Trial) -> None:
    run = written.query.start()
    run.commit(1, run.write(1))
    former.is_found = True
    run = written.query.start()
    winners = run.write(1)
    run.commit(1, winners)
    assert former.reads
    states = {transaction_of(former.broker, each).state for each in winners}
    assert states == {"CompleteAbort"}
    written.judge()


def test_it_is_found_again_after_the_present_one(former: FormerCoordinator, written: Trial) -> None:
    """The coordinators are looked up anew between the offset and the read."""
    run = written.query.start()
    run.commit(1, run.write(1))
    former.is_found = True
    run = written.query.start()
    winners = run.write(1)

    def move(_: EndTxnRequest) -> EndTxnResponse:
        former.is_found = True
        return EndTxnResponse(error_code=NOT_COORDINATOR)

    former.broker.control(EndTxnRequest, move)
    run.commit(1, winners)
    written.judge()


def test_a_write_that_is_repeated(former: FormerCoordinator, written: Trial) -> None:
    query = written.query
    run = query.start()
    with run.driver() as driver:
        driver.commit(run.batch(1), run.write(1))
    repeated = run.write(1)
    former.is_found = True
    with pytest.raises(PrefixInUseError):
        run.commit(1, repeated)
    run.abort(1, repeated)
    written.judge()


def test_a_driver_whose_own_decision_it_tells(former: FormerCoordinator, written: Trial) -> None:
    """Another driver has decided since."""
    query = written.query
    run = query.start()
    with run.driver() as driver:
        driver.commit(run.batch(1), run.write(1))
        former.broker.forget()
        former = FormerCoordinator(former.broker, query.prefix)
        other = query.start()
        other.commit(2, other.write(2))
        former.is_found = True
        driver._client.cluster.coordinators.clear()
        winners = run.write(2)
        with pytest.raises(OtherDriverError):
            driver.commit(run.batch(2), winners)
    run.abort(2, winners)
    written.judge()


def test_a_transaction_whose_begin_a_former_coordinator_has_not_seen(
    broker: MemoryBroker, written: Trial
) -> None:
    """It tells the end of the earlier transaction under the id, as the driver checks this one."""
    run, is_second = written.query.start(), bool(broker.cluster.features)
    told: list[DescribeTransactionsRequest] = []
    # A driver of the first generation also asks what is left open, before it fences others.
    looks = 1 if is_second else 2

    def state(transactional_id: str) -> TransactionState:
        ended = {each.transactional_id: each.producer for each in winners}
        if transactional_id not in ended:
            return TransactionState(NOT_FOUND, transactional_id, "", 0, -1, -1, -1, [])
        producer_id, epoch = ended[transactional_id]
        # In the second generation the end gave the next transaction its epoch.
        ids = producer_id, epoch - (not is_second)
        return TransactionState(0, transactional_id, "CompleteCommit", 60_000, 1, *ids, [])

    def tell(request: DescribeTransactionsRequest) -> Action | DescribeTransactionsResponse:
        is_about_winners = {each.transactional_id for each in winners} & {
            *request.transactional_ids
        }
        if not is_about_winners or len(told) == looks:
            return Action.HANDLE
        told.append(request)
        return DescribeTransactionsResponse(0, list(map(state, request.transactional_ids)))

    winners = run.write(1)
    with run.driver() as driver:
        driver.commit(run.batch(1), winners)
        winners = run.write(2)
        broker.control(DescribeTransactionsRequest, tell, times=None)
        driver.commit(run.batch(2), winners)
    assert len(told) == looks
    written.judge()


def test_an_abort_of_what_is_decided(former: FormerCoordinator, written: Trial) -> None:
    run = written.query.start()
    winners = decided(run, 1)
    former.is_found = True
    run.abort(1, winners)
    assert not former.is_found  # It was asked to take an offset.
    written.judge()


def test_a_repair_of_what_is_decided(
    former: FormerCoordinator, written: Trial, client: KafkaClient
) -> None:
    query = written.query
    winners = decided(query.start(), 1)
    former.is_found = True
    with pytest.raises(DecidedTransactionError):
        abort_undecided(client, winners[0].transactional_id, winners[0].producer)
    former.is_found = True
    client.cluster.coordinators.clear()
    assert finish(client, query.names)[0].decision.batch.batch_id == 1
    written.judge()


# -- the confirmation itself -----------------------------------------------------------------------


def test_a_driver_confirms_its_coordinator_once(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    confirmed = DecisionStore.confirmed
    calls = []

    async def count(
        decisions: DecisionStore, control: ProducerId, where: TopicPartition
    ) -> Confirmed:
        calls.append(where)
        return await confirmed(decisions, control, where)

    monkeypatch.setattr(DecisionStore, "confirmed", count)
    query = trial.query
    run = query.start()
    with run.driver() as driver:
        for batch_id in range(3):
            driver.commit(run.batch(batch_id), run.write(batch_id))
    assert calls == [query.where]
    trial.judge()


@for_each(TxnOffsetCommitRequest, EndTxnRequest)
def test_lost_answers_to_it(
    request_type: type[Request[Any]], broker: MemoryBroker, written: Trial
) -> None:
    run = written.query.start()
    winners = run.write(1)
    lose = partial(broker.control, request_type, Action.LOSE, times=2)
    run.commit(1, winners, at(Step.FENCED, lose))
    written.judge()


@pytest.mark.parametrize("step", ["_record", "undo"])
def test_a_crash_in_it(step: str, written: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    run = written.query.start()
    winners = run.write(1)

    async def crash(*_: object, **__: object) -> None:
        raise CrashError

    with monkeypatch.context() as patch:
        patch.setattr(DecisionStore, step, crash)
        with pytest.raises(CrashError):
            run.commit(1, winners)
    run = written.query.start()
    run.commit(1, run.write(1))
    written.judge()


def test_a_late_copy_of_its_offset_replaces_no_decision(
    broker: MemoryBroker, written: Trial, client: KafkaClient
) -> None:
    query = written.query
    sent: list[TxnOffsetCommitRequest] = []

    def keep(request: TxnOffsetCommitRequest) -> Action:
        sent.append(request)
        return Action.HANDLE

    def copy() -> None:
        key = CoordinatorKey.of_group(query.prefix)
        answer = client.run(
            client.send_to_coordinator(sent[0], key, Deadline.after_ms(60_000), max_version=4)
        )
        errors.append(answer.topics[0].partitions[0].error_code)

    errors: list[int] = []
    run = query.start()
    winners = run.write(1)
    broker.control(TxnOffsetCommitRequest, keep)
    run.commit(1, winners, at(Step.RECORDED, copy))
    assert errors == [error_named("INVALID_PRODUCER_EPOCH").code]
    run = query.start()
    run.commit(1, run.write(1))
    written.judge()


def test_a_transaction_at_a_deleted_topic_can_be_aborted(
    broker: MemoryBroker, written: Trial, client: KafkaClient
) -> None:
    query: Query = written.query
    run = query.start()
    broker.create_topic("a", 1)
    with run.producer() as producer:
        run.begin(producer, 0)
        producer.send("a", b"x", partition=0)
        producer.send(query.topic, b"y", partition=0)
        prepared = producer.prepare_transaction()
    assert prepared is not None
    broker.delete_topic("a")
    abort_undecided(client, prepared.transactional_id, prepared.producer)
    assert transaction_of(broker, prepared).state != "Ongoing"
