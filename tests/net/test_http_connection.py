"""One HTTP connection: reuse, reconnects, and limits of time and size."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from spark_kafka_source.errors import ConnectionFailedError, ProtocolError
from spark_kafka_source.net import (
    Address,
    Deadline,
    Peer,
    RequestTimeoutError,
    TlsError,
    TlsSettings,
)
from spark_kafka_source.net.http_connection import HttpConnection, HttpRequest
from spark_kafka_source.secret import Secret
from tools.certificates import Certified
from tools.ports import LOOPBACK, black_hole, refused_port

PEER = Peer("server", "Use its name", "Use another port")
GET = HttpRequest("GET", "/a?b", {"X-Token": "canary"})
POST = HttpRequest("POST", "/a", {}, b"body")
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-One: 1\r\nx-one: 2\r\n\r\nhi"
CLOSING = b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
WAIT_SECONDS = 30


@dataclass
class Server:
    """Accept connections in turn. Send each connection its answers, then close it."""

    address: Address
    asked: list[list[bytes]] = field(default_factory=list)


@contextmanager
def serving(*connections: list[bytes]) -> Iterator[Server]:
    def serve() -> None:
        for answers in connections:
            link, _ = listener.accept()
            with link:
                link.settimeout(WAIT_SECONDS)
                known.asked.append([])
                for answer in answers:
                    known.asked[-1].append(_request(link))
                    link.sendall(answer)

    with socket.create_server((LOOPBACK, 0)) as listener:
        known = Server(Address(LOOPBACK, listener.getsockname()[1]))
        thread = threading.Thread(target=serve)
        thread.start()
        yield known
        thread.join(WAIT_SECONDS)
        assert not thread.is_alive()


def _request(link: socket.socket) -> bytes:
    """Read a whole request with four or no bytes of body. For TLS, read the first bytes."""
    data = link.recv(65_536)
    end = b"body" if data.startswith(b"POST") else b"\r\n\r\n"
    while data and not data.startswith(b"\x16") and not data.endswith(end):
        data += link.recv(65_536)
    return data


def connection_to(address: Address, tls: TlsSettings | None = None) -> HttpConnection:
    return HttpConnection(address, tls, PEER, most_bytes=100)


def soon() -> Deadline:
    return Deadline.after_ms(WAIT_SECONDS * 1000)


def test_what_is_asked_and_answered() -> None:
    with serving([ANSWER, ANSWER]) as server:
        connection = connection_to(server.address)
        answer = connection.ask(GET, soon())
        assert (answer.status, answer.body, answer.headers["x-one"]) == (200, b"hi", "1")
        assert connection.ask(POST, soon()) == answer
        connection.close()
    (first, second) = server.asked[0]
    assert first.startswith(b"GET /a?b HTTP/1.1\r\n")
    assert b"\r\nX-Token: canary\r\n" in first
    assert first.count(f"\r\nHost: {server.address}\r\n".encode()) == 1
    assert second.startswith(b"POST /a HTTP/1.1\r\n")
    assert b"\r\nContent-Length: 4\r\n" in second
    assert second.endswith(b"\r\n\r\nbody")
    assert "canary" not in repr(GET)


def test_a_connection_that_is_over_is_made_anew() -> None:
    with serving([CLOSING], [ANSWER], [ANSWER, ANSWER]) as server:
        connection = connection_to(server.address)
        assert connection.ask(GET, soon()).status == 404
        assert connection.ask(GET, soon()).body == b"hi"
        # The server has closed. The client sees this at once, or with its request.
        assert connection.ask(GET, soon()).body == b"hi"
        assert connection.ask(GET, soon()).body == b"hi"
        connection.close()
    assert [len(each) for each in server.asked] == [1, 1, 2]


def test_one_that_hangs_up_when_it_is_asked_is_asked_anew() -> None:
    with serving([ANSWER, b""], [ANSWER]) as server:
        connection = connection_to(server.address)
        assert connection.ask(GET, soon()).body == b"hi"
        assert connection.ask(GET, soon()).body == b"hi"
        connection.close()
    assert [len(each) for each in server.asked] == [2, 1]


def test_a_new_one_that_hangs_up_has_failed() -> None:
    with serving([b""]) as server:
        text = rf"^{server.address}: Remote end closed connection without response"
        with pytest.raises(ConnectionFailedError, match=text):
            connection_to(server.address).ask(GET, soon())


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 101,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n" + b"x" * 101,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 20_000,
    ],
)
def test_an_answer_has_so_many_bytes_at_most(answer: bytes) -> None:
    with serving([answer], [ANSWER]) as server:
        connection = connection_to(server.address)
        with pytest.raises(ProtocolError, match=f"{server.address}: an answer of more than 100"):
            connection.ask(GET, soon())
        # The rest of this answer is not the beginning of the next one.
        assert connection.ask(GET, soon()).body == b"hi"
        connection.close()


@pytest.mark.parametrize("answer", [b"\0" * 9, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi"])
def test_an_answer_that_is_not_whole(answer: bytes) -> None:
    refused = pytest.raises(ConnectionFailedError, match="no complete HTTP answer")
    with serving([answer]) as server, refused:
        connection_to(server.address).ask(GET, soon())


def test_nobody_there() -> None:
    with refused_port() as port, pytest.raises(ConnectionFailedError, match="refused"):
        connection_to(Address(LOOPBACK, port)).ask(GET, soon())
    with black_hole() as address, pytest.raises(RequestTimeoutError, match=f"{address}: timed"):
        connection_to(address).ask(GET, Deadline.after_ms(50))


def test_tls_that_cannot_be_sends_nothing(server: Certified, tmp_path: Path) -> None:
    store = tmp_path / "ca.pem"
    store.write_text(server.certificate_pem)
    tls = TlsSettings(ssl_truststore_location=str(store))
    with serving([ANSWER], []) as plain:
        connection = connection_to(plain.address, tls)
        with pytest.raises(TlsError, match="does not speak TLS there"):
            connection.ask(GET, soon())
        broken = TlsSettings(ssl_truststore_certificates=Secret("no certificate"))
        connection = connection_to(plain.address, broken)
        with pytest.raises(Exception, match="holds no certificate"):
            connection.ask(GET, soon())
    # The server has read the beginning of TLS.
    assert [each[:1] for asked in plain.asked for each in asked] == [b"\x16"]


@pytest.mark.parametrize(
    ("address", "tls", "host"),
    [
        (Address("r", 443), TlsSettings(), "r"),
        (Address("r", 80), TlsSettings(), "r:80"),
        (Address("::1", 80), None, "[::1]"),
        (Address("::1", 8081), None, "[::1]:8081"),
    ],
)
def test_the_usual_port_is_not_said(address: Address, tls: TlsSettings | None, host: str) -> None:
    assert connection_to(address, tls).host == host
