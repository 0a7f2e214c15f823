"""Kafka's configuration of a group member, from `kafka.*` options."""

from dataclasses import dataclass
from enum import Enum

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.settings import setting

_EARLY_ENOUGH = "Give less than 'kafka.session.timeout.ms'; a third of it is usual"


class GroupProtocol(Enum):
    """The group protocols; they differ in which side divides the partitions."""

    CLASSIC = "one of the members, by an assignor that all of them have"
    CONSUMER = "the broker (KIP-848), from Kafka 4.0 on"

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """Settings of a group member, with Kafka's names and defaults.

    See https://kafka.apache.org/documentation/#consumerconfigs. With the protocol of KIP-848 the
    broker sets the session timeout and the heartbeat interval. Raises `ConfigurationError` for
    values that contradict each other, or for an unknown assignor.
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
        # The options of a query without a group import no assignors.
        from spark_kafka_source.groups.assignors import assignors_named  # noqa: PLC0415

        assignors_named(self.partition_assignment_strategy)
