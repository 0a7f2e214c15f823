"""A node of the in-memory broker: its port while it is stopped, and what it makes of bad bytes."""

import gc
import logging
import socket

import pytest

from spark_kafka_source.protocol import RequestHeader, ResponseHeader, decode_prefix, encode
from spark_kafka_source.protocol.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from spark_kafka_source.protocol.messages.metadata import MetadataRequest, MetadataResponse
from spark_kafka_source.testing.memory import MemoryBroker

TIMEOUT_SECONDS = 30
METADATA_VERSION = 12


def framed(content: bytes) -> bytes:
    return len(content).to_bytes(4) + content


def header(key: int, version: int) -> bytes:
    return encode(RequestHeader(key, version, 7, None), 2)


def connected(broker: MemoryBroker) -> socket.socket:
    address = broker.address()
    return socket.create_connection((address.host, address.port), TIMEOUT_SECONDS)


def heard(client: socket.socket) -> bytes:
    """Return the content of the next frame."""
    with client.makefile("rb") as incoming:
        return incoming.read(int.from_bytes(incoming.read(4)))


def test_a_stopped_node_keeps_its_port_and_refuses() -> None:
    with MemoryBroker() as broker:
        address = broker.address()
        met = (address.host, address.port)
        for _ in range(3):
            # The node closes this connection first, so the kernel keeps it on the node's port.
            with socket.create_connection(met) as client:
                broker.stop(0)
                assert client.recv(1) == b""
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(met)
            with pytest.raises(OSError, match="in use"):
                socket.create_server(met)
            broker.start(0)
            assert broker.address() == address


def test_bytes_after_a_request_are_ignored() -> None:
    question = encode(MetadataRequest(topics=[]), METADATA_VERSION)
    with MemoryBroker() as broker, connected(broker) as client:
        client.sendall(framed(header(MetadataRequest.KEY, METADATA_VERSION) + question + b"rest"))
        found, rest = decode_prefix(ResponseHeader, 1, heard(client))
        assert found.correlation_id == 7
        answer, _ = decode_prefix(MetadataResponse, METADATA_VERSION, rest)
        assert [each.node_id for each in answer.brokers] == [0]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00",
        b"GET / HTTP/1.1",
        header(MetadataRequest.KEY, METADATA_VERSION)[:6],
        header(MetadataRequest.KEY, METADATA_VERSION),
        header(MetadataRequest.KEY, METADATA_VERSION) + b"\xff" * 9,
    ],
)
def test_bad_bytes_end_only_their_connection(content: bytes) -> None:
    with MemoryBroker() as broker:
        with connected(broker) as client:
            client.sendall(framed(content))
            assert client.recv(1) == b""
        with connected(broker) as client:
            client.sendall(framed(header(ApiVersionsRequest.KEY, 99)))
            _, rest = decode_prefix(ResponseHeader, 0, heard(client))
            answer, _ = decode_prefix(ApiVersionsResponse, 0, rest)
            assert answer.error_code == 35


def test_a_bad_request_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), MemoryBroker() as broker, connected(broker) as client:
        client.sendall(framed(header(MetadataRequest.KEY, METADATA_VERSION)))
        assert client.recv(1) == b""
    assert "Broker 0 hangs up on a client's bad request: MetadataRequest v12" in caplog.text


def fail(broker: MemoryBroker, connections: int) -> None:
    """Let the broker itself fail, once for each connection."""

    def broken(_: object) -> MetadataResponse:
        raise ZeroDivisionError

    broker.control(MetadataRequest, broken, times=None)
    question = encode(MetadataRequest(topics=[]), METADATA_VERSION)
    for _ in range(connections):
        with connected(broker) as client:
            client.sendall(framed(header(MetadataRequest.KEY, METADATA_VERSION) + question))
            assert client.recv(1) == b""


def test_a_failure_of_the_broker_does_not_hide_the_error_of_the_test() -> None:
    with pytest.raises(KeyError) as raised, MemoryBroker() as broker:
        fail(broker, 1)
        raise KeyError
    assert raised.value.__notes__ == ["A broker in memory failed, too: ZeroDivisionError()"]


def test_a_failure_of_the_broker_is_raised_once(caplog: pytest.LogCaptureFixture) -> None:
    gc.collect()  # What other tests have left is told of before.
    caplog.clear()
    with pytest.raises(ZeroDivisionError), MemoryBroker() as broker:
        fail(broker, 2)
    gc.collect()
    assert "never retrieved" not in caplog.text
