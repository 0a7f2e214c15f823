"""Connecting in the background."""

import threading
from collections.abc import Iterator

import pytest

from spark_kafka_source.errors import ClosedError, ConnectionFailedError
from spark_kafka_source.net import Address, ConnectionSettings, Contacts, Deadline, Dial, readable
from spark_kafka_source.protocol.messages.api_versions import ApiVersionsRequest
from tests.memory_broker import Action, MemoryBroker
from tests.net.ports import LOOPBACK, dropping_port, refused_port

SETTINGS = ConnectionSettings(socket_connection_setup_timeout_ms=3_600_000)


@pytest.fixture
def broker() -> Iterator[MemoryBroker]:
    with MemoryBroker() as broker:
        yield broker


def dialing(address: Address) -> Dial:
    return Dial.connecting(address, SETTINGS, Contacts())


def wait_for(dial: Dial) -> None:
    assert readable([dial], Deadline.after_ms(20_000))


def test_a_dial_becomes_readable_once_there_is_a_connection(broker: MemoryBroker) -> None:
    dial = dialing(broker.address())
    wait_for(dial)
    connection = dial.connection()
    assert dial.is_done
    assert dial.is_good
    assert connection.usable
    connection.close()
    assert not dial.is_good


def test_a_dial_that_failed_raises_why(broker: MemoryBroker) -> None:
    with refused_port() as refused:
        dial = dialing(Address(LOOPBACK, refused))
        wait_for(dial)
        with pytest.raises(ConnectionFailedError, match="refused"):
            dial.connection()
    assert not dial.is_good
    # The error refers to the dial. Only the garbage collector would close its sockets.
    assert dial.fileno() == -1


def test_nobody_has_to_wait_for_an_address_that_drops_attempts() -> None:
    with dropping_port() as dropping:
        dial = dialing(Address(LOOPBACK, dropping))
        assert not dial.is_done
        assert not dial.is_heard
        with pytest.raises(ClosedError):
            dial.connection()
        dial.close()
        wait_for(dial)


def test_close_ends_what_waits_for_a_first_answer(broker: MemoryBroker) -> None:
    """Pytest turns an unclosed socket into an error."""
    broker.control(ApiVersionsRequest, Action.SILENCE)
    dial = dialing(broker.address())
    broker.wait_for(ApiVersionsRequest)
    dial.close()
    for thread in threading.enumerate():
        if thread.name == f"connecting to {broker.address()}":
            thread.join(20)
    with pytest.raises((ClosedError, ConnectionFailedError)):
        dial.connection()


def test_a_broker_is_heard_once_it_has_said_its_versions(broker: MemoryBroker) -> None:
    dial = dialing(broker.address())
    wait_for(dial)
    assert dial.is_heard
    dial.close()


def test_where_no_thread_can_start_the_caller_connects(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Since Python 3.12 an interpreter that ends starts no thread."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    address = broker.address()
    monkeypatch.setattr(threading.Thread, "start", refuse)
    dial = dialing(address)
    assert dial.is_done
    dial.connection().close()
