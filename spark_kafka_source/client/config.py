"""Addresses of the brokers, and timeouts, from `kafka.*` options."""

from dataclasses import dataclass, field

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.net import (
    SECURITY_OPTIONS,
    Address,
    ConnectionSettings,
    SecuritySettings,
    TokenProvider,
    parse_addresses,
    tls_context,
)
from spark_kafka_source.settings import Settings, setting, settings_of

_SERVERS = "kafka.bootstrap.servers"


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """Settings of a `KafkaClient`, with Kafka's names and defaults."""

    bootstrap_servers: tuple[Address, ...]
    connection: ConnectionSettings = field(default_factory=ConnectionSettings)
    default_api_timeout_ms: int = setting(
        60_000,
        minimum=1,
        meaning="how long to retry a request after an error that can heal",
    )
    retry_backoff_ms: int = setting(100)
    retry_backoff_max_ms: int = setting(1_000)
    metadata_max_age_ms: int = setting(300_000)
    metadata_cluster_check_enable: bool = setting(
        True,
        meaning="whether a broker of Kafka 4.4 or newer checks that a connection was meant for it",
    )

    @classmethod
    def from_settings(
        cls, settings: Settings, token_provider: TokenProvider | None = None
    ) -> "ClientConfig":
        """Read the settings. Read certificates and keys, too, so that their errors show at once.

        Raises `ConfigurationError` for a missing address, or a bad or unsupported value.
        """
        servers = settings.text(_SERVERS, "")
        if not servers.strip():
            raise ConfigurationError(
                _SERVERS, "is missing", "Give 'host:port', or several separated by commas"
            )
        security = SecuritySettings.from_settings(settings, token_provider)
        if security.tls is not None:
            tls_context(security.tls)
        return settings.read(
            cls,
            bootstrap_servers=parse_addresses(servers),
            connection=settings.read(ConnectionSettings, security=security),
        )


CLIENT_OPTIONS = frozenset(
    {_SERVERS, *SECURITY_OPTIONS, *settings_of(ClientConfig), *settings_of(ConnectionSettings)}
)
"""Names of the options that `ClientConfig.from_settings` reads."""
