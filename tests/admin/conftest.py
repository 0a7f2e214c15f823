"""An in-memory broker of three nodes with some groups, and an admin client."""

from collections.abc import Iterator
from typing import Any

import pytest

from spark_kafka_source import KafkaAdmin
from spark_kafka_source.testing.memory import MemoryBroker
from spark_kafka_source.topic_partition import TopicPartition
from tests.client.clock import Clock, deadlines_by

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


def fill(broker: MemoryBroker) -> None:
    """Create topic t with 3 and 5 records, u with 1, and two empty groups at two coordinators."""
    for log, count in zip(broker.create_topic("t", 2), (3, 5), strict=True):
        log.append(*[b"x"] * count)
    broker.create_topic("u")[0].append(b"x")
    broker.cluster.committed["g"] = {T0: 1, U0: 1}
    broker.cluster.committed["h"] = {T1: 4}
    broker.cluster.coordinators.update(
        g=1 % len(broker.cluster.ports), h=2 % len(broker.cluster.ports)
    )


def address(broker: MemoryBroker) -> str:
    return str(broker.address())


@pytest.fixture
def broker() -> Iterator[MemoryBroker]:
    with MemoryBroker(3) as broker:
        fill(broker)
        yield broker


@pytest.fixture
def admin(broker: MemoryBroker) -> Iterator[KafkaAdmin]:
    with KafkaAdmin(bootstrap_servers=address(broker), retry_backoff_ms=0) as admin:
        yield admin


@pytest.fixture
def hasty(broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch) -> Iterator[KafkaAdmin]:
    """Return an admin client with 300 ms for each call. Only its pauses count, not the answers."""
    deadlines_by(clock := Clock(), monkeypatch)
    little: dict[str, Any] = {"default_api_timeout_ms": 300, "retry_backoff_ms": 1}
    with KafkaAdmin(bootstrap_servers=address(broker), **little) as admin:
        monkeypatch.setattr(admin.client, "_block", clock.block)
        admin.list_topics()
        yield admin
