"""An in-memory broker, and a client of it."""

from collections.abc import Iterator

import pytest

from spark_kafka_source.client import KafkaClient
from tests.memory_broker import MemoryBroker


@pytest.fixture
def broker() -> Iterator[MemoryBroker]:
    with MemoryBroker() as broker:
        yield broker


@pytest.fixture
def client(broker: MemoryBroker) -> Iterator[KafkaClient]:
    with KafkaClient(broker.config(retry_backoff_ms=1, retry_backoff_max_ms=5)) as client:
        yield client
