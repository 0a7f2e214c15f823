"""Lists and descriptions of groups and their members.

See https://kafka.apache.org/protocol#The_Messages_DescribeGroups for groups of the classic
protocol, and KIP-848 for the others.
"""

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from types import NoneType
from typing import Any

from spark_kafka_source.admin.errors import GroupNotFoundError, unless_error
from spark_kafka_source.admin.questions import ask_all_brokers, ask_groups
from spark_kafka_source.client import Broker, CoordinatorKey, KafkaClient, Told
from spark_kafka_source.errors import KafkaError, ProtocolError, UnsupportedVersionError
from spark_kafka_source.groups.assignors import Assignment
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net import Deadline
from spark_kafka_source.protocol.messages import consumer_group_describe, group_admin
from spark_kafka_source.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from spark_kafka_source.protocol.messages.consumer_protocol import PROTOCOL_TYPE
from spark_kafka_source.protocol.messages.group_admin import (
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListedGroup,
    ListGroupsRequest,
)
from spark_kafka_source.topic_partition import TopicPartition

logger = logger_of(__name__)

CLASSIC, CONSUMER = "classic", "consumer"
"""The types of groups that commit offsets of records read in order."""

_DEAD = "Dead"


@dataclass(frozen=True, slots=True)
class GroupListing:
    """A group as lists show it. `state` is empty for a broker older than Kafka 2.6.

    `protocol_type` is `consumer` for groups of consumers, and empty for a group that never had
    members. `type` is `classic`, `consumer` (KIP-848), `share` or `streams`.
    """

    group_id: str
    type: str
    state: str
    protocol_type: str

    @property
    def has_offsets(self) -> bool:
        """Whether it is a group of consumers, which commits offsets."""
        return self.type in (CLASSIC, CONSUMER) and self.protocol_type in ("", PROTOCOL_TYPE)


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """A member and its partitions. Only KIP-848 has `target_assignment` and `epoch`."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]
    epoch: int | None = None
    target_assignment: tuple[TopicPartition, ...] | None = None
    rack: str | None = None

    def __str__(self) -> str:
        return f"{self.client_id} at {self.host}"


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group and its members. The epochs are those of KIP-848, None for a classic group."""

    group_id: str
    type: str
    state: str
    protocol_type: str
    assignor: str
    coordinator: Broker
    members: tuple[MemberDescription, ...]
    group_epoch: int | None = None
    assignment_epoch: int | None = None


async def list_groups(
    client: KafkaClient, states: Collection[str] = (), types: Collection[str] = ()
) -> list[GroupListing]:
    """Ask all brokers for their groups, and return them by id; see `KafkaAdmin.list_groups`."""

    async def attempt(deadline: Deadline) -> list[GroupListing]:
        request = ListGroupsRequest(states_filter=list(states))
        answers = await ask_all_brokers(client, "ListGroups", request, deadline)
        groups = [group for answer in answers.values() for group in unless_error(answer).groups]
        by_id = {group.group_id: _listing(group) for group in groups}
        return [by_id[group_id] for group_id in sorted(by_id)]

    listed = await client.retrying("ListGroups", attempt)
    # Filtered here, since brokers before KIP-848 know no types.
    return [listing for listing in listed if not types or listing.type in types]


def _listing(group: ListedGroup) -> GroupListing:
    kind = group.group_type.lower() or CLASSIC
    return GroupListing(group.group_id, kind, group.group_state, group.protocol_type)


async def describe_groups(
    client: KafkaClient, group_ids: Iterable[str]
) -> dict[str, GroupDescription | KafkaError]:
    """Return each group, or its error. A group that does not exist has a `GroupNotFoundError`."""
    group_ids = list(dict.fromkeys(group_ids))
    outcomes: dict[str, GroupDescription | KafkaError] = {}
    with contextlib.suppress(UnsupportedVersionError):  # Then they know of classic groups only.
        outcomes |= await ask_groups(
            client,
            "ConsumerGroupDescribe",
            group_ids,
            ConsumerGroupDescribeRequest,
            partial(_told, _consumer_group),
        )
    # None for a group that was not asked about.
    may_be_classic = (GroupNotFoundError, NoneType)
    classic = [
        group_id for group_id in group_ids if isinstance(outcomes.get(group_id), may_be_classic)
    ]
    told = partial(_told, _classic_group)
    outcomes |= await ask_groups(client, "DescribeGroups", classic, DescribeGroupsRequest, told)
    return {group_id: _unless_dead(outcomes[group_id]) for group_id in group_ids}


def _unless_dead(outcome: GroupDescription | KafkaError) -> GroupDescription | KafkaError:
    if isinstance(outcome, GroupDescription) and outcome.state == _DEAD:
        return GroupNotFoundError(outcome.group_id)
    return outcome


def _told(
    describe: Callable[[Any, Broker], GroupDescription],
    answer: ConsumerGroupDescribeResponse | DescribeGroupsResponse,
    coordinator: Broker,
) -> Iterator[Told[CoordinatorKey, GroupDescription]]:
    for group in answer.groups:
        key, described = CoordinatorKey.of_group(group.group_id), describe(group, coordinator)
        yield Told(key, described, group.error_code, group.error_message)


def _consumer_group(
    group: consumer_group_describe.DescribedGroup, coordinator: Broker
) -> GroupDescription:
    return GroupDescription(
        group.group_id,
        CONSUMER,
        group.group_state,
        PROTOCOL_TYPE,
        group.assignor_name,
        coordinator,
        tuple(map(_consumer_member, group.members)),
        group.group_epoch,
        group.assignment_epoch,
    )


def _consumer_member(member: consumer_group_describe.Member) -> MemberDescription:
    return MemberDescription(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        _partitions(member.assignment),
        member.member_epoch,
        _partitions(member.target_assignment),
        member.rack_id,
    )


def _partitions(assignment: consumer_group_describe.Assignment) -> tuple[TopicPartition, ...]:
    topics = assignment.topic_partitions
    return tuple(
        sorted(
            TopicPartition(topic.topic_name, number)
            for topic in topics
            for number in topic.partitions
        )
    )


def _classic_group(group: group_admin.DescribedGroup, coordinator: Broker) -> GroupDescription:
    of_consumers = group.protocol_type == PROTOCOL_TYPE
    return GroupDescription(
        group.group_id,
        CLASSIC,
        group.group_state,
        group.protocol_type,
        group.protocol_data,
        coordinator,
        tuple(_classic_member(group.group_id, member, of_consumers) for member in group.members),
    )


def _classic_member(
    group_id: str, member: DescribedGroupMember, of_consumers: bool
) -> MemberDescription:
    assignment: tuple[TopicPartition, ...] = ()
    if of_consumers and member.member_assignment:
        try:
            assignment = tuple(sorted(Assignment.decode(member.member_assignment).partitions))
        except ProtocolError as error:  # Some clients have a format of their own.
            logger.warning("Group %r, member %r: %s", group_id, member.member_id, error)
    return MemberDescription(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        assignment,
    )
