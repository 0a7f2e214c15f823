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
from spark_kafka_source.options.declaration import (
    Option,
    Options,
    Settings,
    Use,
    named,
    option,
    options_of,
)
from spark_kafka_source.options.kinds import boolean, int32, string

_SERVERS = Option(
    "kafka.bootstrap.servers",
    string(takes="`host:port`, or several separated by commas"),
    "the brokers' addresses; one broker that is up is enough to find the others",
    Use.BOTH,
)
CLIENT_RACK = Option(
    "kafka.client.rack",
    string(),
    "where this runs, in the words of the brokers' `broker.rack`: reads come from a replica"
    " in the same rack (KIP-392); for writes see `kafka.partitioner.rack.aware`",
    Use.BOTH,
)
"""An option of readers, of the members of groups, and of writers."""


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """Settings of a `KafkaClient`, with Kafka's names and defaults."""

    bootstrap_servers: tuple[Address, ...]
    connection: ConnectionSettings = field(default_factory=ConnectionSettings)
    default_api_timeout_ms: int = option(
        "kafka.default.api.timeout.ms",
        int32(60_000, minimum=1),
        "how long to retry a request after an error that can heal",
    )
    retry_backoff_ms: int = option("kafka.retry.backoff.ms", int32(100))
    retry_backoff_max_ms: int = option("kafka.retry.backoff.max.ms", int32(1_000))
    metadata_max_age_ms: int = option("kafka.metadata.max.age.ms", int32(300_000))
    metadata_cluster_check_enable: bool = option(
        "kafka.metadata.cluster.check.enable",
        boolean(True),
        "whether a broker of Kafka 4.4 or newer checks that a connection was meant for it",
    )

    @classmethod
    def from_settings(
        cls, settings: Settings, token_provider: TokenProvider | None = None
    ) -> "ClientConfig":
        """Read the settings. Read certificates and keys, too, so that their errors show at once.

        Raises `ConfigurationError` for a missing address, or a bad or unsupported value.
        """
        servers = _SERVERS.of(settings)
        if not servers.strip():
            raise ConfigurationError(
                _SERVERS.name, "is missing", "Give 'host:port', or several separated by commas"
            )
        security = SecuritySettings.from_settings(settings, token_provider)
        if security.tls is not None:
            tls_context(security.tls)
        return settings.read(
            cls,
            bootstrap_servers=parse_addresses(servers),
            connection=settings.read(ConnectionSettings, security=security),
        )


CLIENT_OPTIONS: Options = {
    **named(_SERVERS),
    **options_of(ClientConfig),
    **options_of(ConnectionSettings),
    **SECURITY_OPTIONS,
}
"""The options that `ClientConfig.from_settings` reads."""
