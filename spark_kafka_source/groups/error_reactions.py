"""The reactions of a member to each error of its coordinator, in one table.

The table follows Kafka's `AbstractCoordinator` and `AbstractHeartbeatRequestManager`. A request
that failed with an error outside the table is tried again if `errors.ERRORS` has a remedy for it.
Otherwise the error is raised.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any

from spark_kafka_source.errors import BrokerError, KafkaError
from spark_kafka_source.protocol import Request
from spark_kafka_source.protocol.messages.membership import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)


class Reaction(Enum):
    """A member's reaction to an error."""

    RETRY = "send the same request again after a pause, with the error's remedy"
    JOIN_AGAIN = "join again at once, with the member id known by now"
    REBALANCE = "the group rebalances: the next poll joins again"
    LOSE_GENERATION = "the assignment is lost; the next poll joins under the same member id"
    LOSE_MEMBER = "the assignment is lost; the next poll joins as a new member"
    FENCED = "the assignment is lost, and every later poll raises the error"
    RAISE = "the next poll raises the error"
    GONE = "it is no longer a member, which was the aim of the request"


# The answer to a member that joins by KIP-848 if the group cannot be converted: the group is
# classic.
_IS_CLASSIC = "GROUP_ID_NOT_FOUND"

_COORDINATOR: Mapping[str, Reaction] = {
    "ILLEGAL_GENERATION": Reaction.LOSE_GENERATION,
    "UNKNOWN_MEMBER_ID": Reaction.LOSE_MEMBER,
    "FENCED_INSTANCE_ID": Reaction.FENCED,
}

REACTIONS: Mapping[type[Request[Any]], Mapping[str, Reaction]] = {
    JoinGroupRequest: {
        **_COORDINATOR,
        "MEMBER_ID_REQUIRED": Reaction.JOIN_AGAIN,
        "REBALANCE_IN_PROGRESS": Reaction.JOIN_AGAIN,
    },
    SyncGroupRequest: {**_COORDINATOR, "REBALANCE_IN_PROGRESS": Reaction.JOIN_AGAIN},
    HeartbeatRequest: {**_COORDINATOR, "REBALANCE_IN_PROGRESS": Reaction.REBALANCE},
    LeaveGroupRequest: {
        "UNKNOWN_MEMBER_ID": Reaction.GONE,
        "FENCED_INSTANCE_ID": Reaction.GONE,
        "GROUP_ID_NOT_FOUND": Reaction.GONE,
    },
    ConsumerGroupHeartbeatRequest: {
        # The session ended and the group was deleted. For a member that joins, see `reaction_to`.
        "GROUP_ID_NOT_FOUND": Reaction.LOSE_MEMBER,
        "UNKNOWN_MEMBER_ID": Reaction.LOSE_MEMBER,
        "FENCED_MEMBER_EPOCH": Reaction.LOSE_MEMBER,
        "STALE_MEMBER_EPOCH": Reaction.RETRY,
        "FENCED_INSTANCE_ID": Reaction.FENCED,
        "UNRELEASED_INSTANCE_ID": Reaction.FENCED,
    },
}
"""The reaction, by the request and the name of the error."""

ADVICE: Mapping[str, str] = {
    "FENCED_INSTANCE_ID": "another consumer of the group has the same 'kafka.group.instance.id'",
    "UNRELEASED_INSTANCE_ID": "another consumer of the group has the same "
    "'kafka.group.instance.id' and is still a member",
    "INVALID_SESSION_TIMEOUT": "'kafka.session.timeout.ms' is not between the broker's "
    "'group.min.session.timeout.ms' and 'group.max.session.timeout.ms'",
    "INCONSISTENT_GROUP_PROTOCOL": "the members of the group have no assignor in common, or use "
    "another protocol; see 'kafka.partition.assignment.strategy' and 'kafka.group.protocol'",
    "GROUP_MAX_SIZE_REACHED": "the group has as many members as the broker allows",
    "UNSUPPORTED_ASSIGNOR": "the broker does not have what 'kafka.group.remote.assignor' names",
    "INVALID_GROUP_ID": "see 'kafka.group.id'",
    _IS_CLASSIC: "the group's members use the classic protocol, and the broker does not let them "
    "mix with others; see its 'group.consumer.migration.policy' and 'kafka.group.protocol'",
    "INVALID_REGULAR_EXPRESSION": "the broker reads patterns as RE2 does",
}
"""Advice for the user about a raised error, by the name of the error."""


def reaction_to(request: Request[Any] | None, error: Exception) -> Reaction:
    """Return the reaction to an error of a request. Without a request, the next poll raises it."""
    if request is None:
        return Reaction.RAISE
    if isinstance(error, BrokerError):
        joins = isinstance(request, ConsumerGroupHeartbeatRequest) and request.member_epoch == 0
        if joins and error.error.name == _IS_CLASSIC:
            return Reaction.RAISE
        if (listed := REACTIONS[type(request)].get(error.error.name)) is not None:
            return listed
    retriable = isinstance(error, KafkaError) and error.has_remedy
    return Reaction.RETRY if retriable else Reaction.RAISE
