"""Two producers with one transactional id: the second one fences only the first one."""

import pytest

from spark_kafka_source.producer import ProducerFencedError, TransactionAbortableError
from spark_kafka_source.protocol.messages.transactions import AddPartitionsToTxnRequest
from spark_kafka_source.testing.memory import MemoryBroker
from tests.producer.test_transaction import DENIED
from tests.producer.writing import IN_TIME, producing

pytestmark = pytest.mark.memory(topics={"t": 1})


def test_a_fenced_producers_abort_leaves_its_successors_transaction_alone(
    broker: MemoryBroker,
) -> None:
    """InitProducerId would abort that transaction before the broker answers "fenced"."""
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
    """The producer's only topic was denied, so the coordinator knows no transaction of it."""
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
