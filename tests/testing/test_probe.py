"""The probe accepts only a whole answer, and never raises."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from spark_kafka_source.testing.probe import brokers_in_service


def broker(node_id: int, host: bytes = b"localhost", rack: bytes | None = None) -> bytes:
    start = struct.pack(">ih", node_id, len(host)) + host + struct.pack(">i", 9092)
    return start + struct.pack(">h", -1 if rack is None else len(rack)) + (rack or b"")


def answer(*brokers: bytes) -> bytes:
    body = struct.pack(">ii", 0, len(brokers)) + b"".join(brokers)
    # The rest, the controller and no topics, does not matter.
    body += struct.pack(">ii", 1, 0)
    return struct.pack(">i", len(body)) + body


@contextmanager
def server(says: bytes) -> Iterator[int]:
    """Return the port of a server. It sends `says` to its first client, and closes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1024)
                connection.sendall(says)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


@pytest.mark.parametrize(
    ("says", "ids"),
    [
        (answer(), set()),
        (answer(broker(1)), {1}),
        (answer(broker(1), broker(22, b"", b"rack"), broker(3, b"h" * 300)), {1, 22, 3}),
    ],
)
def test_the_brokers_of_an_answer(says: bytes, ids: set[int]) -> None:
    with server(says) as port:
        assert brokers_in_service(port, 10_000) == ids


@pytest.mark.parametrize(
    "says",
    [
        b"",
        b"\0\0",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        struct.pack(">i", -1),
        struct.pack(">i", 1 << 30),
        struct.pack(">i", 0),
        struct.pack(">iii", 8, 0, 1 << 30),
        struct.pack(">iii", 8, 0, -1),
        struct.pack(">iiiih", 14, 0, 1, 1, -32768),
        answer(broker(1))[:-10],
    ],
)
def test_anything_else_is_no_broker(says: bytes) -> None:
    with server(says) as port:
        assert brokers_in_service(port, 10_000) == set()


def test_no_server_is_no_broker() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert brokers_in_service(port, 10_000) == set()
