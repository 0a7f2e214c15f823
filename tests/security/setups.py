"""Set-ups that cannot work, the expected error of each, and the number of its connections."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from spark_kafka_source.errors import BootstrapError, BrokerError, ConfigurationError
from spark_kafka_source.net import AuthenticationError, TlsError
from spark_kafka_source.producer import TransactionAbortableError
from spark_kafka_source.protocol import OtherServerError
from spark_kafka_source.testing import LocalKafka
from spark_kafka_source.testing.certificates import CertificateAuthority
from spark_kafka_source.testing.ports import free_ports
from spark_kafka_source.testing.properties import LOOPBACK
from spark_kafka_source.testing.token_server import TokenServer
from tests.security.options import (
    Options,
    certificate_options,
    options_of,
    token_options,
    trust_options,
)
from tests.security.servers import Serve, keeps_silent, old_tls, says

HIDDEN, SEALED, GROUP, HIDDEN_GROUP = "hidden", "sealed", "sealed-group", "hidden-group"
"""Resources that bob may not describe or read (topics), or commit to or describe (groups)."""
SEALED_ID = "sealed-id"
"""A transactional id that bob may only describe."""

PASSWORD = "wrong-canary"
SERVERS_KEY = "kafka.bootstrap.servers"


@dataclass(frozen=True)
class Bench:
    """The parts of set-ups."""

    kafka: LocalKafka
    stranger: CertificateAuthority
    """An authority that the broker does not trust."""
    directory: Path

    def at(self, listener: str) -> Options:
        return {SERVERS_KEY: self.kafka.bootstrap_servers_of(listener)}

    def trusting(self, listener: str, protocol: str = "SSL") -> Options:
        trust = trust_options(self.kafka.authority, "PEM")
        return self.at(listener) | {"kafka.security.protocol": protocol} | trust

    def file(self, name: str, text: str) -> str:
        path = self.directory / name
        path.write_text(text)
        return str(path)


@dataclass(frozen=True)
class Setup:
    """A set-up: name, a query's options, the error, and parts of the error's text.

    `connections` is the number of connections to the two bootstrap servers, from the driver, a
    task and a commit together. It is None if the client tries again until the timeout, or if the
    chosen server varies, as for the commit. `server` replaces the broker. `token` comes from the
    user's token provider.
    """

    name: str
    options: Callable[[Bench], Options]
    error: type[Exception]
    says: tuple[str, ...]
    connections: int | None
    server: Callable[[Bench], Serve] | None = None
    token: Callable[[Bench], str] | None = None
    more: Options = field(default_factory=dict)


def _sasl(
    mechanism: str, user: str = "alice", password: str | None = PASSWORD
) -> Callable[[Bench], Options]:
    return lambda bench: options_of(
        bench.kafka, "SASL_SSL", mechanism, user=user, password=password
    )


def _as_bob(**more: str) -> Callable[[Bench], Options]:
    return lambda bench: options_of(bench.kafka, "SASL_SSL", "PLAIN", user="bob") | more


def _certificate_of_stranger(bench: Bench) -> Options:
    return bench.trusting("MTLS") | certificate_options(bench.stranger.issue("alice"), "PEM")


def _expired_certificate(bench: Bench) -> Options:
    expired = bench.kafka.authority.issue("alice", expired=True)
    return bench.trusting("MTLS") | certificate_options(expired, "PEM")


def _keystore(certificate: str, key: str, **more: str) -> Options:
    given = {"type": "PEM", "certificate.chain": certificate, "key": key}
    named = {f"kafka.ssl.keystore.{name}": value for name, value in given.items()}
    return named | {f"kafka.ssl.{name}": value for name, value in more.items()}


def _key_of_another(bench: Bench) -> Options:
    ours, other = (bench.kafka.authority.issue("alice") for _ in range(2))
    return bench.trusting("MTLS") | _keystore(ours.chain.read_text(), other.key.read_text())


def _key_password(bench: Bench) -> Options:
    certificate = bench.kafka.authority.issue("alice")
    key = _keystore(certificate.chain.read_text(), certificate.encrypted_key.read_text())
    return bench.trusting("MTLS") | key | {"kafka.ssl.key.password": PASSWORD}


def _truststore(path: Callable[[Bench], str], **more: str) -> Callable[[Bench], Options]:
    def options(bench: Bench) -> Options:
        named = {f"kafka.ssl.truststore.{name}": value for name, value in more.items()}
        return (
            bench.at("SSL")
            | {"kafka.security.protocol": "SSL", "kafka.ssl.truststore.location": path(bench)}
            | named
        )

    return options


def _own_tokens(bench: Bench) -> Options:
    options = options_of(bench.kafka, "SASL_SSL", "OAUTHBEARER")
    kept = {name: value for name, value in options.items() if "oauth" not in name}
    kept = {name: value for name, value in kept.items() if "handler" not in name}
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    return kept | {"kafka.sasl.jaas.config": f"{module} required;"}


def _forged_token(bench: Bench) -> str:
    with TokenServer({}) as other:
        return other.token("alice", iss=bench.kafka.token_server.issuer).reveal()


def _no_token_server(bench: Bench) -> Options:
    (port,) = free_ports(1)
    url = f"http://{LOOPBACK}:{port}/token"
    return _sasl("OAUTHBEARER", password=None)(bench) | {
        "kafka.sasl.oauthbearer.token.endpoint.url": url,
        "kafka.sasl.login.retry.backoff.max.ms": "100",
    }


def _delegation_token(bench: Bench) -> Options:
    return options_of(bench.kafka, "SASL_SSL", "SCRAM-SHA-256") | token_options("none", PASSWORD)


HTTP = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"
SSH = b"SSH-2.0-OpenSSH_9.6\r\n"
BRIEFLY = {
    "kafka.socket.connection.setup.timeout.ms": "2000",
    "kafka.request.timeout.ms": "3500",
}
"""Timeouts for a client that can only wait. A loaded machine, too, has time for a whole try."""

PROTOCOL = "'kafka.security.protocol'"
KEYSTORE = "'kafka.ssl.keystore.location'"
READ, WRITE = "user needs READ on", "user needs WRITE on"
OFFSETS = "the topic of the offsets"

SETUPS = [
    # -- another protocol on the port
    Setup(
        "a TLS port, spoken to in plaintext",
        lambda bench: bench.at("SSL"),
        OtherServerError,
        ("this looks like TLS", "kafka.security.protocol"),
        2,
    ),
    Setup(
        "a plaintext port, spoken to by TLS",
        lambda bench: bench.trusting("CLIENT"),
        TlsError,
        ("does not speak TLS", PROTOCOL),
        4,
    ),
    Setup(
        "a SASL_PLAINTEXT port, without SASL",
        lambda bench: bench.at("SASL_PLAINTEXT"),
        AuthenticationError,
        ("listener expects it, with PLAIN, SCRAM-", f"{PROTOCOL} to SASL_PLAINTEXT"),
        2,
    ),
    Setup(
        "a SASL_SSL port, with TLS alone",
        lambda bench: bench.trusting("SASL_SSL"),
        AuthenticationError,
        ("listener expects it, with PLAIN, SCRAM-", f"{PROTOCOL} to SASL_SSL"),
        2,
    ),
    Setup(
        "a SASL_SSL port, with SASL alone",
        lambda bench: options_of(bench.kafka, "SASL_PLAINTEXT", "PLAIN") | bench.at("SASL_SSL"),
        OtherServerError,
        ("this looks like TLS", "kafka.security.protocol"),
        2,
    ),
    Setup(
        "a plaintext port, with SASL",
        lambda bench: options_of(bench.kafka, "SASL_PLAINTEXT", "PLAIN") | bench.at("CLIENT"),
        AuthenticationError,
        ("does not use SASL", PROTOCOL),
        1,
    ),
    Setup(
        "an HTTP server",
        lambda bench: {},
        OtherServerError,
        ("looks like an HTTP server", "kafka.bootstrap.servers"),
        2,
        server=lambda bench: says(HTTP),
    ),
    Setup(
        "an HTTP server, spoken to by TLS",
        lambda bench: bench.trusting("SSL"),
        TlsError,
        ("does not speak TLS", PROTOCOL),
        2,
        server=lambda bench: says(HTTP),
    ),
    Setup(
        "an SSH server",
        lambda bench: {},
        OtherServerError,
        ("looks like an SSH server", "kafka.bootstrap.servers"),
        2,
        server=lambda bench: says(SSH, first=True),
    ),
    Setup(
        "a port that takes connections and says nothing",
        lambda bench: {},
        BootstrapError,
        ("took the connection and said nothing", PROTOCOL, "'kafka.bootstrap.servers'"),
        None,
        server=lambda bench: keeps_silent,
        more=BRIEFLY,
    ),
    Setup(
        "the same, spoken to by TLS",
        lambda bench: bench.trusting("SSL"),
        BootstrapError,
        ("timed out starting TLS", PROTOCOL, "'kafka.bootstrap.servers'"),
        None,
        server=lambda bench: keeps_silent,
        more=BRIEFLY,
    ),
    # -- TLS
    Setup(
        "a server of TLS 1.1 alone",
        lambda bench: bench.trusting("SSL"),
        TlsError,
        ("no version of TLS that is enabled here", "'kafka.ssl.enabled.protocols'"),
        2,
        server=lambda bench: old_tls(bench.kafka.authority.issue("server").keystore),
    ),
    Setup(
        "a certificate of an unknown authority",
        lambda bench: bench.trusting("SSL_OTHER_AUTHORITY"),
        TlsError,
        ("no authority that is trusted here", "'kafka.ssl.truststore.location'"),
        2,
    ),
    Setup(
        "no truststore, and an authority of one's own",
        lambda bench: bench.at("SSL") | {"kafka.security.protocol": "SSL"},
        TlsError,
        ("no authority that is trusted here", "'kafka.ssl.truststore.location'"),
        2,
    ),
    Setup(
        "a certificate that has expired",
        lambda bench: bench.trusting("SSL_EXPIRED"),
        TlsError,
        ("the broker's certificate has expired", "Renew it on the broker"),
        2,
    ),
    Setup(
        "a certificate for another host",
        lambda bench: bench.trusting("SSL_OTHER_HOST"),
        TlsError,
        ("for another name", "'127.0.0.1'", "'kafka.ssl.endpoint.identification.algorithm'"),
        2,
    ),
    Setup(
        "no certificate of the client's where one is demanded",
        lambda bench: bench.trusting("MTLS"),
        TlsError,
        ("demands a client certificate", KEYSTORE),
        2,
    ),
    Setup(
        "a client's certificate of another authority",
        _certificate_of_stranger,
        TlsError,
        ("refuses the client's certificate", KEYSTORE),
        2,
    ),
    Setup(
        "a client's certificate that has expired",
        _expired_certificate,
        TlsError,
        ("refuses the client's certificate", KEYSTORE),
        2,
    ),
    Setup(
        "a truststore that is not there",
        _truststore(lambda bench: str(bench.directory / "nowhere.pem")),
        ConfigurationError,
        ("'kafka.ssl.truststore.location'", "No such file"),
        0,
    ),
    Setup(
        "a truststore without a certificate",
        _truststore(lambda bench: bench.file("key.pem", bench.stranger.issue("a").key.read_text())),
        ConfigurationError,
        ("'kafka.ssl.truststore.location'", "holds no certificate"),
        0,
    ),
    Setup(
        "a truststore's wrong password",
        _truststore(lambda bench: str(bench.kafka.authority.truststore), password=PASSWORD),
        ConfigurationError,
        ("'kafka.ssl.truststore.password'", "does not open"),
        0,
    ),
    Setup(
        "a key that is not the certificate's",
        _key_of_another,
        ConfigurationError,
        ("'kafka.ssl.keystore.key'", "the key and the certificate do not match"),
        0,
    ),
    Setup(
        "a key's wrong password",
        _key_password,
        ConfigurationError,
        ("'kafka.ssl.key.password'", "does not decrypt"),
        0,
    ),
    # -- authentication
    Setup(
        "a mechanism that the broker has not",
        lambda bench: options_of(bench.kafka, "SASL_SSL", "PLAIN") | bench.at("SASL_SSL_SCRAM"),
        AuthenticationError,
        ("does not have this mechanism, but SCRAM-SHA-", "'kafka.sasl.mechanism'"),
        1,
    ),
    Setup(
        "a wrong password, by PLAIN",
        _sasl("PLAIN"),
        AuthenticationError,
        ("refuses the credentials", "nvalid ", "'kafka.sasl.jaas.config'"),
        1,
    ),
    Setup(
        "a wrong password, by SCRAM",
        _sasl("SCRAM-SHA-512"),
        AuthenticationError,
        ("refuses the credentials", "nvalid ", "'kafka.sasl.jaas.config'"),
        1,
    ),
    Setup(
        "a user that there is not, by PLAIN",
        _sasl("PLAIN", "nobody"),
        AuthenticationError,
        ("refuses the credentials", "nvalid ", "'kafka.sasl.jaas.config'"),
        1,
    ),
    Setup(
        "a user that there is not, by SCRAM",
        _sasl("SCRAM-SHA-256", "nobody"),
        AuthenticationError,
        ("refuses the credentials", "nvalid ", "'kafka.sasl.jaas.config'"),
        1,
    ),
    Setup(
        "a delegation token that there is not",
        _delegation_token,
        AuthenticationError,
        ("refuses the credentials", "nvalid ", "'kafka.sasl.jaas.config'"),
        1,
    ),
    Setup(
        "a token that has expired",
        _own_tokens,
        AuthenticationError,
        ("invalid_token", "'kafka.sasl.oauthbearer.token.endpoint.url'"),
        1,
        token=lambda bench: bench.kafka.token_server.token(
            "alice", lifetime_seconds=-3600
        ).reveal(),
    ),
    Setup(
        "a token that another signed",
        _own_tokens,
        AuthenticationError,
        ("invalid_token", "'kafka.sasl.oauthbearer.token.endpoint.url'"),
        1,
        token=_forged_token,
    ),
    Setup(
        "a token endpoint that refuses the client",
        _sasl("OAUTHBEARER"),
        AuthenticationError,
        ("status 401 and invalid_client", "'kafka.sasl.oauthbearer.token.endpoint.url'"),
        1,
    ),
    Setup(
        "a token endpoint that is not there",
        _no_token_server,
        BootstrapError,
        ("the token endpoint did not answer", "'kafka.sasl.oauthbearer.token.endpoint.url'"),
        None,
        more=BRIEFLY,
    ),
]
"""Set-ups that fail readers and writers."""

READERS = [
    Setup(
        "a topic that one may not see (DESCRIBE)",
        _as_bob(subscribe=HIDDEN),
        BrokerError,
        ("TOPIC_AUTHORIZATION_FAILED", f"{READ} topic '{HIDDEN}'", "leave the topic out"),
        1,
    ),
    Setup(
        "a topic that one may see and not read (READ)",
        _as_bob(subscribe=SEALED),
        BrokerError,
        (f"Fetch of {SEALED}-0", "TOPIC_AUTHORIZATION_FAILED", f"{READ} topic '{SEALED}'"),
        2,
    ),
    Setup(
        "a group that one may not see (DESCRIBE)",
        _as_bob(**{"kafka.group.id": HIDDEN_GROUP, "startingOffsets": "committed"}),
        BrokerError,
        ("GROUP_AUTHORIZATION_FAILED", f"{READ} group '{HIDDEN_GROUP}'", "'kafka.group.id'"),
        1,
    ),
    Setup(
        "a group that one may see and not commit to (READ)",
        _as_bob(**{"kafka.group.id": GROUP}),
        BrokerError,
        (f"group '{GROUP}'", "GROUP_AUTHORIZATION_FAILED", f"{READ} group '{GROUP}'"),
        None,
    ),
]
"""Missing rights of readers."""

WRITERS = [
    Setup(
        "a topic that one may not see (DESCRIBE)",
        _as_bob(subscribe=HIDDEN),
        BrokerError,
        ("TOPIC_AUTHORIZATION_FAILED", f"{WRITE} topic '{HIDDEN}'", "write to another topic"),
        1,
    ),
    Setup(
        "a topic that one may see and not write to (WRITE)",
        _as_bob(subscribe=SEALED),
        BrokerError,
        (f"Produce to {SEALED}-0", "TOPIC_AUTHORIZATION_FAILED", f"{WRITE} topic '{SEALED}'"),
        1,
    ),
    Setup(
        "a transactional id that one may not have (WRITE)",
        _as_bob(**{"kafka.transactional.id": SEALED_ID}),
        BrokerError,
        (
            "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
            f"{WRITE} transactional id '{SEALED_ID}'",
            "'kafka.transactional.id'",
        ),
        None,
    ),
    Setup(
        "a group whose offsets one may not commit (READ)",
        _as_bob(**{"kafka.transactional.id": "of-bob", "kafka.group.id": HIDDEN_GROUP}),
        TransactionAbortableError,
        (f"{READ} group '{HIDDEN_GROUP}'", "to commit its offsets", "leave the offsets out"),
        None,
    ),
    Setup(
        "a topic whose offsets one may not commit (READ)",
        _as_bob(
            **{"kafka.transactional.id": "of-bob", "kafka.group.id": "of-bob", OFFSETS: HIDDEN}
        ),
        TransactionAbortableError,
        (f"TxnOffsetCommit of {HIDDEN}-0", f"{READ} topic '{HIDDEN}'"),
        None,
    ),
]
"""Missing rights of writers."""
