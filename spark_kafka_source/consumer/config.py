"""How records are fetched: Kafka's consumer configuration, from `kafka.*` options."""

from dataclasses import dataclass

from spark_kafka_source.records import IsolationLevel
from spark_kafka_source.settings import setting


@dataclass(frozen=True, slots=True)
class FetchConfig:
    """Names and defaults of https://kafka.apache.org/documentation/#consumerconfigs."""

    fetch_min_bytes: int = setting(1)
    fetch_max_wait_ms: int = setting(500)
    fetch_max_bytes: int = setting(50 * 1024 * 1024, minimum=1)
    max_partition_fetch_bytes: int = setting(1024 * 1024, minimum=1)
    isolation_level: IsolationLevel = setting(IsolationLevel.READ_UNCOMMITTED)
    check_crcs: bool = setting(True)
    client_rack: str = setting("")
