"""The token server gives tokens to clients with the secret. Its signatures can be verified."""

import base64
import json
import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from spark_kafka_source.testing.token_server import TokenServer

TIMEOUT_SECONDS = 30
SECRET = "p%41s: w+ö"
GRANT = {"grant_type": "client_credentials"}


@pytest.fixture(scope="module")
def server() -> Iterator[TokenServer]:
    with TokenServer({"alice": SECRET}, lifetime_seconds=77) as server:
        yield server


def ask(url: str, form: dict[str, str] | None = None, authorization: str = "") -> dict[str, Any]:
    data = urlencode(form).encode() if form is not None else None
    request = Request(url, data, {"Authorization": authorization} if authorization else {})
    with urlopen(request, timeout=TIMEOUT_SECONDS) as response:
        found: dict[str, Any] = json.load(response)
    return found


def status(url: str, form: dict[str, str] | None = None, authorization: str = "") -> int:
    with pytest.raises(HTTPError) as failure:
        ask(url, form, authorization)
    failure.value.close()
    return failure.value.code


def basic(credentials: str) -> str:
    return f"Basic {base64.b64encode(credentials.encode()).decode()}"


def decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def claims(server: TokenServer, token: str) -> dict[str, Any]:
    """Return a token's claims, after a check of its signature by the server's public key."""
    (key,) = ask(server.keys_url)["keys"]
    n, e = (int.from_bytes(decoded(key[name]), "big") for name in "ne")
    header, payload, signature = token.split(".")
    assert json.loads(decoded(header)) == {"alg": "RS256", "typ": "JWT", "kid": key["kid"]}
    public_key = rsa.RSAPublicNumbers(e, n).public_key()
    signed = f"{header}.{payload}".encode()
    public_key.verify(decoded(signature), signed, padding.PKCS1v15(), hashes.SHA256())
    found: dict[str, Any] = json.loads(decoded(payload))
    return found


@pytest.mark.parametrize(
    ("form", "authorization"),
    [
        ({"client_id": "alice", "client_secret": SECRET}, ""),
        ({}, basic(f"alice:{SECRET}")),
        ({}, basic("alice:p%2541s%3A+w%2B%C3%B6")),
    ],
    ids=["form", "header", "header as RFC 6749 has it"],
)
def test_who_knows_the_secret_gets_a_token(
    server: TokenServer, form: dict[str, str], authorization: str
) -> None:
    issued = server.issued
    answer = ask(server.token_url, {**GRANT, "scope": "read", **form}, authorization)
    assert (answer["token_type"], answer["expires_in"]) == ("Bearer", 77)
    found = claims(server, answer["access_token"])
    assert (found["sub"], found["scope"], found["iss"]) == ("alice", "read", server.issuer)
    assert found["exp"] - found["iat"] == 77
    assert server.issued == issued + 1


@pytest.mark.parametrize(
    ("form", "authorization", "expected"),
    [
        ({**GRANT, "client_id": "alice", "client_secret": "wrong"}, "", 401),
        ({**GRANT, "client_id": "nobody"}, "", 401),
        (GRANT, "", 401),
        (GRANT, "Basic !", 401),
        (GRANT, "Basic /w==", 401),
        (GRANT, basic("alice"), 401),
        ({"client_id": "alice", "client_secret": SECRET}, "", 400),
    ],
)
def test_who_does_not_gets_none(
    server: TokenServer, form: dict[str, str], authorization: str, expected: int
) -> None:
    issued = server.issued
    assert status(server.token_url, form, authorization) == expected
    assert server.issued == issued


def test_there_is_nothing_else(server: TokenServer) -> None:
    assert status(server.issuer) == 404
    assert status(server.keys_url, GRANT) == 404
    assert status(server.token_url, {"x": "x" * (1 << 17)}) == 404


def test_a_token_may_be_expired_and_may_say_what_it_likes(server: TokenServer) -> None:
    token = server.token("bob", lifetime_seconds=-60, aud="elsewhere", iss="another")
    found = claims(server, token.reveal())
    assert found["iat"] <= found["exp"] < time.time()
    assert (found["aud"], found["iss"]) == ("elsewhere", "another")
    assert token.reveal() not in repr(token)


def test_another_servers_key_does_not_check(server: TokenServer) -> None:
    other = TokenServer({})
    with other:
        header, payload, _ = server.token("alice").reveal().split(".")
        forged = f"{header}.{payload}.{other.token('alice').reveal().split('.')[2]}"
    with pytest.raises(InvalidSignature):
        claims(server, forged)


def test_nothing_of_it_outlives_its_context() -> None:
    before = set(threading.enumerate())
    with TokenServer({}) as server:
        url = server.keys_url
        ask(url)
    # Not all: Spark's threads come and go in the same process.
    for thread in set(threading.enumerate()) - before:
        if any(each in thread.name for each in ("serve_forever", "process_request")):
            thread.join(TIMEOUT_SECONDS)  # One that has answered ends a moment later.
            assert not thread.is_alive()
    with pytest.raises(OSError, match="refused"):
        ask(url)
    # A server that was never entered also frees its port.
    TokenServer({}).__exit__()
