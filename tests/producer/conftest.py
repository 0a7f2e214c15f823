"""The in-memory broker for a producer's tests."""

from collections.abc import Iterator

import pytest

from tests.memory_broker import MemoryBroker


@pytest.fixture
def broker() -> Iterator[MemoryBroker]:
    """Run a broker with one node, and a topic t of one partition."""
    with MemoryBroker() as broker:
        broker.create_topic("t")
        yield broker
