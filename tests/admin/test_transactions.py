"""Transactions in an admin client: open ones, ones that block readers, and aborts."""

import pickle
from collections.abc import Iterator

import pytest

from spark_kafka_source import KafkaAdmin, KafkaProducer
from spark_kafka_source.admin import TransactionNotFoundError
from spark_kafka_source.admin.transactions import (
    Begun,
    TransactionDescription,
    describe_transactions,
)
from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import (
    BrokerError,
    ProtocolError,
    UnsupportedVersionError,
    error_named,
)
from spark_kafka_source.net import RequestTimeoutError
from spark_kafka_source.producer import Generation, PreparedTransaction, ProducerFencedError
from spark_kafka_source.protocol.messages.describe_producers import DescribeProducersRequest
from spark_kafka_source.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from spark_kafka_source.protocol.messages.find_coordinator import FindCoordinatorRequest
from spark_kafka_source.protocol.messages.list_transactions import ListTransactionsRequest
from spark_kafka_source.protocol.messages.produce import InitProducerIdRequest
from spark_kafka_source.testing.memory import Action, MemoryBroker
from spark_kafka_source.topic_partition import TopicPartition
from tests.admin.conftest import T0, U0, address
from tests.producer.transactional import begin_as


@pytest.fixture
def producer(broker: MemoryBroker) -> Iterator[KafkaProducer]:
    producer = KafkaProducer(bootstrap_servers=address(broker), transactional_id="-")
    yield producer
    producer.close(1)


def begun(producer: KafkaProducer, name: str, *partitions: TopicPartition) -> PreparedTransaction:
    """Begin a transaction with a record in each of these partitions. Leave it open."""
    begin_as(producer, name, 60_000)
    for topic, partition in partitions:
        producer.send(topic, b"x", partition=partition)
    prepared = producer.prepare_transaction()
    assert prepared is not None
    return prepared


def test_all_transactional_ids_of_all_brokers(
    broker: MemoryBroker, admin: KafkaAdmin, producer: KafkaProducer
) -> None:
    broker.cluster.transaction_coordinators |= {"a": 2, "b": 1}
    prepared = begun(producer, "b", T0)
    begun(producer, "a", U0)
    found = admin.list_transactions()
    assert [(each.transactional_id, each.state, each.coordinator_id) for each in found] == [
        ("a", "Ongoing", 2),
        ("b", "Ongoing", 1),
    ]
    assert found[1].producer_id == prepared.producer.producer_id
    assert admin.list_transactions(states=["Empty"]) == []
    assert len(admin.list_transactions(states=["Empty", "Ongoing"])) == 2


def test_a_broker_that_does_not_list_its_own(broker: MemoryBroker, admin: KafkaAdmin) -> None:
    broker.control(ListTransactionsRequest, error_named("UNKNOWN_SERVER_ERROR"), node_id=1)
    with pytest.raises(BrokerError, match="ListTransactions of broker 1: UNKNOWN_SERVER_ERROR"):
        admin.list_transactions()


def test_a_transaction(broker: MemoryBroker, admin: KafkaAdmin, producer: KafkaProducer) -> None:
    broker.cluster.now_ms = lambda: 1_000
    prepared = begun(producer, "a", T0, U0)
    found = admin.describe_transaction("a")
    assert (found.transactional_id, found.state, found.is_open) == ("a", "Ongoing", True)
    assert (found.producer, found.topic_partitions) == (prepared.producer, (T0, U0))
    assert (found.started_at_ms, found.timeout_ms) == (1_000, 60_000)
    assert found.remaining_ms(now_ms=31_000) == 30_000
    admin.abort_transaction("a", *prepared.producer)
    assert not admin.describe_transaction("a").is_open


def test_one_that_there_is_not(admin: KafkaAdmin) -> None:
    for call in (
        lambda: admin.describe_transactions(["nope"]),
        lambda: admin.abort_transaction("nope", 1, 0),
    ):
        with pytest.raises(TransactionNotFoundError) as raised:
            call()
        assert str(raised.value) == "There is no transactional id 'nope'"
        assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


