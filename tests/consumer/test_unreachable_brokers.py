"""A consumer that no broker answers says so within its first poll."""

import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from spark_kafka_source import KafkaConsumer
from spark_kafka_source.consumer import unreachable_brokers
from spark_kafka_source.testing.memory import MemoryBroker
from tests.client.clock import Clock
from tests.consumer.consumers import T0, longer_and_longer, poll_until

pytestmark = pytest.mark.memory(nodes=3)

WAYS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"topics": ["t"]}),
    ({}, {"pattern": "t"}),
    ({"group_id": "g"}, {"topics": ["t"]}),
]


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Return the clock of the warning. Only a test moves it."""
    clock = Clock()
    monkeypatch.setattr(unreachable_brokers, "time", SimpleNamespace(monotonic=clock.monotonic))
    return clock


@pytest.fixture
def silent() -> Iterator[str]:
    """Yield an address that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    name = unreachable_brokers.__name__
    return [each.getMessage() for each in caplog.records if each.name == name]


@pytest.mark.parametrize(("config", "subscribed"), WAYS)
def test_an_address_where_nobody_listens(
    config: dict[str, Any], subscribed: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    for timeout_ms in longer_and_longer(300):
        with KafkaConsumer(bootstrap_servers="127.0.0.1:1", **config) as consumer:
            consumer.subscribe(**subscribed)
            assert not len(consumer.poll(timeout_ms))
            if warned(caplog):
                consumer.poll(100)
                break
    (told,) = warned(caplog)
    assert told.startswith("No broker of 'bootstrap_servers' could be reached; tried 127.0.0.1")
    assert "refused" in told and told.endswith("; trying again")


def test_assigned_partitions_of_an_address_where_nobody_listens(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    with KafkaConsumer(bootstrap_servers="127.0.0.1:1") as consumer:
        consumer.assign([T0])
        poll_until(consumer, lambda: bool(warned(caplog)))
        clock.now_seconds += 10  # Longer than the patience of the warning.
        consumer.poll(0)
    (told,) = warned(caplog)
    assert told.startswith("No broker of 'bootstrap_servers' could be reached; tried 127.0.0.1")


def test_an_address_that_is_silent(
    silent: str, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    with KafkaConsumer(**{"bootstrap.servers": silent}) as consumer:  # type: ignore[arg-type]
        consumer.assign([T0])
        consumer.poll(0)
        assert not warned(caplog)
        clock.now_seconds += 0.6
        consumer.poll(0)
    (told,) = warned(caplog)
    assert told.startswith("No broker of 'bootstrap.servers' has answered within 0.6 s")
    assert told.endswith(f"; asked {silent}; trying again")


def test_an_empty_topic_is_no_cause_for_a_warning(
    broker: MemoryBroker, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    broker.create_topic("t")
    with KafkaConsumer(bootstrap_servers=["127.0.0.1:1", str(broker.address())]) as consumer:
        consumer.assign([T0])
        poll_until(consumer, lambda: consumer._client.history.was_reached)
        clock.now_seconds += 10
        consumer.poll(0)
        assert consumer.position(T0) == 0
    assert not warned(caplog)
