"""Connections of a client: more of them come for many questions at once, and go after them."""

import pytest

from spark_kafka_source.client import Asked, Broker, KafkaClient
from spark_kafka_source.errors import ConnectionFailedError
from spark_kafka_source.net import Connection, Deadline
from spark_kafka_source.net import connection as connection_module
from spark_kafka_source.protocol import Exchange
from spark_kafka_source.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from spark_kafka_source.protocol.messages.metadata import MetadataRequest, MetadataResponse
from spark_kafka_source.testing.memory import MemoryBroker
from tests.consumer.consumers import eventually

MANY = 8


def ask(client: KafkaClient, broker: MemoryBroker) -> Asked[MetadataResponse]:
    """Send a question, and leave its answer to come."""
    deadline = Deadline.after_ms(30_000)
    asked = client.ask(MetadataRequest(topics=[]), Broker(0, broker.address()), deadline)
    eventually(lambda: asked.advance() or asked.is_sent)
    assert asked.is_sent
    return asked


def ask_at_once(client: KafkaClient, broker: MemoryBroker, count: int) -> None:
    """Ask so many questions. The broker answers none before it has all of them."""
    broker.forget()
    held = [broker.hold(MetadataRequest) for _ in range(count)]
    asked = [ask(client, broker) for _ in range(count)]
    broker.wait_for(MetadataRequest, count)
    for each in held:
        each.release()
    for answer in asked:
        answer.answer()


def open_to(client: KafkaClient, broker: MemoryBroker) -> list[Connection]:
    return [each for each in client.connections._open[broker.address()] if not each.closed]


def test_each_question_that_waits_has_a_connection_to_itself(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    ask_at_once(client, broker, MANY)
    assert broker.accepted() == len(open_to(client, broker)) == MANY


def test_few_connections_are_kept_after_many_questions_at_once(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    for _ in range(2):
        ask_at_once(client, broker, MANY)
        before = open_to(client, broker)
        held = broker.hold(MetadataRequest)
        asked = ask(client, broker)
        idle = [each for each in open_to(client, broker) if not each.is_busy]
        assert len(idle) == 2
        held.release()
        asked.answer()
        assert set(idle) < set(before[-3:]), "those used last are kept"
    client.close()
    assert not open_to(client, broker)


def test_questions_one_after_the_other_share_a_connection(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    for _ in range(MANY):
        ask_at_once(client, broker, 1)
    assert broker.accepted() == 1


def test_a_connection_that_the_broker_closes_just_then_is_replaced(
    broker: MemoryBroker, client: KafkaClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(client, broker).answer()
    may_send = client.connections.may_send

    def closed_before(connection: Connection, most_in_flight: int) -> bool:
        monkeypatch.undo()
        broker.hang_up(0)
        eventually(lambda: not connection.usable)
        return may_send(connection, most_in_flight)

    monkeypatch.setattr(client.connections, "may_send", closed_before)
    assert ask(client, broker).answer().brokers
    assert broker.accepted() == 2


def ctrl_c(*_: object) -> None:
    raise KeyboardInterrupt


class CtrlC:
    """A class in whose place comes a Ctrl-C."""

    def __class_getitem__(cls, _: object) -> None:
        raise KeyboardInterrupt


def test_after_a_ctrl_c_within_an_answer_nobody_waits_for_the_rest(
    broker: MemoryBroker, client: KafkaClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = broker.hold(MetadataRequest)  # Else a fast answer could come before the Ctrl-C.
    asked = ask(client, broker)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Exchange, "response", ctrl_c)
        held.release()
        asked.answer()
    assert asked.advance()
    with pytest.raises(ConnectionFailedError):
        asked.answer()
    assert ask(client, broker).answer().brokers


def test_after_a_ctrl_c_within_a_request_no_other_gets_its_answer(
    broker: MemoryBroker, client: KafkaClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(client, broker).answer()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt) as interrupted:
        patched.setattr(connection_module, "Awaited", CtrlC)
        ask(client, broker)
    to, deadline = Broker(0, broker.address()), Deadline.after_ms(30_000)
    found = client.ask(FindCoordinatorRequest("g"), to, deadline, max_version=3).answer()
    assert isinstance(found, FindCoordinatorResponse)
    assert interrupted.value, "its traceback still has the request"
