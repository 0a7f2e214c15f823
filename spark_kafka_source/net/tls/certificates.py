"""Certificates as a user looks at them: subject, issuer, and the day of expiry."""

import contextlib
import ssl
import time
from dataclasses import dataclass

from spark_kafka_source.errors import KafkaError
from spark_kafka_source.net.address import Address
from spark_kafka_source.net.broker_history import BrokerHistory
from spark_kafka_source.net.connect_attempts import ConnectAttempts
from spark_kafka_source.net.connection_failures import Stage, connection_failure
from spark_kafka_source.net.connection_settings import ConnectionSettings
from spark_kafka_source.net.deadline import Deadline
from spark_kafka_source.net.http_answer import set_timeout
from spark_kafka_source.net.security import TlsSettings
from spark_kafka_source.net.tls.context import start_tls
from spark_kafka_source.net.tls.pem import pem_blocks
from spark_kafka_source.net.tls.stores import client_key

TEST_AUTHORITY = "LocalKafka test authority"
"""The beginning of the common name of the authorities of `spark_kafka_source.testing`.

Their certificates are valid for some days, and last no longer than their brokers.
"""

_DAY_SECONDS = 86_400
_SEQUENCE = 0x30
_VERSION = 0xA0
_UTC_TIME = 0x17
_LONG_FORM = 0x80
_MOST_LENGTH_BYTES = 4


@dataclass(frozen=True, slots=True)
class ServerCertificate:
    """A server's certificate, which TLS has verified."""

    subject: str
    issuer: str
    expires_at_seconds: float
    tls_version: str

    @property
    def days_left(self) -> int:
        """Whole days until it expires. A negative number means that it has expired."""
        return days_until(self.expires_at_seconds)

    @property
    def is_for_tests(self) -> bool:
        """Whether a LocalKafka's authority has signed it."""
        return self.issuer.startswith(TEST_AUTHORITY)


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """The facts of the client's own certificate. None is a time that cannot be read."""

    expires_at_seconds: float | None
    is_for_tests: bool = False
    """Whether a LocalKafka's authority has signed it."""


def days_until(seconds: float) -> int:
    """Return the whole days from now to a time in seconds since 1970."""
    return int((seconds - time.time()) // _DAY_SECONDS)


def check_opens(address: Address, deadline: Deadline) -> None:
    """Resolve the name and open a TCP connection. Raises `ConnectionFailedError`."""
    with contextlib.closing(ConnectAttempts(address, {}, BrokerHistory(), deadline)) as attempts:
        attempts.next()[0].close()


def server_certificate(
    address: Address, settings: ConnectionSettings, deadline: Deadline
) -> ServerCertificate | None:
    """Return the certificate of the server at this address. None without TLS.

    Raises `TlsError` with the option that matters, and the errors of a lost connection.
    """
    tls = settings.security.tls
    if tls is None:
        return None
    with contextlib.closing(ConnectAttempts(address, {}, BrokerHistory(), deadline)) as attempts:
        connected = attempts.next()[0]
    try:
        connected = secured = start_tls(connected, tls, address.host)
        set_timeout(secured, deadline)
        secured.do_handshake()
        return _described(secured)
    except OSError as error:
        raise _failure(error, address, tls) from error
    finally:
        connected.close()


def client_certificate(settings: TlsSettings) -> ClientCertificate:
    """Return the facts of the client's own certificate."""
    key = client_key(settings)
    blocks = pem_blocks(key.certificates) if key is not None else []
    pem = next((block.text for block in blocks if block.label == "CERTIFICATE"), None)
    try:
        if pem is not None:
            return _parsed(ssl.PEM_cert_to_DER_cert(pem))
    except (ValueError, IndexError):
        pass
    return ClientCertificate(None)


def _failure(error: OSError, address: Address, tls: TlsSettings) -> KafkaError:
    return connection_failure(error, "starting TLS", address, Stage.SILENT, tls)


def _described(secured: ssl.SSLSocket) -> ServerCertificate:
    fields = secured.getpeercert() or {}
    return ServerCertificate(
        _name(fields.get("subject")),
        _name(fields.get("issuer")),
        ssl.cert_time_to_seconds(str(fields["notAfter"])),
        secured.version() or "",
    )


def _name(parts: object) -> str:
    pairs = [pair for part in parts for pair in part] if isinstance(parts, tuple) else []
    names = {str(key): str(value) for key, value in pairs}
    return names.get("commonName") or ", ".join(names.values())


def _parsed(der: bytes) -> ClientCertificate:
    """Return `notAfter` and the issuer of a certificate in DER (RFC 5280, 4.1).

    Raises `ValueError`.
    """
    _, certificate, _ = _element(der)
    _, fields, _ = _element(certificate)
    tag, _, rest = _element(fields)
    if tag == _VERSION:
        _, _, rest = _element(rest)
    _, _, rest = _element(rest)  # The algorithm of the signature.
    _, issuer, rest = _element(rest)
    tag, validity, _ = _element(rest)
    if tag != _SEQUENCE:
        raise ValueError("no validity")
    _, _, rest = _element(validity)
    tag, text, _ = _element(rest)
    form = "%y%m%d%H%M%SZ" if tag == _UTC_TIME else "%Y%m%d%H%M%SZ"
    parsed = time.strptime(text.decode("ascii"), form)
    expires_at_seconds = ssl.cert_time_to_seconds(time.strftime("%b %d %H:%M:%S %Y GMT", parsed))
    return ClientCertificate(expires_at_seconds, TEST_AUTHORITY.encode() in issuer)


def _element(data: bytes) -> tuple[int, bytes, bytes]:
    """Return the tag and content of the first element, and the bytes after it."""
    tag, length, start = data[0], data[1], 2
    if length >= _LONG_FORM:
        count = length - _LONG_FORM
        if not 0 < count <= _MOST_LENGTH_BYTES:
            raise ValueError("no length")
        length, start = int.from_bytes(data[2 : 2 + count]), 2 + count
    if start + length > len(data):
        raise ValueError("cut short")
    return tag, data[start : start + length], data[start + length :]
