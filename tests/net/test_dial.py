"""Connecting in the background."""

import contextlib
import socket
import threading

import pytest

from spark_kafka_source.client import ClientConfig, KafkaClient
from spark_kafka_source.errors import ClosedError, ConnectionFailedError, KafkaError, LocalError
from spark_kafka_source.net import (
    Address,
    BrokerHistory,
    ConnectionSettings,
    Deadline,
    Dial,
    readable,
)
from spark_kafka_source.protocol.messages.api_versions import ApiVersionsRequest
from spark_kafka_source.testing.memory import Action, MemoryBroker
from tools.ports import LOOPBACK, dropping_port, refused_port

SETTINGS = ConnectionSettings(socket_connection_setup_timeout_ms=3_600_000)


def dialing(address: Address) -> Dial:
    return Dial.connecting(address, SETTINGS, BrokerHistory())


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
            thread.join(60)
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


# -- the pause before a broker is connected to again -----------------------------------------------

NEVER = ConnectionSettings(reconnect_backoff_ms=3_600_000, reconnect_backoff_max_ms=3_600_000)


def end_of(address: Address) -> None:
    for thread in threading.enumerate():
        if thread.name == f"connecting to {address}":
            thread.join(60)
            assert not thread.is_alive()


def test_after_a_failure_the_next_dial_waits_for_the_pause() -> None:
    history = BrokerHistory()
    with refused_port() as refused:
        address = Address(LOOPBACK, refused)
        wait_for(Dial.connecting(address, NEVER, history))
        second = Dial.connecting(address, NEVER, history)
        assert not readable([second], Deadline.after_ms(50))
        second.close()
        end_of(address)
    with pytest.raises(ClosedError):
        second.connection()


def test_each_broker_has_pauses_of_its_own(broker: MemoryBroker) -> None:
    history = BrokerHistory()
    with refused_port() as refused:
        wait_for(Dial.connecting(Address(LOOPBACK, refused), NEVER, history))
    dial = Dial.connecting(broker.address(), NEVER, history)
    wait_for(dial)
    dial.connection().close()


def test_a_connection_that_the_broker_ends_counts_as_one_failure(broker: MemoryBroker) -> None:
    history = BrokerHistory()
    dial = Dial.connecting(broker.address(), NEVER, history)
    wait_for(dial)
    connection = dial.connection()
    assert history.pause_seconds(broker.address()) == 0
    broker.control(ApiVersionsRequest, Action.CLOSE)
    with pytest.raises(ConnectionFailedError):
        connection.request(ApiVersionsRequest(), Deadline.after_ms(20_000))
    assert history.pause_seconds(broker.address()) > 2_000


@pytest.mark.parametrize(
    ("backoff_ms", "try_ms", "expected"), [(0, 20_000, 5), (3_600_000, 500, 1)]
)
def test_a_client_connects_no_more_often_than_told(
    backoff_ms: int, try_ms: int, expected: int
) -> None:
    """The client tries again at once; a port that ends each connection counts them."""
    with socket.create_server((LOOPBACK, 0)) as server:
        accepted = []

        def end_each() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connected, _ = server.accept()
                    accepted.append(1)
                    connected.close()

        thread = threading.Thread(target=end_each, daemon=True)
        thread.start()
        settings = ConnectionSettings(
            reconnect_backoff_ms=backoff_ms, reconnect_backoff_max_ms=backoff_ms
        )
        address = Address(LOOPBACK, server.getsockname()[1])
        tries = []

        async def attempt(deadline: Deadline) -> None:
            tries.append(1)
            if len(tries) > 5:
                raise LocalError("enough")
            await client.topics([], Deadline.after_ms(try_ms))

        config = ClientConfig((address,), settings, retry_backoff_ms=0)
        with KafkaClient(config) as client, pytest.raises(KafkaError):
            client.run(client.retrying("Metadata", attempt, timeout_ms=120_000))
        assert len(accepted) == expected
        server.shutdown(socket.SHUT_RDWR)
        thread.join(60)
