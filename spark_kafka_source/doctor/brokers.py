"""Checks of one broker: name and port, TLS, login, versions, the time of a round trip."""

from dataclasses import replace
from typing import Any

from spark_kafka_source.client import ClientConfig
from spark_kafka_source.doctor.finding import Finding, failed, ok, timed, unknown, wrong
from spark_kafka_source.errors import KafkaError, UnsupportedVersionError
from spark_kafka_source.net import (
    Address,
    AuthenticationError,
    BrokerHistory,
    Connection,
    ConnectionSettings,
    Deadline,
    TlsError,
)
from spark_kafka_source.net.tls.certificates import (
    check_opens,
    client_certificate,
    days_until,
    server_certificate,
)
from spark_kafka_source.protocol import Request
from spark_kafka_source.protocol.messages.fetch import FetchRequest
from spark_kafka_source.protocol.messages.list_offsets import ListOffsetsRequest
from spark_kafka_source.protocol.messages.membership import ConsumerGroupHeartbeatRequest
from spark_kafka_source.protocol.messages.metadata import MetadataRequest

SOON_DAYS = 14
"""A certificate that expires in fewer days is wrong: somebody must renew it now."""

_SERVERS = "kafka.bootstrap.servers"
_TRUSTSTORE = "kafka.ssl.truststore.location"
_KEYSTORE = "kafka.ssl.keystore.location"
_RENEW = "Renew the broker's certificate; if its authority changes, trust the new one"
# Such certificates are valid for days. Nobody renews them.
_FOR_TESTS = "for tests only: a LocalKafka's authority has signed it"
_OLD = "Use brokers of Kafka 2.1 or newer, and this package's newest version"
# The other requests are as old.
_NEEDED: tuple[type[Request[Any]], ...] = (MetadataRequest, ListOffsetsRequest, FetchRequest)
_AFTER_CONNECT = ("tls", "login", "versions", "round trip")


def check_broker(
    address: Address, settings: ConnectionSettings, deadline: Deadline, history: BrokerHistory
) -> list[Finding]:
    """Return the findings for the broker at this address.

    With the same `history` for all brokers only one of them gets a wrong password.
    """
    subject = str(address)
    connected = timed(lambda: _connects(address, deadline))
    if connected.remedy:
        return [connected, *_not_checked(_AFTER_CONNECT, subject, "connect")]
    if settings.security.tls is None:
        encrypted = [ok("tls", subject, "off: 'security.protocol' has no TLS")]
    else:
        encrypted = [timed(lambda: _tls(address, settings, deadline))]
        if encrypted[0].remedy not in ("", _RENEW):
            return [connected, *encrypted, *_not_checked(_AFTER_CONNECT[1:], subject, "tls")]
    return [connected, *encrypted, *_speaks(address, settings, deadline, history)]


def check_client_certificate(config: ClientConfig) -> list[Finding]:
    """Return the finding for the client's own certificate. None without a certificate."""
    tls = config.connection.security.tls
    if tls is None or not tls.has_key:
        return []
    check, subject = "client certificate", "this client"
    certificate = client_certificate(tls)
    if certificate.expires_at_seconds is None:
        return [unknown(check, subject, "its expiry cannot be read")]
    days = days_until(certificate.expires_at_seconds)
    if days >= SOON_DAYS:
        return [ok(check, subject, f"it expires in {days} days")]
    if days >= 0 and certificate.is_for_tests:
        return [ok(check, subject, f"it expires in {days} days; {_FOR_TESTS}")]
    found = f"it expires in {days} days" if days >= 0 else f"it expired {-days - 1} days ago"
    return [wrong(check, subject, found, "Renew it, and give the new one", _KEYSTORE)]


def _not_checked(checks: tuple[str, ...], subject: str, failed_check: str) -> list[Finding]:
    return [unknown(check, subject, f"not checked: '{failed_check}' failed") for check in checks]


def _connects(address: Address, deadline: Deadline) -> Finding:
    try:
        check_opens(address, deadline)
    except KafkaError as error:
        remedy = (
            "Check the name, the port and the firewall, and the brokers' 'advertised.listeners'"
        )
        return failed("connect", str(address), error, _SERVERS, remedy)
    return ok("connect", str(address), "the name resolves, the port is open")


