"""Secured listeners of a LocalKafka, and the clients' configuration for them.

https://kafka.apache.org/documentation/#security
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.secret import Secret

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
"""The SASL mechanisms of listeners with SASL in their protocol."""

JAAS_PACKAGE = "org.apache.kafka.common.security"

SCRAM_DIGESTS: Mapping[str, str] = MappingProxyType(
    {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
)
"""The digest of each SCRAM mechanism, by its name in hashlib."""
SCRAM_ITERATIONS = 4096
"""The lowest number that Kafka takes."""


@dataclass(frozen=True, slots=True)
class Listener:
    """A secured listener: its protocol, its certificate, and its further properties."""

    protocol: str
    certificate: str = "server"
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_tls(self) -> bool:
        """Whether clients use TLS."""
        return self.protocol.endswith("SSL")

    @property
    def has_sasl(self) -> bool:
        """Whether clients authenticate by SASL."""
        return self.protocol.startswith("SASL")


LISTENERS: Mapping[str, Listener] = MappingProxyType(
    {
        "SSL": Listener("SSL"),
        "MTLS": Listener("SSL", properties={"ssl.client.auth": "required"}),
        "SASL_PLAINTEXT": Listener("SASL_PLAINTEXT"),
        "SASL_SSL": Listener("SASL_SSL"),
        # SASL_SSL, but a session ends after a second unless the client authenticates again
        # (KIP-368).
        "SASL_SSL_BRIEF": Listener("SASL_SSL", properties={"connections.max.reauth.ms": "1000"}),
        "SASL_SSL_SCRAM": Listener(
            "SASL_SSL", properties={"sasl.enabled.mechanisms": ",".join(SCRAM_DIGESTS)}
        ),
        # Listeners that clients must refuse.
        "SSL_EXPIRED": Listener("SSL", "expired"),
        "SSL_OTHER_HOST": Listener("SSL", "other host"),
        "SSL_OTHER_AUTHORITY": Listener("SSL", "other authority"),
    }
)
"""The listeners that `Security` adds to the plain ones, by name."""


@dataclass(frozen=True, slots=True)
class Security:
    """Security for a LocalKafka: `LISTENERS` and an authorizer for each broker.

    `users` are passwords by user name, for PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, and OAUTHBEARER
    with the LocalKafka's `token_server`. If the data stay in a directory, the SCRAM users are those
    of the first start. The user of a client certificate is its common name.

    `allow_everyone` is Kafka's `allow.everyone.if.no.acl.found`: by default every user may do all
    with a resource that has no ACL. `False` denies all that no ACL grants. A client without a name,
    at the plain listener or by SSL without a certificate, is `User:ANONYMOUS`. It may do
    everything, since the brokers and the tools connect without a name.

    Needs the package `cryptography`, 45 or newer.
    """

    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    allow_everyone: bool = True

    def __post_init__(self) -> None:
        for name in self.users:
            if not name or not name.isascii() or not name.replace("-", "").isalnum():
                raise ConfigurationError("users", f"{name!r}", "Letters, digits and dashes do")


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """A delegation token (KIP-48): SCRAM's user name and password, with `tokenauth=true`."""

    token_id: str
    hmac: Secret


def login(module: str, /, **options: str) -> str:
    """Return a `sasl.jaas.config` for a login module of Kafka, such as `plain.PlainLoginModule`."""
    given = "".join(f" {name}={_quoted(value)}" for name, value in options.items())
    return f"{JAAS_PACKAGE}.{module} required{given};"


def _quoted(text: str) -> str:
    """Quote a text for Java's tokenizer, which knows C's escapes but no Unicode escapes."""
    return json.dumps(text, ensure_ascii=False)
