"""The configuration of fetches: Kafka's consumer configuration, from `kafka.*` options."""

from dataclasses import dataclass

from spark_kafka_source.records import IsolationLevel
from spark_kafka_source.settings import Settings, setting

_OF_A_PARTITION = "kafka.max.partition.fetch.bytes"


@dataclass(frozen=True, slots=True)
class FetchConfig:
    """Settings of fetches, as in https://kafka.apache.org/documentation/#consumerconfigs."""

    fetch_min_bytes: int = setting(1)
    fetch_max_wait_ms: int = setting(500)
    fetch_max_bytes: int = setting(50 * 1024 * 1024, minimum=1)
    max_partition_fetch_bytes: int = setting(
        1024 * 1024,
        minimum=1,
        meaning="the most that one fetch asks for of a partition, if it is given. If not, a task "
        "asks for its default at first, and for more where answers are full",
    )
    isolation_level: IsolationLevel = setting(
        IsolationLevel.READ_UNCOMMITTED,
        meaning="`read_committed` leaves out open and aborted transactions",
    )
    check_crcs: bool = setting(True, meaning="whether each batch is held against its CRC-32C")
    client_rack: str = setting(
        "", meaning="reads from a replica in the same rack, where the brokers name one (KIP-392)"
    )
    limits_partitions: bool = False
    """Whether `max.partition.fetch.bytes` is given. Else the fetches of a range may exceed it."""

    @classmethod
    def from_settings(cls, settings: Settings) -> "FetchConfig":
        """Read the settings. Raises `ConfigurationError`."""
        return settings.read(cls, limits_partitions=_OF_A_PARTITION in settings.values)
