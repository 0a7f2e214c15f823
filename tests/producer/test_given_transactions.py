"""Transactions with an id and epoch that the caller gives, in both generations."""

from collections.abc import Iterator

import pytest

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import BrokerError, error_named
from spark_kafka_source.producer import (
    Beginning,
    Generation,
    KafkaProducer,
    ProducerId,
    TransactionCoordinator,
    TransactionStateError,
)
from spark_kafka_source.protocol.messages.produce import InitProducerIdRequest, ProduceRequest
from spark_kafka_source.protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
)
from spark_kafka_source.testing.memory import MemoryBroker
from tests.producer.writing import IN_TIME, committed_values, producing

pytestmark = pytest.mark.memory(topics={"t": 1})

TIMEOUT_MS = 60_000
SECOND = Generation.SECOND
BOTH = pytest.mark.parametrize("generation", Generation, ids=lambda each: each.name.lower())


@pytest.fixture
def producer(broker: MemoryBroker) -> Iterator[KafkaProducer]:
    broker.create_topic("t", 3)
    with producing(broker, transactional_id="-") as producer:
        yield producer


def new_id(client: KafkaClient, name: str) -> ProducerId:
    return client.run(TransactionCoordinator(client, name).init_producer_id(TIMEOUT_MS))


def end(client: KafkaClient, name: str, producer: ProducerId) -> ProducerId:
    return client.run(TransactionCoordinator(client, name, SECOND).end(producer, commit=True))


def write(producer: KafkaProducer, value: bytes, partitions: int = 1) -> None:
    for each in [producer.send("t", value, partition=each) for each in range(partitions)]:
        each.result(IN_TIME)


def guessed_wrong(client: KafkaClient, producer: KafkaProducer) -> ProducerId:
    """Leave a transaction of "a" open, and begin with the epoch after it. Return its producer."""
    given = new_id(client, "a")
    producer.begin_at(Beginning("a", given, SECOND))
    write(producer, b"1")
    producer.prepare_transaction()
    guess = SECOND.after_end(given)
    assert guess is not None
    producer.begin_at(Beginning("a", guess, SECOND))
    return given


def committed(broker: MemoryBroker) -> list[bytes | None]:
    return committed_values(broker.cluster.topics["t"].logs[0])


def states(broker: MemoryBroker) -> dict[str, str]:
    return {name: each.state for name, each in broker.cluster.transactions.items()}


@BOTH
def test_a_given_transaction_is_ended_by_another(
    generation: Generation, broker: MemoryBroker, client: KafkaClient, producer: KafkaProducer
) -> None:
    given = new_id(client, "a")
    producer.begin_at(Beginning("a", given, generation))
    write(producer, b"1", partitions=3)
    prepared = producer.prepare_transaction()
    assert prepared is not None
    assert prepared[:3] == ("a", given, 3)
    assert states(broker) == {"a": "Ongoing"}
    assert bool(broker.requests(AddPartitionsToTxnRequest)) is (generation is Generation.FIRST)
    version = 11 if generation is Generation.FIRST else 12
    assert {e.version for e in broker.seen if isinstance(e.request, ProduceRequest)} == {version}
    end(client, "a", given)
    assert committed(broker) == [b"1"]


def test_the_next_epoch_needs_no_request(
    broker: MemoryBroker, client: KafkaClient, producer: KafkaProducer
) -> None:
    given: ProducerId | None = new_id(client, "a")
    for value in (b"1", b"2", b"3"):
        assert given is not None
        producer.begin_at(Beginning("a", given, SECOND))
        write(producer, value)
        producer.prepare_transaction()
        end(client, "a", given)
        given = SECOND.after_end(given)
    assert committed(broker) == [b"1", b"2", b"3"]
    assert len(broker.requests(InitProducerIdRequest)) == 1


def test_a_wrong_guess_is_refused_and_the_rows_go_elsewhere(
    broker: MemoryBroker, client: KafkaClient, producer: KafkaProducer
) -> None:
    given = guessed_wrong(client, producer)
    futures = [producer.send("t", b"2", partition=each) for each in range(3)]
    for each in futures:
        with pytest.raises(BrokerError, match="INVALID_PRODUCER_EPOCH"):
            each.result(IN_TIME)
    producer.begin_at(Beginning("b", new_id(client, "b"), SECOND))
    write(producer, b"2", partitions=3)
    prepared = producer.prepare_transaction()
    assert prepared is not None
    assert prepared[:3] == ("b", broker_id(broker, "b"), 3)
    assert states(broker) == {"a": "Ongoing", "b": "Ongoing"}
    end(client, "a", given)
    end(client, "b", broker_id(broker, "b"))
    assert committed(broker) == [b"1", b"2"]


def broker_id(broker: MemoryBroker, name: str) -> ProducerId:
    found = broker.cluster.transactions[name]
    return ProducerId(found.producer_id, found.epoch)


def test_the_abort_of_a_wrong_guess_leaves_the_open_transaction(
    broker: MemoryBroker, client: KafkaClient, producer: KafkaProducer
) -> None:
    """A request for a new epoch would abort it, and it may be decided."""
    guessed_wrong(client, producer)
    assert producer.send("t", b"2", partition=0).exception(IN_TIME)
    with pytest.raises(BrokerError):
        producer.abort_transaction()
    assert states(broker) == {"a": "Ongoing"}
    assert len(broker.requests(InitProducerIdRequest)) == 1


@BOTH
def test_an_abort_asks_for_no_new_epoch(
    generation: Generation, broker: MemoryBroker, client: KafkaClient, producer: KafkaProducer
) -> None:
    producer.begin_at(Beginning("a", new_id(client, "a"), generation))
    write(producer, b"1")
    broker.control(ProduceRequest, error_named("INVALID_TXN_STATE"))
    assert producer.send("t", b"2", partition=0).exception(IN_TIME)
    producer.abort_transaction()
    assert states(broker) == {"a": "CompleteAbort"}
    assert len(broker.requests(InitProducerIdRequest)) == 1
    with pytest.raises(TransactionStateError):
        producer.begin_transaction()