def test_an_answer_that_leaves_one_out(broker: MemoryBroker, admin: KafkaAdmin) -> None:
    answer = DescribeTransactionsResponse(transaction_states=[])
    broker.control(DescribeTransactionsRequest, answer)
    with pytest.raises(ProtocolError, match="of transactional id 'a': the answer leaves it out"):
        admin.describe_transaction("a")


def test_an_abort_is_of_one_producer_and_epoch(
    broker: MemoryBroker, admin: KafkaAdmin, producer: KafkaProducer
) -> None:
    producer_id, epoch = begun(producer, "a", T0).producer
    with pytest.raises(ProducerFencedError):
        admin.abort_transaction("a", producer_id, epoch + 1)
    with pytest.raises(BrokerError, match="INVALID_PRODUCER_ID_MAPPING"):
        admin.abort_transaction("a", producer_id + 1, epoch)
    assert admin.describe_transaction("a").state == "Ongoing"
    admin.abort_transaction("a", producer_id, epoch)
    assert broker.cluster.transactions["a"].epoch > epoch
    with pytest.raises(ProducerFencedError):
        admin.abort_transaction("a", producer_id, epoch)


def test_an_abort_is_done_where_the_next_producer_has_come_before_its_fence(
    broker: MemoryBroker, admin: KafkaAdmin, producer: KafkaProducer
) -> None:
    prepared = begun(producer, "a", T0)
    broker.control(InitProducerIdRequest, error_named("PRODUCER_FENCED"))
    admin.abort_transaction("a", *prepared.producer)
    assert not admin.describe_transaction("a").is_open


def test_its_producer_cannot_go_on(
    broker: MemoryBroker, admin: KafkaAdmin, producer: KafkaProducer
) -> None:
    """Otherwise the rest of its records would be committed without the first one."""
    begin_as(producer, "a", 60_000)
    producer.send("t", b"x", partition=0).result(10)
    admin.abort_transaction("a", *admin.describe_transaction("a").producer)
    producer.send("u", b"x", partition=0)
    with pytest.raises(ProducerFencedError):
        producer.prepare_transaction()


def test_who_is_in_the_way_of_readers(
    broker: MemoryBroker, admin: KafkaAdmin, producer: KafkaProducer
) -> None:
    first, second = begun(producer, "a", T0), begun(producer, "b", T0)
    (found,) = admin.held_up([T0])
    assert (found.topic_partition, found.last_stable_offset, found.end_offset) == (T0, 3, 5)
    assert found.offsets_held_up == 2
    assert [(each.producer, each.start_offset) for each in found.writers] == [
        (first.producer, 3),
        (second.producer, 4),
    ]
    admin.abort_transaction("a", *first.producer)
    (found, other, third) = admin.held_up(["t", "u"])
    assert (found.last_stable_offset, [each.producer for each in found.writers]) == (
        4,
        [second.producer],
    )
    assert (other.offsets_held_up, other.writers) == (0, ())
    assert third.topic_partition == U0


def test_a_denial_of_who_writes(broker: MemoryBroker, admin: KafkaAdmin) -> None:
    broker.control(DescribeProducersRequest, error_named("TOPIC_AUTHORIZATION_FAILED"))
    with pytest.raises(BrokerError, match="DescribeProducers of t-0: TOPIC_AUTHORIZATION_FAILED"):
        admin.held_up([T0])


def test_a_denial_of_a_transaction_names_no_right_of_a_producer(
    broker: MemoryBroker, admin: KafkaAdmin
) -> None:
    denied = error_named("TRANSACTIONAL_ID_AUTHORIZATION_FAILED")
    for request_type in (FindCoordinatorRequest, DescribeTransactionsRequest):
        broker.control(request_type, denied)
        with pytest.raises(BrokerError, match=r"of transactional id 'a': TRANSAC\w+ \(53\)$"):
            admin.describe_transaction("a")


