"""Connecting to the addresses of one name in quick succession (RFC 8305)."""

import socket
from collections.abc import Iterator

import pytest

from spark_kafka_source.errors import ConnectionFailedError
from spark_kafka_source.net import Address, Connection, ConnectionSettings, Deadline
from spark_kafka_source.net import connection as connection_module
from spark_kafka_source.net.contacts import Contacts
from spark_kafka_source.net.opening import Opening
from tests.memory_broker import MemoryBroker
from tests.net.ports import LOOPBACK, black_hole, dropping_port, refused_port

NAME = Address("kafka.example.org", 9092)


@pytest.fixture
def broker() -> Iterator[MemoryBroker]:
    with MemoryBroker() as broker:
        yield broker


def name_stands_for(monkeypatch: pytest.MonkeyPatch, *ports: int) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (LOOPBACK, port)) for port in ports]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)


def connect(contacts: Contacts) -> Connection:
    """Connect with a timeout of an hour. The delay between addresses is a quarter of a second."""
    hour = ConnectionSettings(socket_connection_setup_timeout_ms=3_600_000)
    return Connection.connect(NAME, hour, Deadline.after_ms(3_600_000), contacts=contacts)


def test_an_address_that_drops_attempts_does_not_delay_the_next_for_long(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with dropping_port() as dropping:
        name_stands_for(monkeypatch, dropping, broker.address().port)
        connect(Contacts()).close()


def test_an_address_that_takes_the_connection_and_is_silent_is_left_for_the_next(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "_LONGEST_SILENCE_MS", 50)
    with black_hole() as silent:
        name_stands_for(monkeypatch, silent.port, broker.address().port)
        contacts = Contacts()
        connect(contacts).close()
        assert contacts.is_suspect((LOOPBACK, silent.port))


def test_what_failed_is_tried_last_the_next_time(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with refused_port() as refused:
        name_stands_for(monkeypatch, refused, broker.address().port)
        contacts = Contacts()
        connect(contacts).close()
        opening = Opening(NAME, {}, contacts, Deadline.after_ms(30_000))
        link, target = opening.next()
        assert target == (LOOPBACK, broker.address().port)
        assert opening.has_more, "the refused one was not tried"
        link.close()
        opening.close()


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
    opening = Opening(NAME, {}, Contacts(), Deadline.after_ms(30_000))
    with pytest.raises(ConnectionFailedError):
        opening.next()
    six, four = socket.AF_INET6, socket.AF_INET
    assert tried == [six, four, six, six]
    opening.close()
