"""How records are fetched: Kafka's consumer configuration, from `kafka.*` options."""

from dataclasses import dataclass

from spark_kafka_source.client import Settings
from spark_kafka_source.records import IsolationLevel

_ISOLATION_LEVELS = {
    "read_uncommitted": IsolationLevel.READ_UNCOMMITTED,
    "read_committed": IsolationLevel.READ_COMMITTED,
}

FETCH_SETTINGS = frozenset(
    {
        "check.crcs",
        "client.rack",
        "fetch.max.bytes",
        "fetch.max.wait.ms",
        "fetch.min.bytes",
        "isolation.level",
        "max.partition.fetch.bytes",
    }
)
"""The names that `FetchConfig.from_settings` reads."""


@dataclass(frozen=True, slots=True)
class FetchConfig:
    """Names and defaults of https://kafka.apache.org/documentation/#consumerconfigs."""

    fetch_min_bytes: int = 1
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int = 50 * 1024 * 1024
    max_partition_fetch_bytes: int = 1024 * 1024
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    check_crcs: bool = True
    client_rack: str = ""

    @classmethod
    def from_settings(cls, settings: Settings) -> "FetchConfig":
        """Raises `ConfigurationError` for a value that cannot be used."""
        level = settings.choice("isolation.level", "read_uncommitted", tuple(_ISOLATION_LEVELS))
        default = cls()
        return cls(
            fetch_min_bytes=settings.integer("fetch.min.bytes", default.fetch_min_bytes),
            fetch_max_wait_ms=settings.integer("fetch.max.wait.ms", default.fetch_max_wait_ms),
            fetch_max_bytes=settings.integer("fetch.max.bytes", default.fetch_max_bytes, minimum=1),
            max_partition_fetch_bytes=settings.integer(
                "max.partition.fetch.bytes", default.max_partition_fetch_bytes, minimum=1
            ),
            isolation_level=_ISOLATION_LEVELS[level],
            check_crcs=settings.boolean("check.crcs", default.check_crcs),
            client_rack=settings.values.get("client.rack", default.client_rack),
        )
