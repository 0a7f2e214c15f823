"""Security of connections, from `kafka.security.protocol`, `kafka.ssl.*` and `kafka.sasl.*`.

https://kafka.apache.org/documentation/#consumerconfigs_security.protocol
"""

from dataclasses import dataclass
from enum import Enum

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.net.sasl import SASL_OPTIONS, SaslSettings, TokenProvider
from spark_kafka_source.secret import Secret
from spark_kafka_source.settings import Settings, nearest, setting, settings_of

PROTOCOL_OPTION = "kafka.security.protocol"

_NONE_GIVEN = Secret("")
_STORE_TYPE = "PEM or PKCS12, found by the content; JKS is refused"
_A_SLIP = 0.9


class SecurityProtocol(Enum):
    """The protocols towards a broker: with or without TLS, with or without SASL."""

    PLAINTEXT = (False, False)
    SSL = (True, False)
    SASL_PLAINTEXT = (False, True)
    SASL_SSL = (True, True)

    def __str__(self) -> str:
        return self.name

    @property
    def has_tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.value[0]

    @property
    def has_sasl(self) -> bool:
        """Whether the client authenticates by SASL."""
        return self.value[1]


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """The trusted certificates, and the client's certificates and key, with Kafka's names.

    An empty text means that the option is not given. The type of a store is found by its content,
    so it need not be given. Certificates in PEM are secret, like passwords, as in Kafka.
    """

    ssl_truststore_location: str = setting("")
    ssl_truststore_type: str = setting("", meaning=_STORE_TYPE)
    ssl_truststore_password: Secret = setting(_NONE_GIVEN)
    ssl_truststore_certificates: Secret = setting(_NONE_GIVEN)
    ssl_keystore_location: str = setting("")
    ssl_keystore_type: str = setting("", meaning=_STORE_TYPE)
    ssl_keystore_password: Secret = setting(_NONE_GIVEN)
    ssl_keystore_certificate_chain: Secret = setting(_NONE_GIVEN)
    ssl_keystore_key: Secret = setting(_NONE_GIVEN)
    ssl_key_password: Secret = setting(_NONE_GIVEN)
    ssl_endpoint_identification_algorithm: str = setting("https")
    ssl_enabled_protocols: str = setting("TLSv1.2,TLSv1.3")
    ssl_protocol: str = setting("TLSv1.3")
    ssl_cipher_suites: str = setting("")

    @property
    def has_key(self) -> bool:
        """Whether the client has a certificate to show."""
        return bool(self.ssl_keystore_location or self.ssl_keystore_key)


@dataclass(frozen=True, slots=True)
class SecuritySettings:
    """The security protocol and its settings. Settings that it does not need are None."""

    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    tls: TlsSettings | None = None
    sasl: SaslSettings | None = None

    @classmethod
    def from_settings(
        cls, settings: Settings, token_provider: TokenProvider | None = None
    ) -> "SecuritySettings":
        """Read the security options. `token_provider` is for OAUTHBEARER without a token endpoint.

        Raises `ConfigurationError`, also for security options that would have no effect.
        """
        protocol = settings.choice(PROTOCOL_OPTION, SecurityProtocol.PLAINTEXT)
        _refuse_what_would_do_nothing(settings, protocol)
        tls = settings.read(TlsSettings) if protocol.has_tls else None
        if not protocol.has_sasl:
            return cls(protocol, tls)
        sasl = SaslSettings.from_settings(
            settings, tls=protocol.has_tls, token_provider=token_provider
        )
        return cls(protocol, tls, sasl)


SECURITY_OPTIONS = frozenset({PROTOCOL_OPTION, *settings_of(TlsSettings), *SASL_OPTIONS})
"""The names of the options that `SecuritySettings.from_settings` reads."""

_WITHOUT_EFFECT_BY_REASON = {
    "Java's security providers cannot be used here": """
        security.providers ssl.keymanager.algorithm ssl.provider ssl.secure.random.implementation
        ssl.trustmanager.algorithm
        """,
    "the Kerberos library manages the tickets": """
        sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin
        sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
        """,
    "the broker checks a token, not the client": """
        sasl.oauthbearer.allow.unverified.audience sasl.oauthbearer.allow.unverified.issuer
        sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience
        sasl.oauthbearer.expected.issuer sasl.oauthbearer.jwks.endpoint.refresh.ms
        sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
        sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.url
        sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name
        """,
}
SECURITY_WITHOUT_EFFECT = {
    f"kafka.{name}": reason
    for reason, names in _WITHOUT_EFFECT_BY_REASON.items()
    for name in names.split()
}
"""Security options that have no effect and do no harm, each with the reason."""


def _refuse_what_would_do_nothing(settings: Settings, protocol: SecurityProtocol) -> None:
    """Raise `ConfigurationError` for a security option without effect, such as a misspelt one."""
    for prefix, matters, protocols in (
        ("kafka.ssl.", protocol.has_tls, "SSL or SASL_SSL"),
        ("kafka.sasl.", protocol.has_sasl, "SASL_SSL"),
    ):
        for name in sorted(settings.values):
            if name in SECURITY_WITHOUT_EFFECT or not name.startswith(prefix):
                continue
            if name not in SECURITY_OPTIONS:
                raise ConfigurationError(name, "is not supported", _nearest(name))
            if not matters:
                found = f"has no effect with {protocol.name}"
                expected = f"Leave it out, or set '{PROTOCOL_OPTION}' to {protocols}"
                raise ConfigurationError(name, found, expected)


INSTEAD = {
    "kafka.sasl.oauthbearer.assertion.": (
        "Use 'kafka.sasl.oauthbearer.client.credentials.client.secret', or a token provider"
    ),
    "kafka.sasl.oauthbearer.jwt.validator.class": "Leave it to the broker, which checks the token",
    "kafka.ssl.engine.factory.class": (
        "Use 'kafka.ssl.keystore.location' and 'kafka.ssl.truststore.location'"
    ),
}
"""Replacements for options of Kafka's own client, by the beginnings of their names."""


def _nearest(name: str) -> str:
    instead = next((text for begin, text in INSTEAD.items() if name.startswith(begin)), None)
    if instead:
        return instead
    meant = nearest(name, SECURITY_OPTIONS, _A_SLIP)
    return f"Did you mean '{meant}'?" if meant else "Leave it out"
