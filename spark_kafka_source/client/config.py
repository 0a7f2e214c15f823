"""Kafka's client configuration, read from `kafka.*` options.

Names and defaults are Kafka's: https://kafka.apache.org/documentation/#consumerconfigs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.net import Address, ConnectionSettings, parse_addresses

_INT32_MAX = 2**31 - 1
_TRUTH = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Settings:
    """The `kafka.*` options of one source, keyed by Kafka's name for them, with typed reading.

    A value that cannot be used raises a `ConfigurationError` that names the option.
    """

    values: Mapping[str, str]

    def integer(self, name: str, default: int, *, minimum: int = 0) -> int:
        """A whole number from `minimum` to 2^31-1."""
        text = self.values.get(name)
        if text is None:
            return default
        stripped = text.strip()
        digits = stripped.removeprefix("-")
        number = (
            int(stripped) if digits.isascii() and digits.isdigit() and len(digits) < 20 else None
        )
        if number is None or not minimum <= number <= _INT32_MAX:
            expected = f"Give a whole number from {minimum} to {_INT32_MAX}, as in '{default}'"
            raise ConfigurationError(f"kafka.{name}", f"{text!r} is out of range", expected)
        return number

    def boolean(self, name: str, default: bool) -> bool:
        """`true` or `false`."""
        text = self.values.get(name)
        if text is None:
            return default
        if text.strip().lower() not in _TRUTH:
            raise ConfigurationError(f"kafka.{name}", f"found {text!r}", "Give 'true' or 'false'")
        return _TRUTH[text.strip().lower()]

    def choice(self, name: str, default: str, allowed: tuple[str, ...]) -> str:
        """One of `allowed`, which are lower case, however the user writes it."""
        text = self.values.get(name, default).strip().lower()
        if text not in allowed:
            expected = f"Give one of {', '.join(allowed)}"
            raise ConfigurationError(f"kafka.{name}", f"found {text!r}", expected)
        return text


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """What a `KafkaClient` needs to know: where the brokers are, and how long to wait for them."""

    bootstrap_servers: tuple[Address, ...]
    connection: ConnectionSettings = field(default_factory=ConnectionSettings)
    default_api_timeout_ms: int = 60_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    metadata_max_age_ms: int = 300_000

    @classmethod
    def from_settings(cls, settings: Settings) -> "ClientConfig":
        """Raises `ConfigurationError` for a missing address, a bad value, or what we lack."""
        servers = settings.values.get("bootstrap.servers", "")
        if not servers.strip():
            raise ConfigurationError(
                "kafka.bootstrap.servers", "is missing", "Give 'host:port', more by comma"
            )
        _refuse_security(settings)
        return cls(
            bootstrap_servers=parse_addresses(servers),
            connection=_connection_settings(settings),
            default_api_timeout_ms=settings.integer("default.api.timeout.ms", 60_000, minimum=1),
            retry_backoff_ms=settings.integer("retry.backoff.ms", 100),
            retry_backoff_max_ms=settings.integer("retry.backoff.max.ms", 1_000),
            metadata_max_age_ms=settings.integer("metadata.max.age.ms", 300_000),
        )


CLIENT_SETTINGS = frozenset(
    {
        "bootstrap.servers",
        "client.id",
        "connections.max.idle.ms",
        "default.api.timeout.ms",
        "metadata.max.age.ms",
        "receive.buffer.bytes",
        "request.timeout.ms",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "security.protocol",
        "send.buffer.bytes",
        "socket.connection.setup.timeout.ms",
    }
)
"""The names that `ClientConfig.from_settings` reads."""


def _connection_settings(settings: Settings) -> ConnectionSettings:
    return ConnectionSettings(
        client_id=settings.values.get("client.id", "spark-kafka-source"),
        socket_connection_setup_timeout_ms=settings.integer(
            "socket.connection.setup.timeout.ms", 10_000, minimum=1
        ),
        request_timeout_ms=settings.integer("request.timeout.ms", 30_000, minimum=1),
        connections_max_idle_ms=settings.integer("connections.max.idle.ms", 540_000, minimum=-1),
        receive_buffer_bytes=settings.integer("receive.buffer.bytes", -1, minimum=-1),
        send_buffer_bytes=settings.integer("send.buffer.bytes", -1, minimum=-1),
    )


def _refuse_security(settings: Settings) -> None:
    """A security option that did nothing would be worse than an error."""
    protocol = settings.values.get("security.protocol", "PLAINTEXT").strip().upper()
    if protocol != "PLAINTEXT":
        raise ConfigurationError(
            "kafka.security.protocol", f"{protocol!r} is not supported", "Only PLAINTEXT is, as yet"
        )
    for name in sorted(settings.values):
        if name.startswith(("ssl.", "sasl.")):
            raise ConfigurationError(
                f"kafka.{name}",
                "has no effect with PLAINTEXT",
                "Leave it out: TLS and SASL are not supported yet",
            )
