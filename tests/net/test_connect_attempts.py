"""Connecting to the addresses of one name in quick succession (RFC 8305)."""

import socket

import pytest

from spark_kafka_source.errors import ConnectionFailedError
from spark_kafka_source.net import Address, Connection, ConnectionSettings, Deadline
from spark_kafka_source.net import connection as connection_module
from spark_kafka_source.net.broker_history import BrokerHistory
from spark_kafka_source.net.connect_attempts import ConnectAttempts
from spark_kafka_source.testing.memory import MemoryBroker
from tools.ports import LOOPBACK, black_hole, dropping_port, refused_port

NAME = Address("kafka.example.org", 9092)


def name_stands_for(monkeypatch: pytest.MonkeyPatch, *ports: int) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (LOOPBACK, port)) for port in ports]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)


def connect(history: BrokerHistory) -> Connection:
    """Connect with a timeout of an hour. The delay between addresses is a quarter of a second."""
    hour = ConnectionSettings(socket_connection_setup_timeout_ms=3_600_000)
    return Connection.connect(NAME, hour, Deadline.after_ms(3_600_000), history=history)


def test_an_address_that_drops_attempts_does_not_delay_the_next_for_long(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with dropping_port() as dropping:
        name_stands_for(monkeypatch, dropping, broker.address().port)
        connect(BrokerHistory()).close()


def test_an_address_that_takes_the_connection_and_is_silent_is_left_for_the_next(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "_LONGEST_SILENCE_MS", 50)
    with black_hole() as silent:
        name_stands_for(monkeypatch, silent.port, broker.address().port)
        history = BrokerHistory()
        connect(history).close()
        assert history.is_suspect((LOOPBACK, silent.port))


def test_what_failed_is_tried_last_the_next_time(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with refused_port() as refused:
        name_stands_for(monkeypatch, refused, broker.address().port)
        history = BrokerHistory()
        connect(history).close()
        attempts = ConnectAttempts(NAME, {}, history, Deadline.after_ms(30_000))
        link, target = attempts.next()
        assert target == (LOOPBACK, broker.address().port)
        assert attempts.has_more, "the refused one was not tried"
        link.close()
        attempts.close()


def test_families_of_addresses_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    def family(kind: int, *ports: int) -> list[object]:
        return [(kind, socket.SOCK_STREAM, 0, "", (LOOPBACK, port)) for port in ports]

    found = family(socket.AF_INET6, 1, 2, 3) + family(socket.AF_INET, 4)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    tried: list[int] = []

    def refused(family: int, *_: object) -> socket.socket:
        tried.append(family)
        raise OSError("no such family")

    monkeypatch.setattr(socket, "socket", refused)
    attempts = ConnectAttempts(NAME, {}, BrokerHistory(), Deadline.after_ms(30_000))
    with pytest.raises(ConnectionFailedError):
        attempts.next()
    six, four = socket.AF_INET6, socket.AF_INET
    assert tried == [six, four, six, six]
    attempts.close()
