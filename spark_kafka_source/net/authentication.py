"""SASL with a broker: SaslHandshake chooses the mechanism, SaslAuthenticate carries its messages.

https://kafka.apache.org/protocol#sasl_handshake; KIP-152, and KIP-368 for the session's lifetime.
"""

import time
from typing import Protocol, TypeVar

from spark_kafka_source.denials import refusal
from spark_kafka_source.errors import ErrorCode, error_code, error_named
from spark_kafka_source.net.sasl import AuthenticationError
from spark_kafka_source.net.sasl.mechanism import Mechanism
from spark_kafka_source.net.security import PROTOCOL_OPTION
from spark_kafka_source.net.session import Session
from spark_kafka_source.protocol import Request, Response
from spark_kafka_source.protocol.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

R = TypeVar("R", bound=Response)

# No mechanism needs more, but a broker could go on for ever.
_MOST_MESSAGES = 20
_MOST_SHOWN = 300

_UNSUPPORTED_MECHANISM = error_named("UNSUPPORTED_SASL_MECHANISM")
_ILLEGAL_STATE = error_named("ILLEGAL_SASL_STATE")
_REFUSED = error_named("SASL_AUTHENTICATION_FAILED")
_LOOK_AT = {
    "OAUTHBEARER": "Check that the token has not expired, that the broker trusts its issuer "
    "('kafka.sasl.oauthbearer.token.endpoint.url', or your provider), and its audience and scope",
    "GSSAPI": "Check the ticket ('klist'), the principal, and 'kafka.sasl.kerberos.service.name'",
}


_LOOK_AT_LOGIN = (
    "Check 'kafka.sasl.username' and 'kafka.sasl.password', or both in 'kafka.sasl.jaas.config'"
)


class Ask(Protocol):
    """A function that sends one request to the broker and returns its answer."""

    def __call__(self, request: Request[R]) -> R:
        """Send the request. Raises the errors of a connection."""
        ...


def authenticate(ask: Ask, mechanism: Mechanism) -> Session:
    """Authenticate, and return the session.

    Raises `AuthenticationError` if either side refuses the other, `BrokerError` for an error of the
    broker that does not concern the credentials, and the errors of `ask`.
    """
    since_seconds = time.monotonic()
    _choose(ask, mechanism.name)
    message = mechanism.first()
    for _ in range(_MOST_MESSAGES):
        response = ask(SaslAuthenticateRequest(message))
        if response.error_code:
            error = error_code(response.error_code)
            raise _refused(mechanism.name, error, response.error_message)
        answer = mechanism.next(response.auth_bytes)
        if answer is None:
            return Session.lasting_ms(response.session_lifetime_ms, since_seconds)
        message = answer
    raise AuthenticationError(mechanism.name, f"not complete after {_MOST_MESSAGES} messages")


def _choose(ask: Ask, mechanism: str) -> None:
    response = ask(SaslHandshakeRequest(mechanism))
    error = error_code(response.error_code)
    if error == _UNSUPPORTED_MECHANISM:
        enabled = ", ".join(response.mechanisms)[:_MOST_SHOWN] or "none"
        raise AuthenticationError(
            mechanism,
            f"the broker's listener does not have this mechanism, but {enabled}",
            "Give one of them in 'kafka.sasl.mechanism', or the address of another listener",
        )
    if error == _ILLEGAL_STATE:
        raise AuthenticationError(
            mechanism,
            "the broker's listener does not use SASL",
            f"Set '{PROTOCOL_OPTION}' to PLAINTEXT or SSL, or give the address of another listener",
        )
    if error.code:
        raise refusal(error, f"SaslHandshake for {mechanism}")


def _refused(mechanism: str, error: ErrorCode, detail: str | None) -> Exception:
    detail = (detail or "without a reason")[:_MOST_SHOWN]
    if error != _REFUSED:
        return refusal(error, f"SaslAuthenticate for {mechanism}", detail)
    return AuthenticationError(
        mechanism,
        f"the broker refuses the credentials: {detail}",
        _LOOK_AT.get(mechanism, _LOOK_AT_LOGIN),
    )
