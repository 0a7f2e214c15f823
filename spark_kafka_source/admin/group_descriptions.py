"""Lists and descriptions of groups and their members.

See https://kafka.apache.org/protocol#The_Messages_DescribeGroups for groups of the classic
protocol, and KIP-848 for the others.
"""

import logging
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from spark_kafka_source.admin.coordinators import Told, ask_coordinators
from spark_kafka_source.admin.errors import GroupNotFoundError, typed
from spark_kafka_source.client import Broker, KafkaClient
from spark_kafka_source.denials import refusal
from spark_kafka_source.errors import (
    BrokerError,
    KafkaError,
    ProtocolError,
    UnsupportedVersionError,
)
from spark_kafka_source.groups.assignors import Assignment
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

logger = logging.getLogger(__name__)

CLASSIC, CONSUMER = "classic", "consumer"
"""The types of groups that commit offsets of records read in order."""

_DEAD = "Dead"
_NOT_FOUND = "GROUP_ID_NOT_FOUND"


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
        await client.topics([], deadline)
        brokers = client.cluster.brokers.values()
        request = ListGroupsRequest(states_filter=list(states))
        found: dict[str, GroupListing] = {}
        answers = await client.send_to_each(dict.fromkeys(brokers, request), deadline)
        for broker, answer in answers.items():
            if isinstance(answer, KafkaError):
                raise answer
            if answer.error_code:
                what = f"ListGroups of broker {broker.node_id}"
                raise refusal(answer.error_code, what)
            found |= {each.group_id: _listing(each) for each in answer.groups}
        return sorted(found.values(), key=lambda each: each.group_id)

    listed = await client.retrying("ListGroups", attempt)
    # Filtered here, since brokers before KIP-848 know no types.
    return [each for each in listed if not types or each.type in types]


def _listing(group: ListedGroup) -> GroupListing:
    kind = group.group_type.lower() or CLASSIC
    return GroupListing(group.group_id, kind, group.group_state, group.protocol_type)


async def describe_groups(
    client: KafkaClient, group_ids: Iterable[str]
) -> dict[str, GroupDescription | KafkaError]:
    """Return each group, or its error. A group that does not exist has a `GroupNotFoundError`."""
    group_ids = list(dict.fromkeys(group_ids))
    found: dict[str, GroupDescription | BrokerError] = {}
    try:
        found |= await ask_coordinators(
            client,
            "ConsumerGroupDescribe",
            group_ids,
            lambda mine: ConsumerGroupDescribeRequest(group_ids=mine),
            _consumer_groups,
        )
    except UnsupportedVersionError:
        logger.debug("The brokers know of classic groups only")
    classic = [each for each in group_ids if _may_be_classic(found.get(each))]
    found |= await ask_coordinators(
        client,
        "DescribeGroups",
        classic,
        lambda mine: DescribeGroupsRequest(groups=mine),
        _classic_groups,
    )
    return {each: _or_missing(each, found[each]) for each in group_ids}


async def described(client: KafkaClient, group_id: str) -> GroupDescription:
    """Return one group. Raises `GroupNotFoundError` and `BrokerError`."""
    found = (await describe_groups(client, [group_id]))[group_id]
    if isinstance(found, KafkaError):
        raise found
    return found


def _may_be_classic(found: GroupDescription | BrokerError | None) -> bool:
    return found is None or (isinstance(found, BrokerError) and found.error.name == _NOT_FOUND)


def _or_missing(
    group_id: str, found: GroupDescription | BrokerError
) -> GroupDescription | KafkaError:
    if isinstance(found, BrokerError):
        return typed(found, group_id, "described")
    if found.state == _DEAD:
        return GroupNotFoundError(group_id)
    return found


def _consumer_groups(
    answer: ConsumerGroupDescribeResponse, coordinator: Broker
) -> Iterator[tuple[Told, GroupDescription]]:
    for group in answer.groups:
        yield (
            Told(group.group_id, group.error_code, group.error_message),
            GroupDescription(
                group.group_id,
                CONSUMER,
                group.group_state,
                PROTOCOL_TYPE,
                group.assignor_name,
                coordinator,
                tuple(map(_consumer_member, group.members)),
                group.group_epoch,
                group.assignment_epoch,
            ),
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
            TopicPartition(topic.topic_name, each) for topic in topics for each in topic.partitions
        )
    )


def _classic_groups(
    answer: DescribeGroupsResponse, coordinator: Broker
) -> Iterator[tuple[Told, GroupDescription]]:
    for group in answer.groups:
        yield (
            Told(group.group_id, group.error_code, group.error_message),
            _classic_group(group, coordinator),
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
        tuple(_classic_member(group.group_id, each, of_consumers) for each in group.members),
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
