"""An in-memory broker of three nodes, and a client of it."""

from collections.abc import Iterator

import pytest

from spark_kafka_source.client import KafkaClient
from tests.memory_broker import MemoryBroker


@pytest.fixture
def broker() -> Iterator[MemoryBroker]:
    with MemoryBroker(3) as broker:
        yield broker


@pytest.fixture
def client(broker: MemoryBroker) -> Iterator[KafkaClient]:
    with KafkaClient(broker.config()) as client:
        yield client
