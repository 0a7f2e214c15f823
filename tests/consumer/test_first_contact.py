"""A consumer that no broker answers says so within its first poll."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from spark_kafka_source import KafkaConsumer
from tests.consumer.consumers import T0
from tests.memory_broker import MemoryBroker

LOGGER = "spark_kafka_source.consumer.first_contact"
WAYS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"topics": ["t"]}),
    ({}, {"pattern": "t"}),
    ({"group_id": "g"}, {"topics": ["t"]}),
]


@pytest.fixture
def silent() -> Iterator[str]:
    """Yield an address that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize(("config", "subscribed"), WAYS)
def test_an_address_where_nobody_listens(
    config: dict[str, Any], subscribed: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    with KafkaConsumer(bootstrap_servers="127.0.0.1:1", **config) as consumer:
        consumer.subscribe(**subscribed)
        assert not len(consumer.poll(300))
        (told,) = [each.getMessage() for each in caplog.records if each.name == LOGGER]
        assert told.startswith("No broker of 'bootstrap_servers' could be reached; tried 127.0.0.1")
        assert "refused" in told and told.endswith("; trying again")
        consumer.poll(100)
    assert len([each for each in caplog.records if each.name == LOGGER]) == 1


def test_assigned_partitions_of_an_address_where_nobody_listens(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with KafkaConsumer(bootstrap_servers="127.0.0.1:1") as consumer:
        consumer.assign([T0])
        consumer.poll(300)
        consumer.poll(300)  # Longer than the patience of the warning in all.
    (told,) = caplog.messages
    assert told.startswith("No broker of 'bootstrap_servers' could be reached; tried 127.0.0.1")


def test_an_address_that_is_silent(silent: str, caplog: pytest.LogCaptureFixture) -> None:
    with KafkaConsumer(**{"bootstrap.servers": silent}) as consumer:  # type: ignore[arg-type]
        consumer.assign([T0])
        consumer.poll(0)
        assert not caplog.records
        consumer.poll(500)
    (told,) = caplog.messages
    assert told.startswith("No broker of 'bootstrap.servers' has answered within 0.")
    assert told.endswith(f"; asked {silent}; trying again")


def test_an_empty_topic_is_no_cause_for_a_warning(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.create_topic("t")
    with KafkaConsumer(bootstrap_servers=["127.0.0.1:1", str(broker.address())]) as consumer:
        consumer.assign([T0])
        consumer.poll(600)
        assert consumer.position(T0) == 0
    assert not [each for each in caplog.records if each.name == LOGGER]
