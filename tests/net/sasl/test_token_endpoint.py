"""Tokens from an endpoint by client credentials, and checks of the endpoint's answers."""

import base64
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.net.sasl import AuthenticationError, Token, TokenUnavailableError
from spark_kafka_source.net.sasl.logins import TokenEndpoint
from spark_kafka_source.net.sasl.token_endpoint import (
    MAXIMUM_RESPONSE_BYTES,
    request_token,
    token_endpoint_url,
)
from spark_kafka_source.secret import Secret
from tests.net.sasl.token_server import Answer, TokenServer, token_answer, token_server
from tests.net.sasl.tokens_of_tests import Clock
from tests.traced import traced
from tools.ports import refused_port

CANARY = "hunter2-canary"


@pytest.fixture
def server() -> Iterator[TokenServer]:
    with token_server() as known:
        yield known


def endpoint_of(server: TokenServer) -> TokenEndpoint:
    url = f"{server.url}/oauth2/token?tenant=a"
    return TokenEndpoint(url, "me+you", Secret(CANARY + "/&"), "read write")


def ask(endpoint: TokenEndpoint, clock: Clock | None = None) -> Token:
    clock = clock or Clock()
    return request_token(endpoint, clock=clock, pause=clock.pause)


def claims(**fields: object) -> str:
    """Return an unsigned JSON web token."""
    found = base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")
    return f"e30.{found}.c2ln"


def test_what_is_asked_and_what_is_made_of_it(server: TokenServer) -> None:
    endpoint = endpoint_of(server)
    assert ask(endpoint) == Token(Secret("token"), 1_000_600.0)
    path, headers, body = server.requests[0]
    assert path == "/oauth2/token?tenant=a"
    assert body == b"grant_type=client_credentials&scope=read+write"
    assert headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert base64.b64decode(headers["Authorization"].removeprefix("Basic ")) == (
        f"me+you:{CANARY}/&".encode()
    )
    ask(replace(endpoint, urlencode_header=True, scope=""))
    _, headers, body = server.requests[1]
    assert body == b"grant_type=client_credentials"
    assert base64.b64decode(headers["Authorization"].removeprefix("Basic ")) == (
        f"me%2Byou:{CANARY}%2F%26".encode()
    )


@pytest.mark.parametrize(
    ("fields", "expires_at_seconds"),
    [
        ({"expires_in": 60.5}, 1_000_060.5),
        ({"expires_in": "60"}, 1_000_060),
        ({"expires_in": None, "access_token": claims(exp=1_000_900)}, 1_000_900),
        ({"expires_in": 60, "access_token": claims(exp=5)}, 1_000_060),
        ({"expires_in": 1e14}, 1_000_000 + 366 * 86400),
    ],
)
def test_when_it_expires(
    server: TokenServer, fields: dict[str, object], expires_at_seconds: float
) -> None:
    server.answers = [token_answer(**fields)]
    assert ask(endpoint_of(server)).expires_at_seconds == expires_at_seconds


def test_faults_that_may_heal_are_tried_again_with_longer_and_longer_pauses(
    server: TokenServer,
) -> None:
    server.answers = [Answer(b"", 503), Answer(b"", 429), Answer(b"", 500), token_answer()]
    clock = Clock()
    assert ask(endpoint_of(server), clock).value == Secret("token")
    assert clock.pauses == [0.1, 0.2, 0.4]


