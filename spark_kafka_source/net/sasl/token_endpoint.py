"""Tokens for client credentials, https://www.rfc-editor.org/rfc/rfc6749#section-4.4 (KIP-768)."""

import base64
import time
from collections.abc import Callable
from contextlib import closing
from http import HTTPStatus
from urllib.parse import quote_plus, urlencode, urlsplit

from spark_kafka_source.errors import ConfigurationError, KafkaError, ProtocolError
from spark_kafka_source.net.address import Address
from spark_kafka_source.net.deadline import Deadline
from spark_kafka_source.net.http_answer import json_object
from spark_kafka_source.net.http_connection import (
    HttpAnswer,
    HttpConnection,
    HttpRequest,
    is_loopback,
)
from spark_kafka_source.net.sasl.errors import AuthenticationError, TokenUnavailableError
from spark_kafka_source.net.sasl.logins import TokenEndpoint
from spark_kafka_source.net.sasl.tokens import MECHANISM, URL_OPTION, Token
from spark_kafka_source.net.security import TlsSettings
from spark_kafka_source.net.tls.failures import Peer, TlsError
from spark_kafka_source.secret import Secret

MAXIMUM_RESPONSE_BYTES = 256 * 1024
"""Limit for an answer's body. One with a token has a few kilobytes."""


_MAXIMUM_LIFETIME_SECONDS = 366 * 24 * 3600
_DEFAULT_PORTS = {"https": 443, "http": 80}
_MAY_HEAL = frozenset({408, 429, 500, 502, 503, 504})
# https://www.rfc-editor.org/rfc/rfc6749#section-5.2; errors show no other text of an answer.
_OAUTH_ERRORS = frozenset(
    {
        "invalid_request",
        "invalid_client",
        "invalid_grant",
        "unauthorized_client",
        "unsupported_grant_type",
        "invalid_scope",
    }
)
_LOOK_AT_CREDENTIALS = f"Check the client's id, secret and scope, and '{URL_OPTION}'"
_LOOK_AT_URL = f"Check '{URL_OPTION}', and that it can be reached from here"
_LOOK_AT_TLS = f"Check '{URL_OPTION}', or name its authority by SSL_CERT_FILE in the environment"
# `_LOOK_AT_TLS` takes the place of the advice for a registry or a broker.
_PEER = Peer("token endpoint", "", "")


def token_endpoint_url(url: str) -> str:
    """Return the URL if it may be asked for tokens: https, or http to this machine.

    Raises `ConfigurationError`, whose text does not show the URL.
    """
    try:
        parts = urlsplit(url)
        usable = bool(parts.hostname) and parts.port != 0 and url.isascii() and url.isprintable()
    except ValueError:
        raise _refused_url("is not a URL") from None
    if not usable or " " in url or parts.fragment:
        raise _refused_url("is not a URL of a token endpoint")
    if parts.username is not None or parts.password is not None:
        raise _refused_url("holds a user name or a password")
    if parts.scheme != "https" and not (
        parts.scheme == "http" and is_loopback(parts.hostname or "")
    ):
        raise _refused_url("is not https, so that the client's secret could be read on its way")
    return url


def request_token(
    endpoint: TokenEndpoint,
    *,
    clock: Callable[[], float] = time.time,
    pause: Callable[[float], None] = time.sleep,
) -> Token:
    """Ask for a token. Retry temporary faults for up to `retry_backoff_max_ms` in all.

    Raises `TokenUnavailableError` for the last temporary fault, and `AuthenticationError` for a
    refusal or an invalid answer. Their texts show nothing of the answer but its status and OAuth's
    error code.
    """
    started_at_seconds = clock()
    pause_seconds = endpoint.retry_backoff_ms / 1000
    while True:
        try:
            return _request_once(endpoint, clock)
        except TokenUnavailableError:
            left_seconds = started_at_seconds + endpoint.retry_backoff_max_ms / 1000 - clock()
            if left_seconds <= pause_seconds or not pause_seconds:
                raise
        pause(pause_seconds)
        pause_seconds *= 2


