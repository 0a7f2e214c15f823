"""One HTTP connection: reuse, reconnects, and limits of time and size."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from spark_kafka_source.errors import ConfigurationError, ConnectionFailedError, ProtocolError
from spark_kafka_source.net import (
    Address,
    Deadline,
    Peer,
    RequestTimeoutError,
    TlsError,
    TlsSettings,
    http_connection,
    parse_addresses,
)
from spark_kafka_source.net.http_connection import HttpConnection, HttpRequest, proxy_for
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


@pytest.mark.parametrize(
    "answer",
    [
        b"\0" * 9,
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhi",
    ],
)
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


# -- proxies ---------------------------------------------------------------------------------------

ELSEWHERE = Address("registry.invalid", 8081)


@pytest.fixture
def proxied(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that sets the variables of proxies, and no others."""
    for name in ("http_proxy", "https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)

    def proxied(**variables: str) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return proxied


@pytest.mark.parametrize(
    ("variables", "server", "found"),
    [
        ({}, "r:8081", None),
        ({"HTTP_PROXY": "http://p:3128/"}, "r:8081", "p:3128"),
        ({"http_proxy": "p"}, "r:8081", "p:80"),
        ({"HTTP_PROXY": "http://[::2]:3128"}, "r:8081", "[::2]:3128"),
        ({"HTTPS_PROXY": "http://p:3128"}, "r:8081", None),
        ({"HTTP_PROXY": "http://p:3128"}, "localhost:8081", None),
        ({"HTTP_PROXY": "http://p:3128"}, "127.0.0.2:8081", None),
        ({"HTTP_PROXY": "http://p:3128", "NO_PROXY": "*"}, "r:8081", None),
        ({"HTTP_PROXY": "http://p:3128", "NO_PROXY": "x, r"}, "r:8081", None),
        ({"HTTP_PROXY": "http://p:3128", "NO_PROXY": "r:8081"}, "r:8081", None),
        ({"HTTP_PROXY": "http://p:3128", "NO_PROXY": "r:8082"}, "r:8081", "p:3128"),
        ({"HTTP_PROXY": "http://p:3128", "NO_PROXY": ".a.b"}, "r.a.b:8081", None),
        ({"HTTP_PROXY": "http://p:3128", "NO_PROXY": "a.b"}, "r.a.b:8081", None),
        ({"HTTP_PROXY": "http://p:3128", "NO_PROXY": "a.b"}, "ra.b:8081", "p:3128"),
        ({"HTTP_PROXY": "http://p:3128", "NO_PROXY": "*.a.b"}, "r.a.b:8081", "p:3128"),
        ({"HTTP_PROXY": "http://p:3128", "NO_PROXY": "10.0.0.0/8"}, "10.0.0.1:8081", "p:3128"),
        ({"HTTP_PROXY": "http://p:3128", "NO_PROXY": "bücher.x"}, "bücher.x:8081", None),
    ],
)
def test_the_proxy_for_a_server(
    proxied: Callable[..., None], variables: dict[str, str], server: str, found: str | None
) -> None:
    proxied(**variables)
    (address,) = parse_addresses(server)
    proxy = proxy_for(address, tls=False)
    assert (None if proxy is None else str(proxy.address)) == found


@pytest.mark.parametrize(
    "url",
    [
        "http:/me:canary@p:3128",
        "http://me:ca/nary@p:3128",
        "http://me:can#ary@p:3128",
        "http://me:canary@p:0",
        "http://me:canary@p:99999",
        "http://me:canary@",
        "me:canary",
    ],
)
def test_a_proxy_that_is_none_is_refused_without_its_password(
    proxied: Callable[..., None], url: str
) -> None:
    proxied(HTTPS_PROXY=url)
    with pytest.raises(ConfigurationError, match="Option 'HTTPS_PROXY': is not the address") as no:
        proxy_for(ELSEWHERE, tls=True)
    assert "nary" not in f"{no.value}{no.value!r}{no.value.__cause__}"


@pytest.mark.parametrize("kind", ["https", "socks", "SOCKS4", "socks4a", "socks5", "socks5h"])
@pytest.mark.parametrize(
    ("option", "no_proxy"), [("HTTPS_PROXY", "NO_PROXY"), ("https_proxy", "no_proxy")]
)
def test_a_proxy_of_another_kind_is_refused_with_the_ways_on(
    proxied: Callable[..., None], kind: str, option: str, no_proxy: str
) -> None:
    proxied(**{option: f"{kind}://me:canary@p:1080", no_proxy: "x"})
    with pytest.raises(ConfigurationError) as no:
        proxy_for(ELSEWHERE, tls=True)
    assert str(no.value) == (
        f"Option '{option}': names a proxy of the kind '{kind.lower()}', which is not used. Give "
        "'http://host:port', with a login 'http://user:password@host:port', or name the server in "
        f"'{no_proxy}'"
    )


@pytest.mark.parametrize("tls", [None, TlsSettings()])
@pytest.mark.parametrize(
    ("host", "sent"),
    [("bücher.example", b"xn--bcher-kva.example"), ("例え.example", b"xn--r8jz45g.example")],
)
def test_a_name_is_sent_in_ascii_and_shown_as_it_is_given(
    proxied: Callable[..., None], tls: TlsSettings | None, host: str, sent: bytes
) -> None:
    with serving([b"HTTP/1.1 407 Log in\r\n\r\n"]) as proxy:
        proxied(HTTP_PROXY=str(proxy.address), HTTPS_PROXY=str(proxy.address))
        with pytest.raises(ConfigurationError, match=f"when asked for {host}:8081"):
            connection_to(Address(host, 8081), tls).ask(GET, soon())
    assert proxy.asked[0][0].split(b" ")[1].removeprefix(b"http://").startswith(sent + b":8081")
    assert b"\r\nHost: " + sent + b":8081\r\n" in proxy.asked[0][0]


@pytest.mark.parametrize("tls", [None, TlsSettings()])
def test_a_name_that_has_no_form_in_ascii(
    proxied: Callable[..., None], tls: TlsSettings | None
) -> None:
    with serving([]) as proxy:
        proxied(HTTP_PROXY=str(proxy.address), HTTPS_PROXY=str(proxy.address))
        with pytest.raises(ConnectionFailedError, match=r"^ü\.\.x:8081 through .*'ascii' codec"):
            connection_to(Address("ü..x", 8081), tls).ask(GET, soon())


def test_http_through_a_proxy(proxied: Callable[..., None]) -> None:
    with serving([ANSWER, ANSWER]) as proxy:
        proxied(HTTP_PROXY=f" HTTP://me:p%40s@s@{proxy.address}")
        connection = connection_to(ELSEWHERE)
        assert connection.ask(GET, soon()).body == b"hi"
        assert connection.ask(POST, soon()).body == b"hi"
        connection.close()
    for request in proxy.asked[0]:
        assert request.split()[1].startswith(b"http://registry.invalid:8081/a")
        assert b"\r\nHost: registry.invalid:8081\r\n" in request
        assert b"\r\nProxy-Authorization: Basic bWU6cEBzQHM=\r\n" in request


def test_https_through_a_proxy(
    server: Certified, tmp_path: Path, proxied: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proxy sees neither the request nor its headers, and the server no login of the proxy."""
    asked: list[bytes] = []

    def serve() -> None:
        link, _ = listener.accept()
        link.settimeout(WAIT_SECONDS)
        asked.append(_request(link))
        link.sendall(b"HTTP/1.1 200 Connected\r\nX: y\r\n\r\n")
        with context.wrap_socket(link, server_side=True) as secured:
            for _ in range(2):
                asked.append(_request(secured))
                secured.sendall(ANSWER)

    context = server.server_context(tmp_path)
    tls = TlsSettings(ssl_truststore_certificates=Secret(server.certificate_pem))
    # The certificate is of this machine, for which no proxy is asked otherwise.
    monkeypatch.setattr(http_connection, "is_loopback", lambda _: False)
    with socket.create_server((LOOPBACK, 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        port = listener.getsockname()[1]
        proxied(HTTPS_PROXY=f"http://me:canary@{LOOPBACK}:{port}")
        connection = connection_to(Address("localhost", 8081), tls)
        assert [connection.ask(GET, soon()).body for _ in range(2)] == [b"hi", b"hi"]
        connection.close()
        thread.join(WAIT_SECONDS)
    assert asked[0].startswith(b"CONNECT localhost:8081 HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic bWU6Y2FuYXJ5\r\n" in asked[0]
    assert b"X-Token" not in asked[0]
    assert [b"X-Token: canary\r\n" in each for each in asked[1:]] == [True, True]
    assert not any(b"Proxy" in each for each in asked[1:])


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (b"HTTP/1.1 407 Log in\r\n\r\n", ConfigurationError, "with status 407 when asked for"),
        (b"HTTP/1.1 403 No\r\n\r\n", ConfigurationError, "or name the server in 'NO_PROXY'"),
        (b"HTTP/1.1 502 Bad\r\n\r\n", ConnectionFailedError, "with status 502 when asked for"),
        (b"", ConnectionFailedError, "closed connection without response"),
        (b"\0" * 9, ConnectionFailedError, "no complete HTTP answer"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 20_000, ConnectionFailedError, "no complete|closed"),
    ],
    ids=["login", "denied", "gateway", "hangs up", "no HTTP", "endless"],
)
def test_a_proxy_that_refuses(
    proxied: Callable[..., None], answer: bytes, kind: type[Exception], said: str
) -> None:
    with serving([answer]) as proxy:
        proxied(HTTPS_PROXY=f"http://me:canary@{proxy.address}")
        with pytest.raises(kind, match=said) as caught:
            connection_to(ELSEWHERE, TlsSettings()).ask(GET, soon())
    assert "canary" not in f"{caught.value}{caught.value!r}"
    assert proxy.asked[0][0].startswith(b"CONNECT registry.invalid:8081 ")


@pytest.mark.parametrize("tls", [None, TlsSettings()])
@pytest.mark.parametrize("piece", [b"", b"X"], ids=["silent", "a byte at a time"])
def test_the_deadline_is_for_the_whole_exchange(
    proxied: Callable[..., None], piece: bytes, tls: TlsSettings | None
) -> None:
    def serve() -> None:
        link, _ = listener.accept()
        with link, suppress(OSError):
            link.sendall(b"HTTP/1.1 200 OK\r\n")
            while not over.wait(0.01):
                link.sendall(piece)

    over = threading.Event()
    with socket.create_server((LOOPBACK, 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        proxy = f"{LOOPBACK}:{listener.getsockname()[1]}"
        proxied(HTTP_PROXY=proxy, HTTPS_PROXY=proxy)
        said = f"{ELSEWHERE} through the proxy {proxy} .'HTTPS?_PROXY'.: timed out"
        with pytest.raises(RequestTimeoutError, match=said):
            connection_to(ELSEWHERE, tls).ask(GET, Deadline.after_ms(1_000))
        over.set()
        thread.join(WAIT_SECONDS)


def test_no_proxy_there(proxied: Callable[..., None]) -> None:
    with refused_port() as port:
        proxied(HTTP_PROXY=f"http://me:canary@{LOOPBACK}:{port}")
        said = f"{ELSEWHERE} through the proxy {LOOPBACK}:{port} .'HTTP_PROXY'.: .*refused"
        with pytest.raises(ConnectionFailedError, match=said):
            connection_to(ELSEWHERE).ask(GET, soon())
