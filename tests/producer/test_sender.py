"""The producer's thread: the order within a partition, whatever leaders answer."""

from collections.abc import Iterator

import pytest

from spark_kafka_source.errors import ERRORS
from spark_kafka_source.protocol import ProduceRequest
from tests.memory_broker import MemoryBroker
from tests.producer.writing import IN_TIME, answering, in_flight, producing, values

RETRIABLE = [each.name for each in ERRORS.values() if each.retriable]


@pytest.fixture
def broker() -> Iterator[MemoryBroker]:
    with MemoryBroker() as broker:
        broker.create_topic("t", 3)
        yield broker


@pytest.mark.parametrize("error", RETRIABLE)
def test_with_five_in_flight_the_order_is_kept_after_an_error_that_can_heal(
    broker: MemoryBroker, error: str
) -> None:
    (log,) = broker.create_topic("u")
    with producing(broker, batch_size=1) as producer:
        producer.send("u", b"first").result(IN_TIME)
        held = broker.hold(ProduceRequest, then=answering(error))
        futures = [producer.send("u", b"%d" % each) for each in range(8)]
        in_flight(producer, 5)
        held.release()
        assert [each.result(IN_TIME).offset for each in futures] == list(range(1, 9))
    assert values(log)[1:] == [b"%d" % each for each in range(8)]
