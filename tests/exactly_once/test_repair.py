"""Inspection and repair from outside: no decided transaction is aborted or overlooked."""

from collections.abc import Iterator

import pytest

from spark_kafka_source.admin.transactions import describe_transactions
from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import error_named
from spark_kafka_source.exactly_once.decision import Outcome
from spark_kafka_source.exactly_once.errors import (
    DecidedTransactionError,
    NothingDecidedError,
    NothingSeenError,
    NotYetCommittedError,
)
from spark_kafka_source.exactly_once.names import Names
from spark_kafka_source.exactly_once.repair import (
    TaskTransaction,
    abort_undecided,
    finish,
    last_outcomes,
    task_transactions,
)
from spark_kafka_source.producer import PreparedTransaction, ProducerFencedError, ProducerId
from spark_kafka_source.protocol.messages.transactions import EndTxnRequest
from spark_kafka_source.testing.memory import Action, MemoryBroker
from tests.exactly_once.conftest import Trial, in_memory_trial, transaction_of
from tests.exactly_once.dying import decided
from tests.exactly_once.query import Query, client_of
from tests.exactly_once.steps import Step
from tests.producer.transactional import begin_as


@pytest.fixture
def trial(broker: MemoryBroker, topic: str) -> Trial:
    return in_memory_trial(broker, topic)


@pytest.fixture
def client(trial: Trial) -> Iterator[KafkaClient]:
    with client_of(trial.query.servers) as client:
        yield client


def seen(client: KafkaClient, *prepared: PreparedTransaction) -> list[TaskTransaction]:
    described = client.run(
        describe_transactions(client, [each.transactional_id for each in prepared])
    )
    found = task_transactions(client, [each for each in described.values() if each is not None])
    return [found[each.transactional_id] for each in prepared]


def test_whose_a_transaction_is(trial: Trial, client: KafkaClient) -> None:
    run = trial.query.start()
    winners = decided(run)
    (later,) = run.write(1, 1)
    first, second, third = seen(client, *winners, later)
    assert (first.query_id, first.batch_id, first.is_decided) == (trial.query.query_id, 0, True)
    assert second.run_id == run.run_id
    assert (third.batch_id, third.run_id, third.is_decided) == (None, run.run_id, False)
    assert third.last is not None
    assert third.last.batch.batch_id == 0


def test_a_transaction_that_has_begun_under_the_id_since_is_not_decided(
    trial: Trial, client: KafkaClient
) -> None:
    run = trial.query.start()
    run.commit(0, run.write(0))
    (found,) = seen(client, *run.write(1, 1))
    assert not found.is_decided


def test_the_query_is_known_by_its_own_prefix(trial: Trial, client: KafkaClient) -> None:
    query = trial.query
    (found,) = seen(client, *query.start().write(0, 1))
    assert (found.query_id, found.last) == (None, None)
    query.prefix = "pykafka-1234"
    (found,) = seen(client, *query.start().write(0, 1))
    assert found.query_id == "1234"


def test_ids_of_others_are_left_out(trial: Trial, client: KafkaClient) -> None:
    run = trial.query.start()
    run.commit(0, run.write(0))
    control_id = trial.query.names.control_id
    (found,) = client.run(describe_transactions(client, [control_id])).values()
    assert found is not None
    assert task_transactions(client, [found]) == {}


def test_what_is_decided_is_not_aborted(
    broker: MemoryBroker, trial: Trial, client: KafkaClient
) -> None:
    first, second = decided(trial.query.start())
    for each in (first, second):
        with pytest.raises(DecidedTransactionError, match="must not be aborted: batch 0 of query"):
            abort_undecided(client, each.transactional_id, each.producer)
        assert transaction_of(broker, each).state == "Ongoing"
    run = trial.query.start()
    run.commit(0, run.write(0))
    trial.judge()


def test_what_is_not_decided_is_aborted(
    broker: MemoryBroker, trial: Trial, client: KafkaClient
) -> None:
    run = trial.query.start()
    (prepared,) = run.write(0, 1)
    abort_undecided(client, prepared.transactional_id, prepared.producer)
    run = trial.query.start()  # The abort has fenced the first one.
    run.commit(0, run.write(0, 1))
    (prepared,) = run.write(1, 1)
    with pytest.raises(ProducerFencedError):
        abort_undecided(client, prepared.transactional_id, ProducerId(prepared.producer[0], 99))
    abort_undecided(client, prepared.transactional_id, prepared.producer)
    assert transaction_of(broker, prepared).state != "Ongoing"
    trial.query.written = set(trial.query.values(0, 0))
    trial.judge()


