"""The configuration of fetches: Kafka's consumer configuration, from `kafka.*` options."""

from dataclasses import dataclass

from spark_kafka_source.client import CLIENT_RACK
from spark_kafka_source.options.declaration import Settings, held, option
from spark_kafka_source.options.kinds import boolean, choice, int32
from spark_kafka_source.records import CHUNK_BYTES, IsolationLevel

_OF_A_PARTITION = "kafka.max.partition.fetch.bytes"


@dataclass(frozen=True, slots=True)
class FetchConfig:
    """Settings of fetches, as in https://kafka.apache.org/documentation/#consumerconfigs."""

    fetch_min_bytes: int = option("kafka.fetch.min.bytes", int32(1))
    fetch_max_wait_ms: int = option("kafka.fetch.max.wait.ms", int32(500))
    fetch_max_bytes: int = option("kafka.fetch.max.bytes", int32(50 * 1024 * 1024, minimum=1))
    max_partition_fetch_bytes: int = option(
        "kafka.max.partition.fetch.bytes",
        int32(1024 * 1024, minimum=1),
        "the most that one fetch asks for of a partition, if it is given. If not, a task "
        "asks for its default at first, and for more where answers are full",
    )
    isolation_level: IsolationLevel = option(
        "kafka.isolation.level",
        choice(IsolationLevel.READ_UNCOMMITTED),
        "`read_committed` leaves out open and aborted transactions",
    )
    check_crcs: bool = option(
        "kafka.check.crcs", boolean(True), "whether each batch is held against its CRC-32C"
    )
    client_rack: str = held(CLIENT_RACK)
    limits_partitions: bool = False
    """Whether `max.partition.fetch.bytes` is given. Else the fetches of a range may exceed it."""

    chunk_bytes: int = CHUNK_BYTES
    """The size of what is decoded at once."""

    @classmethod
    def from_settings(cls, settings: Settings) -> "FetchConfig":
        """Read the settings. Raises `ConfigurationError`."""
        return settings.read(cls, limits_partitions=settings.has(_OF_A_PARTITION))
