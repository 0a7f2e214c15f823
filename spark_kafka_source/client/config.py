"""Where the brokers are and how long to wait for them, from `kafka.*` options."""

from dataclasses import dataclass, field

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.net import Address, ConnectionSettings, parse_addresses
from spark_kafka_source.settings import Settings, setting, settings_of

_SERVERS = "kafka.bootstrap.servers"
_PROTOCOL = "kafka.security.protocol"


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """What a `KafkaClient` needs to know, under Kafka's names and with its defaults."""

    bootstrap_servers: tuple[Address, ...]
    connection: ConnectionSettings = field(default_factory=ConnectionSettings)
    default_api_timeout_ms: int = setting(60_000, minimum=1)
    retry_backoff_ms: int = setting(100)
    retry_backoff_max_ms: int = setting(1_000)
    metadata_max_age_ms: int = setting(300_000)

    @classmethod
    def from_settings(cls, settings: Settings) -> "ClientConfig":
        """Raises `ConfigurationError` for a missing address, a bad value, or what we lack."""
        servers = settings.text(_SERVERS, "")
        if not servers.strip():
            raise ConfigurationError(_SERVERS, "is missing", "Give 'host:port', more by comma")
        _refuse_security(settings)
        return settings.read(
            cls,
            bootstrap_servers=parse_addresses(servers),
            connection=settings.read(ConnectionSettings),
        )


CLIENT_OPTIONS = frozenset(
    {_SERVERS, _PROTOCOL, *settings_of(ClientConfig), *settings_of(ConnectionSettings)}
)
"""The names of the options that `ClientConfig.from_settings` reads."""


def _refuse_security(settings: Settings) -> None:
    """A security option that did nothing would be worse than an error."""
    protocol = settings.text(_PROTOCOL, "PLAINTEXT").strip().upper()
    if protocol != "PLAINTEXT":
        raise ConfigurationError(
            _PROTOCOL, f"{protocol!r} is not supported", "Only PLAINTEXT is, as yet"
        )
    for name in sorted(settings.values):
        if name.startswith(("kafka.ssl.", "kafka.sasl.")):
            raise ConfigurationError(
                name,
                "has no effect with PLAINTEXT",
                "Leave it out: TLS and SASL are not supported yet",
            )
