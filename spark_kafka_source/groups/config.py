"""Kafka's configuration of a group member, from `kafka.*` options."""

from dataclasses import dataclass
from enum import Enum

from spark_kafka_source.client import CLIENT_RACK
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.options.declaration import held, option
from spark_kafka_source.options.kinds import choice, int32, string

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

    group_id: str = option("kafka.group.id", string())
    group_instance_id: str = option("kafka.group.instance.id", string())
    session_timeout_ms: int = option("kafka.session.timeout.ms", int32(45_000, minimum=1))
    heartbeat_interval_ms: int = option("kafka.heartbeat.interval.ms", int32(3_000, minimum=1))
    max_poll_interval_ms: int = option("kafka.max.poll.interval.ms", int32(300_000, minimum=1))
    group_protocol: GroupProtocol = option("kafka.group.protocol", choice(GroupProtocol.CLASSIC))
    partition_assignment_strategy: str = option(
        "kafka.partition.assignment.strategy", string("range,cooperative-sticky")
    )
    group_remote_assignor: str = option("kafka.group.remote.assignor", string())
    client_rack: str = held(CLIENT_RACK)

    def __post_init__(self) -> None:
        if not self.group_id:
            raise ConfigurationError("kafka.group.id", "is missing", "Give the name of the group")
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            problem = f"found {self.heartbeat_interval_ms}, too long for a session"
            raise ConfigurationError("kafka.heartbeat.interval.ms", problem, _EARLY_ENOUGH)
        # The options of a query without a group import no assignors.
        from spark_kafka_source.groups.assignors import assignors_named  # noqa: PLC0415

        assignors_named(self.partition_assignment_strategy)