def test_one_of_another_program_is_aborted(
    broker: MemoryBroker, trial: Trial, client: KafkaClient
) -> None:
    run = trial.query.start()
    with run.producer() as producer:
        begin_as(producer, "another", 60_000)
        producer.send(trial.query.topic, b"x")
        prepared = producer.prepare_transaction()
    assert prepared is not None
    abort_undecided(client, "another", prepared.producer)
    assert transaction_of(broker, prepared).state != "Ongoing"


def test_what_is_decided_is_finished(trial: Trial, client: KafkaClient) -> None:
    names = trial.query.names
    winners = decided(trial.query.start())
    (found,) = last_outcomes(client, names)
    assert set(found.outcomes.values()) == {Outcome.OPEN}
    assert found.decision.batch.batch_id == 0
    (found,) = finish(client, names)
    assert [each.transactional_id for each in found.of(Outcome.COMMITTED)] == [
        each.transactional_id for each in winners
    ]
    trial.judge()
    assert finish(client, names, accept_loss=True)[0].of(Outcome.COMMITTED)
    run = trial.query.start()
    run.commit(0, run.write(0))
    trial.judge()


@pytest.mark.parametrize("tasks", [2, 200])
def test_a_loss_is_accepted_where_it_is_said(
    tasks: int, broker: MemoryBroker, trial: Trial, client: KafkaClient
) -> None:
    query = trial.query
    first, second, *_ = decided(query.start(), 0, tasks)
    transaction_of(broker, first).end(broker.cluster, commit=True)
    transaction_of(broker, second).time_out(broker.cluster)
    for accept_loss in (False, True):
        (found,) = finish(client, query.names, accept_loss=accept_loss)
        assert [each.transactional_id for each in found.of(Outcome.ABORTED)] == [
            second.transactional_id
        ]
        assert len(found.of(Outcome.COMMITTED)) == tasks - 1
    assert not last_outcomes(client, query.names)[0].of(Outcome.ABORTED)
    run = query.start()
    run.commit(0, run.write(0, tasks))
    query.written -= set(query.values(0, 1))
    run.commit(1, run.write(1))
    trial.judge()


def test_what_nobody_has_seen_is_not_committed_in_part(
    broker: MemoryBroker, trial: Trial, client: KafkaClient
) -> None:
    query = trial.query
    first, second = decided(query.start())
    transaction_of(broker, second).time_out(broker.cluster)
    with pytest.raises(NothingSeenError, match="brokers have aborted ids that end"):
        finish(client, query.names)
    assert transaction_of(broker, first).state == "Ongoing"
    run = query.start()
    run.commit(0, run.write(0))
    trial.judge()


def test_a_driver_that_decides_meanwhile_is_fenced(trial: Trial, client: KafkaClient) -> None:
    run = trial.query.start()
    run.commit(0, run.write(0))

    def meanwhile(step: Step) -> None:
        if step is Step.CHECKED:
            finish(client, trial.query.names)

    winners = run.write(1)
    with pytest.raises(Exception, match="Another driver now decides under"):
        run.commit(1, winners, meanwhile)
    run.abort(1, winners)


def test_brokers_that_refuse_are_named(
    broker: MemoryBroker, trial: Trial, client: KafkaClient
) -> None:
    decided(trial.query.start())
    broker.control(EndTxnRequest, Action.HANDLE)  # That of the control id.
    broker.control(EndTxnRequest, error_named("TRANSACTIONAL_ID_AUTHORIZATION_FAILED"))
    with pytest.raises(NotYetCommittedError) as raised:
        finish(client, trial.query.names)
    assert (len(raised.value.left), raised.value.total) == (1, 2)


def test_where_nothing_is_decided(client: KafkaClient) -> None:
    for call in (last_outcomes, finish):
        with pytest.raises(NothingDecidedError, match="Nothing is decided under 'nobody'"):
            call(client, Names("nobody"))


def test_a_query_that_has_written_nothing(trial: Trial, client: KafkaClient) -> None:
    query: Query = trial.query
    query.start().commit(0, [])
    with pytest.raises(NothingDecidedError):
        last_outcomes(client, query.names)
