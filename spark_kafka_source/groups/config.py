"""How a consumer is a member of its group: Kafka's configuration, from `kafka.*` options."""

from dataclasses import dataclass
from enum import Enum

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.groups.assignors import assignors_named
from spark_kafka_source.settings import setting

_EARLY_ENOUGH = "Give less than 'kafka.session.timeout.ms'; a third of it is usual"


class GroupProtocol(Enum):
    """Who divides the partitions."""

    CLASSIC = "one of the members, by an assignor that all of them have"
    CONSUMER = "the broker (KIP-848), from Kafka 4.0 on"

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """Names and defaults of https://kafka.apache.org/documentation/#consumerconfigs.

    With the protocol of KIP-848 the broker says how long a session is and how often to be heard.
    Raises `ConfigurationError` for values that do not go together, or an assignor there is not.
    """

    group_id: str = setting("")
    group_instance_id: str = setting("")
    session_timeout_ms: int = setting(45_000, minimum=1)
    heartbeat_interval_ms: int = setting(3_000, minimum=1)
    max_poll_interval_ms: int = setting(300_000, minimum=1)
    group_protocol: GroupProtocol = setting(GroupProtocol.CLASSIC)
    partition_assignment_strategy: str = setting("range,cooperative-sticky")
    group_remote_assignor: str = setting("")
    client_rack: str = setting("")

    def __post_init__(self) -> None:
        if not self.group_id:
            raise ConfigurationError("kafka.group.id", "is missing", "Give the name of the group")
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            found = f"found {self.heartbeat_interval_ms}, too long for a session"
            raise ConfigurationError("kafka.heartbeat.interval.ms", found, _EARLY_ENOUGH)
        assignors_named(self.partition_assignment_strategy)
