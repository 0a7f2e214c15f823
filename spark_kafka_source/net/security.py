"""Security of connections, from `kafka.security.protocol`, `kafka.ssl.*` and `kafka.sasl.*`.

https://kafka.apache.org/documentation/#consumerconfigs_security.protocol
"""

from dataclasses import dataclass, field
from enum import Enum

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.net.sasl import SASL_OPTIONS, SaslSettings, TokenProvider
from spark_kafka_source.options.declaration import (
    Option,
    Options,
    Settings,
    named,
    option,
    options_of,
)
from spark_kafka_source.options.judgement import refuse_unknown
from spark_kafka_source.options.kinds import choice, secret, string
from spark_kafka_source.secret import Secret

_NONE_GIVEN = Secret("")
_KAFKA = "kafka."
_STORE_TYPE = "PEM or PKCS12, found by the content; JKS is refused"


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


_PROTOCOL = Option("kafka.security.protocol", choice(SecurityProtocol.PLAINTEXT))
PROTOCOL_OPTION = _PROTOCOL.name


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """The trusted certificates, and the client's certificates and key, with Kafka's names.

    An empty text means that the option is not given. The type of a store is found by its content,
    so it need not be given. Certificates in PEM are secret, like passwords, as in Kafka.
    """

    prefix: str = field(default=_KAFKA, kw_only=True)
    """What precedes the names of the options: `kafka.`, or the registry's."""
    ssl_truststore_location: str = option("ssl.truststore.location", string())
    ssl_truststore_type: str = option("ssl.truststore.type", string(), _STORE_TYPE)
    ssl_truststore_password: Secret = option("ssl.truststore.password", secret())
    ssl_truststore_certificates: Secret = option("ssl.truststore.certificates", secret())
    ssl_keystore_location: str = option("ssl.keystore.location", string())
    ssl_keystore_type: str = option("ssl.keystore.type", string(), _STORE_TYPE)
    ssl_keystore_password: Secret = option("ssl.keystore.password", secret())
    ssl_keystore_certificate_chain: Secret = option("ssl.keystore.certificate.chain", secret())
    ssl_keystore_key: Secret = option("ssl.keystore.key", secret())
    ssl_key_password: Secret = option("ssl.key.password", secret())
    ssl_endpoint_identification_algorithm: str = option(
        "ssl.endpoint.identification.algorithm", string("https")
    )
    ssl_enabled_protocols: str = option("ssl.enabled.protocols", string("TLSv1.2,TLSv1.3"))
    ssl_protocol: str = option("ssl.protocol", string("TLSv1.3"))
    ssl_cipher_suites: str = option("ssl.cipher.suites", string())

    @classmethod
    def from_settings(cls, settings: Settings, prefix: str = _KAFKA) -> "TlsSettings":
        """Read the options whose names begin with `prefix`."""
        return settings.read(cls, prefix, prefix=prefix)

    def named(self, option: str) -> str:
        """Return the name of an option such as `ssl.protocol`, with its prefix."""
        return self.prefix + option

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
        protocol = _PROTOCOL.of(settings)
        _refuse_what_would_do_nothing(settings, protocol)
        tls = TlsSettings.from_settings(settings) if protocol.has_tls else None
        if not protocol.has_sasl:
            return cls(protocol, tls)
        sasl = SaslSettings.from_settings(
            settings, tls=protocol.has_tls, token_provider=token_provider
        )
        return cls(protocol, tls, sasl)


SECURITY_OPTIONS: Options = {
    **named(_PROTOCOL),
    **options_of(TlsSettings, _KAFKA),
    **SASL_OPTIONS,
}
"""The options that `SecuritySettings.from_settings` reads."""


def _refuse_what_would_do_nothing(settings: Settings, protocol: SecurityProtocol) -> None:
    """Raise `ConfigurationError` for a security option without effect, such as a misspelt one."""
    for prefix, matters, protocols in (
        ("kafka.ssl.", protocol.has_tls, "SSL or SASL_SSL"),
        ("kafka.sasl.", protocol.has_sasl, "SASL_SSL"),
    ):
        refuse_unknown(settings, prefix, SECURITY_OPTIONS)
        for name in sorted(settings.values.keys() & SECURITY_OPTIONS.keys()):
            if name.startswith(prefix) and not matters:
                found = f"has no effect with {protocol.name}"
                expected = f"Leave it out, or set '{PROTOCOL_OPTION}' to {protocols}"
                raise ConfigurationError(name, found, expected)
