"""A producer that another one fences by its transactional id: only the first one ends."""

from collections.abc import Iterator

import pytest

from spark_kafka_source.producer import ProducerFencedError, TransactionAbortableError
from spark_kafka_source.protocol.messages.transactions import AddPartitionsToTxnRequest
from tests.memory_broker import MemoryBroker
from tests.producer.test_transaction import DENIED
from tests.producer.writing import IN_TIME, producing


@pytest.fixture
def broker() -> Iterator[MemoryBroker]:
    with MemoryBroker() as broker:
        broker.create_topic("t")
        yield broker


def test_a_fenced_producers_abort_leaves_its_successors_transaction_alone(
    broker: MemoryBroker,
) -> None:
    """To go on by InitProducerId would abort it before the broker says that one is fenced."""
    with (
        producing(broker, transactional_id="x") as first,
        producing(broker, transactional_id="x") as second,
    ):
        first.init_transactions()
        first.begin_transaction()
        first.send("t", b"no").result(IN_TIME)
        second.init_transactions()
        second.begin_transaction()
        second.send("t", b"yes").result(IN_TIME)
        with pytest.raises(ProducerFencedError):
            first.abort_transaction()
        second.commit_transaction()
    assert broker.cluster.transactions["x"].state == "CompleteCommit"


def test_an_abort_of_what_never_began_leaves_a_successors_transaction_alone(
    broker: MemoryBroker,
) -> None:
    """Its only topic was denied, so that the coordinator knows of no transaction."""
    with (
        producing(broker, transactional_id="x") as first,
        producing(broker, transactional_id="x") as second,
    ):
        first.init_transactions()
        first.begin_transaction()
        broker.control(AddPartitionsToTxnRequest, DENIED)
        with pytest.raises(TransactionAbortableError):
            first.send("t", b"no").result(IN_TIME)
        second.init_transactions()
        second.begin_transaction()
        second.send("t", b"yes").result(IN_TIME)
        first.abort_transaction()
        second.commit_transaction()
    assert broker.cluster.transactions["x"].state == "CompleteCommit"