def test_they_are_not_tried_for_ever(server: TokenServer) -> None:
    server.answers = [Answer(CANARY.encode(), 503)]
    clock = Clock()
    with pytest.raises(TokenUnavailableError, match="answered with status 503") as raised:
        ask(endpoint_of(server), clock)
    assert raised.value.retriable
    assert sum(clock.pauses) < 10
    assert len(server.requests) == len(clock.pauses) + 1 == 7
    assert CANARY not in str(raised.value)


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (Answer(b'{"error": "invalid_client"}', 401), "status 401 and invalid_client. Check the"),
        (Answer(json.dumps({"error": CANARY}).encode(), 400), "status 400. Check the client's id"),
        (Answer(CANARY.encode(), 403), "status 403"),
        (Answer(b"", 302, {"Location": "http://127.0.0.1:1/"}), "Redirections are not followed"),
        (Answer(CANARY.encode()), "no JSON with an 'access_token'"),
        (Answer(json.dumps([CANARY]).encode()), "no JSON with an 'access_token'"),
        (Answer(b"[" * 100_000), "no JSON with an 'access_token'"),
        (Answer(b'{"access_token": 1}'), "no JSON with an 'access_token'"),
        (token_answer(access_token=CANARY, expires_in=None), "neither 'expires_in' nor"),
        (token_answer(access_token=CANARY, expires_in=True), "neither 'expires_in' nor"),
        (token_answer(access_token=CANARY, expires_in=float("inf")), "neither 'expires_in' nor"),
        (token_answer(access_token="a.%%%.b", expires_in=-1), "neither 'expires_in' nor"),
        (token_answer(access_token="a.é.b", expires_in=-1), "neither 'expires_in' nor"),
        (Answer(b" " * (MAXIMUM_RESPONSE_BYTES + 1)), "an answer of more than"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_heal_is_raised_at_once(
    server: TokenServer, answer: Answer, fault: str
) -> None:
    server.answers = [answer]
    with pytest.raises(AuthenticationError) as refused:
        ask(endpoint_of(server))
    assert fault in str(refused.value)
    assert CANARY not in str(refused.value)
    assert not refused.value.retriable
    assert len(server.requests) == 1


def test_an_answer_cut_short_may_heal(server: TokenServer) -> None:
    whole = token_answer().body
    server.answers = [Answer(whole[:20], headers={"Content-Length": str(len(whole))})]
    with pytest.raises(TokenUnavailableError, match="IncompleteRead"):
        ask(replace(endpoint_of(server), retry_backoff_max_ms=0, read_timeout_ms=60_000))


def test_nobody_there(server: TokenServer) -> None:
    clock = Clock()
    with refused_port() as port:
        endpoint = replace(endpoint_of(server), url=f"http://localhost:{port}/")
        with pytest.raises(TokenUnavailableError, match="Connection refused") as raised:
            ask(endpoint, clock)
    assert len(clock.pauses) == 6
    assert CANARY not in str(raised.value)


def serve_once(reply: bytes, *, again: bool = False) -> tuple[int, threading.Thread]:
    """Start a server that sends `reply`, once or until the client closes."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with listener:
            link, _ = listener.accept()
        with link:
            link.settimeout(60)
            try:
                link.recv(65536)
                link.sendall(reply)
                while again:
                    link.sendall(reply)
                link.recv(65536)
            except OSError:
                return

    thread = threading.Thread(target=serve)
    thread.start()
    return listener.getsockname()[1], thread


def test_an_endpoint_that_never_ends_is_left() -> None:
    port, thread = serve_once(b"HTTP/1.1 100 Continue\r\n\r\n", again=True)
    endpoint = TokenEndpoint(
        f"http://127.0.0.1:{port}/", "a", Secret("b"), read_timeout_ms=200, retry_backoff_ms=0
    )
    with pytest.raises(AuthenticationError, match=r"timed out|more than"):
        ask(endpoint)
    thread.join(60)
    assert not thread.is_alive()


def test_a_chunk_without_end_is_not_read_for_ever() -> None:
    """With a size of -1 Python's library reads until the end of the stream."""
    endless = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n" + bytes(1 << 20)
    port, thread = serve_once(endless, again=True)
    endpoint = TokenEndpoint(f"http://127.0.0.1:{port}/", "a", Secret("b"), retry_backoff_ms=0)
    with traced() as memory, pytest.raises(AuthenticationError, match="an answer of more than"):
        ask(endpoint)
    thread.join(60)
    assert not thread.is_alive()
    assert memory.peak_bytes < 16 * MAXIMUM_RESPONSE_BYTES


def test_tls_to_who_speaks_none() -> None:
    port, thread = serve_once(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    endpoint = TokenEndpoint(f"https://127.0.0.1:{port}/", "a", Secret(CANARY), retry_backoff_ms=0)
    with pytest.raises(AuthenticationError, match="does not speak TLS"):
        ask(endpoint)
    thread.join(60)
    assert not thread.is_alive()


def test_a_proxy_is_asked_for_an_endpoint_elsewhere_alone(
    server: TokenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where http is allowed, since nothing leaves this machine, nothing goes to a proxy."""
    port, thread = serve_once(b"HTTP/1.1 407 Log in\r\nContent-Length: 0\r\n\r\n")
    for name in ("HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, f"http://me:{CANARY}@127.0.0.1:{port}")
    assert ask(endpoint_of(server)).value == Secret("token")
    endpoint = replace(endpoint_of(server), url="https://login.example.invalid/")
    with pytest.raises(
        ConfigurationError, match=r"when asked for login\.example.invalid:443"
    ) as no:
        ask(endpoint)
    assert no.value.option == "HTTPS_PROXY"
    assert CANARY not in f"{no.value}{no.value!r}"
    thread.join(60)


@pytest.mark.parametrize("reply", [b"", b"\0" * 100, b"HTTP/9 x\r\n\r\n", b"A" * 100_000])
def test_what_is_no_http(reply: bytes) -> None:
    port, thread = serve_once(reply)
    endpoint = TokenEndpoint(
        f"http://127.0.0.1:{port}/", "a", Secret("b"), read_timeout_ms=500, retry_backoff_ms=0
    )
    with pytest.raises(TokenUnavailableError):
        ask(endpoint)
    thread.join(60)


@pytest.mark.parametrize(
    "url",
    [
        "https://login.example.com/oauth2/token",
        "https://10.0.0.1:8443/t?tenant=a",
        "http://localhost:8080/token",
        "http://127.0.0.2/token",
        "http://[::1]:8080/token",
    ],
)
def test_addresses_that_may_be_asked(url: str) -> None:
    assert token_endpoint_url(url) == url


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("http://login.example.com/" + CANARY, "not https"),
        ("http://localhost.example.com/", "not https"),
        ("http://10.0.0.1/", "not https"),
        ("file:///etc/passwd", "not a URL of a token endpoint"),
        ("ftp://localhost/x", "not https"),
        (f"https://me:{CANARY}@example.com/", "holds a user name"),
        ("https://example.com/a b", "not a URL of a token endpoint"),
        ("https://example.com/\r\nX: y", "not a URL of a token endpoint"),
        ("https://exämple.com/", "not a URL of a token endpoint"),
        ("https://example.com:99999/", "is not a URL"),
        ("https://[::1/", "is not a URL"),
        ("https:///token", "not a URL of a token endpoint"),
        (CANARY, "not a URL of a token endpoint"),
    ],
)
def test_addresses_that_may_not(url: str, fault: str) -> None:
    with pytest.raises(ConfigurationError, match=r"token\.endpoint\.url") as refused:
        token_endpoint_url(url)
    assert fault in str(refused.value)
    assert CANARY not in str(refused.value)


@given(st.text() | st.text().map(lambda rest: f"https://{rest}"))
def test_any_address_is_taken_or_refused(url: str) -> None:
    try:
        assert token_endpoint_url(url) == url
    except ConfigurationError as refused:
        assert refused.option.endswith("token.endpoint.url")