def test_brokers_that_are_too_old(broker: MemoryBroker, admin: KafkaAdmin) -> None:
    del broker.cluster.versions[DescribeTransactionsRequest.KEY]
    with pytest.raises(UnsupportedVersionError):
        admin.describe_transaction("a")


def test_silence_of_one_broker_is_said(broker: MemoryBroker) -> None:
    broker.control(ListTransactionsRequest, Action.SILENCE, node_id=2)
    with (
        KafkaAdmin(bootstrap_servers=address(broker), request_timeout_ms=1_000) as admin,
        pytest.raises(RequestTimeoutError, match=f"{broker.address(2)}: timed out"),
    ):
        admin.list_transactions()


def stale(
    prepared: PreparedTransaction, state: str, epoch: int, error: str = ""
) -> TransactionState:
    """Return the answer of a broker that was the coordinator before this transaction began."""
    code = error_named(error).code if error else 0
    producer_id = prepared.producer.producer_id
    return TransactionState(
        code, prepared.transactional_id, state, 60_000, 1, producer_id, epoch, []
    )


@pytest.mark.parametrize(
    ("state", "epochs_before", "error"),
    [
        ("CompleteCommit", 1, ""),
        ("Ongoing", 1, ""),
        ("Empty", 0, ""),
        ("", 0, "TRANSACTIONAL_ID_NOT_FOUND"),
    ],
)
def test_a_coordinator_that_was_replaced_is_not_believed(
    state: str, epochs_before: int, error: str, broker: MemoryBroker, producer: KafkaProducer
) -> None:
    """It stood still while another broker took over, and answers from memory."""
    begun(producer, "a", T0)
    broker.cluster.transactions["a"].end(broker.cluster, commit=True)
    prepared = begun(producer, "a", T0)
    known = {"a": Begun(prepared.producer)}
    old = stale(prepared, state, prepared.producer.epoch - epochs_before, error)
    broker.control(DescribeTransactionsRequest, DescribeTransactionsResponse(0, [old]), times=2)
    with KafkaClient(producer._config.client) as client:
        found = client.run(describe_transactions(client, known, begun=known))["a"]
        assert found is not None
        assert (found.state, found.producer) == ("Ongoing", prepared.producer)
        broker.control(DescribeTransactionsRequest, DescribeTransactionsResponse(0, [old]))
        believed = client.run(describe_transactions(client, known))["a"]
    assert believed is None if error else believed is not None and believed.state == state


def described(producer: KafkaProducer, known: dict[str, Begun]) -> TransactionDescription | None:
    """Return the description of transaction `a`, with what is known of its begin."""
    with KafkaClient(producer._config.client) as client:
        return client.run(describe_transactions(client, known, begun=known))["a"]


@pytest.mark.parametrize("state", ["CompleteCommit", "PrepareCommit", "CompleteAbort", "Empty"])
def test_in_the_second_generation_an_end_with_the_same_epoch_is_that_of_an_earlier_one(
    state: str, broker: MemoryBroker, producer: KafkaProducer
) -> None:
    """Its end gave the transaction this epoch, and its own end would give the next one."""
    prepared = begun(producer, "a", T0)
    known = {"a": Begun(prepared.producer, generation=Generation.SECOND)}
    old = stale(prepared, state, prepared.producer.epoch)
    broker.control(DescribeTransactionsRequest, DescribeTransactionsResponse(0, [old]), times=2)
    found = described(producer, known)
    assert found is not None
    assert (found.state, found.producer) == ("Ongoing", prepared.producer)


@pytest.mark.parametrize("state", ["CompleteCommit", "CompleteAbort"])
def test_in_the_first_generation_an_end_with_the_same_epoch_is_its_own(
    state: str, broker: MemoryBroker, producer: KafkaProducer
) -> None:
    prepared = begun(producer, "a", T0)
    known = {"a": Begun(prepared.producer, generation=Generation.FIRST)}
    own = stale(prepared, state, prepared.producer.epoch)
    broker.control(DescribeTransactionsRequest, DescribeTransactionsResponse(0, [own]))
    found = described(producer, known)
    assert found is not None
    assert found.state == state
