"""Messages of brokers and token endpoints during a login, and the text of JAAS."""

import socket
from collections.abc import Callable

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.net.http_connection import HttpConnection
from spark_kafka_source.net.sasl import AuthenticationError, Token, token_endpoint
from spark_kafka_source.net.sasl import scram as rfc5802
from spark_kafka_source.net.sasl.jaas import parse_jaas
from spark_kafka_source.net.sasl.logins import PasswordLogin, TokenEndpoint
from spark_kafka_source.net.sasl.mechanism import Mechanism
from spark_kafka_source.net.sasl.oauthbearer import OAuthBearer
from spark_kafka_source.net.sasl.scram import Scram
from spark_kafka_source.net.sasl.tokens import RefreshSettings, TokenCache
from spark_kafka_source.secret import Secret
from tools.fuzz.judge import replaced

SEPARATOR = b"\0"
"""Separator of the messages in an input. No message of SCRAM or of a token endpoint has it."""

NONCE = "ours"
_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_ENDPOINT = TokenEndpoint(
    "http://localhost:1/token", "client", Secret("canary-secret"), retry_backoff_ms=0
)
_MOST_BYTES = 64 * 1024


class _Tokens:
    def token(self) -> Token:
        return Token(Secret("canary-token"), 1e12)


def scram(data: bytes) -> None:
    """A byte selects the hash. The server's messages follow."""
    name = [*_HASHES][data[0] % 2] if data else "SCRAM-SHA-256"
    login = PasswordLogin("user", Secret("canary-password"))
    # A million rounds are allowed, but they only cost time.
    with replaced(rfc5802, "MAXIMUM_ITERATIONS", rfc5802.MINIMUM_ITERATIONS):
        _hear(Scram(name, _HASHES[name], login, nonce=NONCE), data[1:])


def oauthbearer(data: bytes) -> None:
    """The broker's messages."""
    _hear(OAuthBearer(TokenCache(_Tokens(), RefreshSettings())), data)


def _hear(mechanism: Mechanism, data: bytes) -> None:
    def converse() -> None:
        mechanism.first()
        for message in data.split(SEPARATOR):
            mechanism.next(message)

    _refusing(converse)


def token_answers(data: bytes) -> None:
    """A token endpoint's answers by HTTP."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(data[:_MOST_BYTES])
        theirs.shutdown(socket.SHUT_WR)
        with replaced(HttpConnection, "connect", lambda *_: ours):
            _refusing(lambda: token_endpoint.request_token(_ENDPOINT))


def jaas(data: bytes) -> None:
    """The text of `kafka.sasl.jaas.config`."""
    try:
        parse_jaas(Secret(data.decode(errors="replace")))
    except ConfigurationError as error:
        assert error.option == "kafka.sasl.jaas.config"


def _refusing(attempt: Callable[[], object]) -> None:
    try:
        attempt()
    except AuthenticationError as error:
        assert error.mechanism
        assert "canary" not in str(error)