def _request_once(endpoint: TokenEndpoint, clock: Callable[[], float]) -> Token:
    try:
        answer = _answer(endpoint)
    except TlsError as error:
        raise AuthenticationError(MECHANISM, error.found, _LOOK_AT_TLS) from None
    except ProtocolError:
        raise _no_token(f"an answer of more than {MAXIMUM_RESPONSE_BYTES} bytes") from None
    except KafkaError as error:
        if not error.has_remedy:
            raise
        text = f"the token endpoint did not answer: {error}"
        raise TokenUnavailableError(MECHANISM, text, _LOOK_AT_URL) from None
    return _token(answer, clock())


def _answer(endpoint: TokenEndpoint) -> HttpAnswer:
    parts = urlsplit(endpoint.url)
    address = Address(parts.hostname or "", parts.port or _DEFAULT_PORTS[parts.scheme])
    tls = TlsSettings() if parts.scheme == "https" else None
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    request = HttpRequest("POST", target, _headers(endpoint), _form(endpoint))
    connection = HttpConnection(address, tls, _PEER, most_bytes=MAXIMUM_RESPONSE_BYTES)
    with closing(connection):
        connection.connect(Deadline.after_ms(endpoint.connect_timeout_ms))
        return connection.ask(request, Deadline.after_ms(endpoint.read_timeout_ms))


def _form(endpoint: TokenEndpoint) -> bytes:
    fields = {"grant_type": "client_credentials"}
    if endpoint.scope:
        fields["scope"] = endpoint.scope
    return urlencode(fields).encode()


def _headers(endpoint: TokenEndpoint) -> dict[str, str]:
    known = [endpoint.client_id, endpoint.client_secret.reveal()]
    if endpoint.urlencode_header:
        known = [quote_plus(text) for text in known]
    return {
        "Authorization": "Basic " + base64.b64encode(":".join(known).encode()).decode(),
        "Content-Type": "application/x-www-form-urlencoded",
        "Accept": "application/json",
    }


def _token(answered: HttpAnswer, now_seconds: float) -> Token:
    status, answer = answered.status, json_object(answered.body)
    if status in _MAY_HEAL:
        raise TokenUnavailableError(
            MECHANISM, f"the token endpoint answered with status {status}", _LOOK_AT_URL
        )
    if status != HTTPStatus.OK:
        error = answer.get("error")
        named = f" and {error}" if isinstance(error, str) and error in _OAUTH_ERRORS else ""
        raise AuthenticationError(
            MECHANISM, f"the token endpoint answered with status {status}{named}", _advice(status)
        )
    value = answer.get("access_token")
    if not isinstance(value, str) or not value:
        raise _no_token("no JSON with an 'access_token'")
    return Token(Secret(value), _expires_at_seconds(answer, value, now_seconds))


def _advice(status: int) -> str:
    if 300 <= status < 400:
        return f"Redirections are not followed: give the final address in '{URL_OPTION}'"
    return _LOOK_AT_CREDENTIALS


def _expires_at_seconds(answer: dict[str, object], token: str, now_seconds: float) -> float:
    """Return the expiry, from the lifetime in the answer or else the claim in the token.

    The lifetime needs no common clock.
    """
    lifetime_seconds = _number(answer.get("expires_in"))
    if lifetime_seconds is None:
        expiry_seconds = _number(_claims(token).get("exp"))
        if expiry_seconds is None:
            raise _no_token("neither 'expires_in' nor a token that says when it expires ('exp')")
        lifetime_seconds = expiry_seconds - now_seconds
    return now_seconds + min(lifetime_seconds, _MAXIMUM_LIFETIME_SECONDS)


def _number(value: object) -> float | None:
    """Return a JSON number that can be a time. Some servers write it as text."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1e15 else None


def _claims(token: str) -> dict[str, object]:
    """Return the claims of a JSON web token, https://www.rfc-editor.org/rfc/rfc7519.

    The broker checks the signature.
    """
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        return json_object(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return {}


def _no_token(found: str) -> AuthenticationError:
    return AuthenticationError(MECHANISM, f"the token endpoint gave {found}", _LOOK_AT_URL)


def _refused_url(found: str) -> ConfigurationError:
    expected = "Give the 'https://' address of the token endpoint (http only for localhost)"
    return ConfigurationError(URL_OPTION, found, expected)
