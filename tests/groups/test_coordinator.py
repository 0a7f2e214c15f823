"""Requests to a group's coordinator: those that nobody wants any more, and what is told of each."""

from collections.abc import Iterator
from typing import Any

import pytest

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import BrokerError, error_named
from spark_kafka_source.groups.coordinator import Coordinator, InterruptedRequestError
from spark_kafka_source.net import Deadline, Running
from spark_kafka_source.protocol import Request
from spark_kafka_source.protocol.messages.membership import HeartbeatRequest, HeartbeatResponse
from spark_kafka_source.protocol.messages.metadata import MetadataRequest, MetadataResponse
from spark_kafka_source.testing.memory import MemoryBroker
from tests.consumer.consumers import eventually

Told = tuple[type[Request[Any]], str | None]
DENIED = error_named("GROUP_AUTHORIZATION_FAILED")


@pytest.fixture
def told() -> list[Told]:
    return []


@pytest.fixture
def coordinator(broker: MemoryBroker, told: list[Told]) -> Iterator[Coordinator]:
    def hear(request: Request[Any], took_ms: float, error: Exception | None) -> None:
        assert took_ms >= 0
        told.append((type(request), None if error is None else type(error).__name__))

    with KafkaClient(broker.config()) as client:
        yield Coordinator(client, "g", hear)


def in_time() -> Deadline:
    return Deadline.after_ms(30_000)


def held_beat(broker: MemoryBroker, coordinator: Coordinator) -> Running[HeartbeatResponse]:
    """Begin a heartbeat that the broker has, and does not answer yet."""
    held = broker.hold(HeartbeatRequest)
    beat = Running(coordinator.ask(HeartbeatRequest("g", 1, "m"), in_time(), lambda _: None))

    def has_come() -> bool:
        beat.go_on()
        return bool(broker.requests(HeartbeatRequest))

    eventually(has_come)
    held.release()
    return beat


def another(coordinator: Coordinator) -> MetadataResponse:
    request = MetadataRequest(topics=[])
    return coordinator.client.run(coordinator.ask(request, in_time(), lambda _: None))


def test_one_that_was_interrupted_is_told_of_to_nobody(
    broker: MemoryBroker, coordinator: Coordinator, told: list[Told]
) -> None:
    """Its answer comes all the same, and is not taken for that to the next request."""
    beat = held_beat(broker, coordinator)
    coordinator.interrupt()
    beat.go_on()
    with pytest.raises(InterruptedRequestError):
        beat.result()
    coordinator.is_interrupted = False
    assert isinstance(another(coordinator), MetadataResponse)
    assert not any(each.is_busy for each in coordinator.client.connections._open[broker.address()])
    assert told == [(MetadataRequest, None)]


def test_one_that_was_given_up_is_told_of_to_nobody(
    broker: MemoryBroker, coordinator: Coordinator, told: list[Told]
) -> None:
    """As after a Ctrl-C, or a cancellation."""
    held_beat(broker, coordinator).give_up()
    assert isinstance(another(coordinator), MetadataResponse)
    assert told == [(MetadataRequest, None)]


def test_an_error_is_told_of_as_such(
    broker: MemoryBroker, coordinator: Coordinator, told: list[Told]
) -> None:
    def refuse(_: MetadataResponse) -> None:
        raise BrokerError(DENIED, "Metadata")

    question = coordinator.ask(MetadataRequest(topics=[]), in_time(), refuse)
    with pytest.raises(BrokerError):
        coordinator.client.run(question)
    assert told == [(MetadataRequest, "BrokerError")]
