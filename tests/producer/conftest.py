"""The in-memory broker that a producer's tests write to."""

from collections.abc import Iterator

import pytest

from tests.memory_broker import MemoryBroker


@pytest.fixture
def broker() -> Iterator[MemoryBroker]:
    """One node, with a topic t of one partition."""
    with MemoryBroker() as broker:
        broker.create_topic("t")
        yield broker