def _tls(address: Address, settings: ConnectionSettings, deadline: Deadline) -> Finding:
    subject = str(address)
    try:
        certificate = server_certificate(address, settings, deadline)
    except KafkaError as error:
        remedy = "Use a port of a TLS listener, or another security protocol"
        cause = error if isinstance(error, TlsError) else _cause(address, settings, deadline, error)
        return failed("tls", subject, cause, _TRUSTSTORE, remedy)
    if certificate is None or not certificate.expires_at_seconds:
        return unknown("tls", subject, "the server shows no certificate")
    text = (
        f"{certificate.tls_version}, {certificate.subject!r} by {certificate.issuer!r}, "
        f"expires in {certificate.days_left} days"
    )
    if certificate.is_for_tests:
        return ok("tls", subject, f"{text}; {_FOR_TESTS}")
    if certificate.days_left < SOON_DAYS:
        return wrong("tls", subject, text, _RENEW, _TRUSTSTORE)
    return ok("tls", subject, text)


def _cause(
    address: Address, settings: ConnectionSettings, deadline: Deadline, error: KafkaError
) -> KafkaError:
    """Return the error of a whole connection, which tells a port without TLS from a lost one."""
    without_login = replace(settings, security=replace(settings.security, sasl=None))
    try:
        Connection.connect(address, without_login, deadline).close()
    except KafkaError as cause:
        return cause
    return error


def _speaks(
    address: Address, settings: ConnectionSettings, deadline: Deadline, history: BrokerHistory
) -> list[Finding]:
    subject = str(address)
    made: list[Connection] = []
    login = timed(lambda: _logs_in(address, settings, deadline, history, made))
    if not made:
        rest = [check for check in _AFTER_CONNECT[1:] if check != login.check]
        return [login, *_not_checked(tuple(rest), subject, login.check)]
    try:
        spoken = _versions(subject, made[0])
        if spoken.remedy:
            return [login, spoken, *_not_checked(("round trip",), subject, "versions")]
        return [login, spoken, timed(lambda: _trip(made[0], deadline))]
    finally:
        made[0].close()


def _logs_in(
    address: Address,
    settings: ConnectionSettings,
    deadline: Deadline,
    history: BrokerHistory,
    made: list[Connection],
) -> Finding:
    subject, security = str(address), settings.security
    try:
        made.append(Connection.connect(address, settings, deadline, history=history))
    except AuthenticationError as error:
        return _refused(subject, error)
    except TlsError as error:
        return failed("tls", subject, error, "kafka.security.protocol")
    except UnsupportedVersionError as error:
        return failed("versions", subject, error, _SERVERS, _OLD)
    except KafkaError as error:
        remedy = "Check that a Kafka broker listens there, and with this security protocol"
        return failed("login", subject, error, "kafka.security.protocol", remedy)
    if security.sasl is None:
        return ok("login", subject, f"{security.protocol}: nobody logs in by SASL")
    return ok("login", subject, f"{security.protocol}, {security.sasl.mechanism}")


def _refused(subject: str, error: AuthenticationError) -> Finding:
    if not error.found.startswith(f"{subject}:"):  # Another broker has refused the same login.
        return unknown("login", subject, f"not checked: {error.found}")
    return failed("login", subject, error, "kafka.sasl.mechanism", "Check user and password")


def _versions(subject: str, connection: Connection) -> Finding:
    try:
        for request_type in _NEEDED:
            connection.version(request_type)
    except UnsupportedVersionError as error:
        return failed("versions", subject, error, _SERVERS, _OLD)
    newer = connection.supports(ConsumerGroupHeartbeatRequest, 0)
    groups = "classic and KIP-848" if newer else "classic"
    return ok("versions", subject, f"both sides share versions; groups: {groups}")


def _trip(connection: Connection, deadline: Deadline) -> Finding:
    subject = str(connection.address)
    try:
        connection.request(MetadataRequest(topics=[], allow_auto_topic_creation=False), deadline)
    except KafkaError as error:
        remedy = "Check that this listener takes clients with this security protocol"
        return failed("round trip", subject, error, "kafka.security.protocol", remedy)
    return ok("round trip", subject, "the broker answers")
