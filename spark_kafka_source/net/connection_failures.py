"""The errors of connections to brokers, with the option that may be wrong."""

import ssl
from collections.abc import Sequence
from enum import IntEnum

from spark_kafka_source.errors import (
    ConnectionFailedError,
    KafkaError,
    KafkaTimeoutError,
    Remedy,
)
from spark_kafka_source.net.address import Address
from spark_kafka_source.net.sasl import AuthenticationError
from spark_kafka_source.net.security import PROTOCOL_OPTION, SecurityProtocol, TlsSettings
from spark_kafka_source.net.tls.failures import tls_failure

_MOST_SHOWN = 300


class RequestTimeoutError(KafkaTimeoutError):
    """A broker did not answer in time. It may be gone, so the client looks up the leader again."""

    remedy = Remedy.REFRESH_METADATA


class Stage(IntEnum):
    """The progress of a connection."""

    SILENT = 0
    """The broker has not answered yet."""
    HEARD = 1
    """The broker has answered, and the set-up is under way."""
    SET_UP = 2
    """The broker told its versions, as any listener does. It may still expect SASL."""
    PROVEN = 3
    """The broker has authenticated the client, or answered a request without SASL."""


def connection_failure(
    error: OSError, doing: str, address: Address, stage: Stage, tls: TlsSettings | None
) -> KafkaError:
    """Return the error for a failed socket. `doing` says what the connection was doing."""
    if isinstance(error, TimeoutError):
        return RequestTimeoutError(f"{address}: timed out {doing}{_silence(stage)}")
    if tls is not None and isinstance(error, ssl.SSLError):
        failure = tls_failure(error, address, tls)
        if failure is not None:
            return failure
    suspicion = _suspicion(tls) if stage is Stage.SILENT and was_hung_up(error) else ""
    return ConnectionFailedError(f"{address}: {error.strerror or error} while {doing}{suspicion}")


def was_hung_up(error: OSError) -> bool:
    """Return whether the error means that the other side ended the connection."""
    return isinstance(error, ssl.SSLEOFError | ConnectionResetError)


def expects_sasl(address: Address, mechanisms: Sequence[str], *, tls: bool) -> AuthenticationError:
    """Return the error for a listener that answers only clients that authenticate."""
    protocol = SecurityProtocol.SASL_SSL if tls else SecurityProtocol.SASL_PLAINTEXT
    return AuthenticationError(
        "SASL",
        f"{address}: the broker's listener expects it, with {', '.join(mechanisms)[:_MOST_SHOWN]}",
        f"Set '{PROTOCOL_OPTION}' to {protocol.name}, and one of them in 'kafka.sasl.mechanism'",
    )


def _silence(stage: Stage) -> str:
    """Return a hint for a port that accepted the connection and then stayed silent."""
    if stage > Stage.SILENT:
        return ""
    return (
        " (it took the connection and said nothing: is it a broker's listener, and one for "
        f"this '{PROTOCOL_OPTION}'?)"
    )


def _suspicion(tls: TlsSettings | None) -> str:
    """Return what a listener may expect that closes the connection before it answers."""
    if tls is None:
        expected = f"TLS ('{PROTOCOL_OPTION}' SSL or SASL_SSL)"
    elif not tls.has_key:
        expected = "a client certificate ('kafka.ssl.keystore.location')"
    else:
        return ""
    return f" (does this listener expect {expected}?)"
