"""An in-memory broker of three nodes, a client of it, and the log of partition t-0."""

from collections.abc import Iterator

import pytest

from spark_kafka_source.client import KafkaClient
from tests.memory_broker import MemoryBroker, PartitionLog


@pytest.fixture
def broker() -> Iterator[MemoryBroker]:
    with MemoryBroker(3) as broker:
        yield broker


@pytest.fixture
def client(broker: MemoryBroker) -> Iterator[KafkaClient]:
    with KafkaClient(broker.config()) as client:
        yield client


@pytest.fixture
def log(broker: MemoryBroker) -> PartitionLog:
    (log,) = broker.create_topic("t")
    return log
