"""Steps of a conversation with a group's coordinator; see `steps`."""

import time
from dataclasses import dataclass
from typing import Any

from spark_kafka_source.errors import error_named
from spark_kafka_source.protocol import Response
from spark_kafka_source.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
)
from spark_kafka_source.protocol.messages.find_coordinator import FindCoordinatorRequest
from spark_kafka_source.protocol.messages.group_admin import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from spark_kafka_source.protocol.messages.groups import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from spark_kafka_source.protocol.messages.membership import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    TopicPartitions,
)
from tests.testing.memory.sides import GROUP, Side
from tests.testing.memory.steps import NOBODY, Question, Step, by_topic

_TIMEOUT_MS = 30_000
_PATIENCE_SECONDS = 60.0
_STEP_SECONDS = 0.01


# -- a group's offsets -----------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Commit(Question):
    """A commit by a member or by no member. `shift` is added to the generation or epoch."""

    offsets: str
    by: str = NOBODY
    shift: int = 0
    highest_version: int = 9
    metadata: str = ""

    def request(self, side: Side) -> OffsetCommitRequest:
        return OffsetCommitRequest(
            group_id=side.name(GROUP),
            generation_id_or_member_epoch=side.generation(self.by) + self.shift,
            member_id=side.member_id(self.by),
            topics=[
                OffsetCommitRequestTopic(
                    side.name(topic),
                    partitions=[
                        OffsetCommitRequestPartition(at.partition, at.number, -1, self.metadata)
                        for at in those
                    ],
                )
                for topic, those in by_topic(self.offsets)
            ],
        )


@dataclass(frozen=True, repr=False)
class Committed(Question):
    """Fetch the group's committed offsets of these partitions; None means all."""

    partitions: str | None = None
    by: str = NOBODY
    shift: int = 0
    highest_version: int = 9
    is_stable: bool = False

    def request(self, side: Side) -> OffsetFetchRequest:
        topics = None if self.partitions is None else by_topic(self.partitions)
        if self.highest_version < 8:
            one = [
                OffsetFetchRequestTopic(side.name(topic), [at.partition for at in those])
                for topic, those in topics or ()
            ]
            return OffsetFetchRequest(
                side.name(GROUP), None if topics is None else one, require_stable=self.is_stable
            )
        several = [
            OffsetFetchRequestTopics(
                side.name(topic), partition_indexes=[at.partition for at in those]
            )
            for topic, those in topics or ()
        ]
        group = OffsetFetchRequestGroup(
            side.name(GROUP),
            side.member_id(self.by) if self.by else None,
            side.generation(self.by) + self.shift,
            None if topics is None else several,
        )
        return OffsetFetchRequest(groups=[group], require_stable=self.is_stable)


@dataclass(frozen=True, repr=False)
class ForgetOffsets(Question):
    partitions: str

    def request(self, side: Side) -> OffsetDeleteRequest:
        return OffsetDeleteRequest(
            side.name(GROUP),
            [
                OffsetDeleteRequestTopic(
                    side.name(topic), [OffsetDeleteRequestPartition(at.partition) for at in those]
                )
                for topic, those in by_topic(self.partitions)
            ],
        )


# -- members by the classic protocol ---------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Join(Question):
    """A JoinGroup with the member's id, if any. The answer MEMBER_ID_REQUIRED gives an id."""

    member: str
    assignors: str = "range"
    instance: str | None = None
    protocol_type: str = "consumer"
    session_timeout_ms: int = _TIMEOUT_MS
    metadata: str = ""
    anew: bool = False
    highest_version: int = 9

    @property
    def speaker(self) -> str:
        return self.member

    def request(self, side: Side) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=side.name(GROUP),
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=_TIMEOUT_MS,
            member_id="" if self.anew else side.member_id(self.member),
            group_instance_id=self.instance,
            protocol_type=self.protocol_type,
            protocols=[
                JoinGroupRequestProtocol(name, (self.metadata or self.member).encode())
                for name in self.assignors.split()
            ],
        )

    def learn(self, side: Side, answer: Any) -> None:
        required = error_named("MEMBER_ID_REQUIRED").code
        if answer.error_code == error_named("UNKNOWN_MEMBER_ID").code:
            side.member_ids.pop(self.member, None)
        if answer.error_code in (0, required):
            side.learn_member(self.member, answer.member_id)
        if not answer.error_code:
            side.generations[self.member] = answer.generation_id


@dataclass(frozen=True, repr=False)
class Sync(Question):
    """A SyncGroup. A leader assigns each member in `to` that member's name."""

    member: str
    to: str = ""
    shift: int = 0
    instance: str | None = None
    protocol: str | None = "range"

    @property
    def speaker(self) -> str:
        return self.member

    def request(self, side: Side) -> SyncGroupRequest:
        return SyncGroupRequest(
            group_id=side.name(GROUP),
            generation_id=side.generation(self.member) + self.shift,
            member_id=side.member_id(self.member),
            group_instance_id=self.instance,
            protocol_type="consumer",
            protocol_name=self.protocol,
            assignments=[
                SyncGroupRequestAssignment(side.member_id(each), each.encode())
                for each in self.to.split()
            ],
        )


@dataclass(frozen=True, repr=False)
class Heartbeat(Question):
    member: str
    shift: int = 0
    instance: str | None = None

    @property
    def speaker(self) -> str:
        return self.member

    def request(self, side: Side) -> HeartbeatRequest:
        return HeartbeatRequest(
            side.name(GROUP),
            side.generation(self.member) + self.shift,
            side.member_id(self.member),
            self.instance,
        )


@dataclass(frozen=True, repr=False)
class Leave(Question):
    members: str
    instance: str | None = None
    highest_version: int = 5

    def request(self, side: Side) -> LeaveGroupRequest:
        ids = [side.member_id(each) for each in self.members.split()]
        if self.highest_version < 3:
            return LeaveGroupRequest(side.name(GROUP), member_id=ids[0])
        return LeaveGroupRequest(
            side.name(GROUP), members=[MemberIdentity(each, self.instance) for each in ids]
        )


# -- members by the protocol of KIP-848 ------------------------------------------------------------

JOIN, LEAVE, LEAVE_FOR_A_WHILE = 0, -1, -2


@dataclass(frozen=True, repr=False)
class Beat(Question):
    """A KIP-848 heartbeat, in the member's epoch or in a given epoch.

    It subscribes to topics, or to a pattern: all names that begin like the topic `like`.
    """

    member: str
    epoch: int | None = None
    topics: str | None = None
    owned: str | None = None
    like: str | None = None
    instance: str | None = None
    shift: int = 0
    rebalance_timeout_ms: int = -1
    assignor: str | None = None

    @property
    def speaker(self) -> str:
        return self.member

    def request(self, side: Side) -> ConsumerGroupHeartbeatRequest:
        epoch = side.generation(self.member) if self.epoch is None else self.epoch
        names = None if self.topics is None else [side.name(each) for each in self.topics.split()]
        owned = None
        if self.owned is not None:
            owned = [
                TopicPartitions(side.topic_id(topic), [at.partition for at in those])
                for topic, those in by_topic(self.owned)
            ]
        regex = None if self.like is None else f"{side.name(self.like)}.*"
        return ConsumerGroupHeartbeatRequest(
            group_id=side.name(GROUP),
            member_id=side.own_member_id(self.member),
            member_epoch=epoch + self.shift,
            instance_id=self.instance,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            subscribed_topic_names=names,
            subscribed_topic_regex=regex,
            server_assignor=self.assignor,
            topic_partitions=owned,
        )

    def learn(self, side: Side, answer: Any) -> None:
        if not answer.error_code:
            if not side.generations:
                side.first_epoch = answer.member_epoch
            side.generations[self.member] = answer.member_epoch


# -- groups, as an admin client sees them ----------------------------------------------------------


@dataclass(frozen=True, repr=False)
class FindCoordinator(Question):
    highest_version: int = 6
    key_type: int = 0

    def request(self, side: Side) -> FindCoordinatorRequest:
        if self.highest_version < 4:
            return FindCoordinatorRequest(side.name(GROUP), self.key_type)
        name = side.name(GROUP)
        return FindCoordinatorRequest(key_type=self.key_type, coordinator_keys=[name])


@dataclass(frozen=True, repr=False)
class Describe(Question):
    """Describe the group as a classic group."""

    highest_version: int = 6

    def request(self, side: Side) -> DescribeGroupsRequest:
        return DescribeGroupsRequest([side.name(GROUP)])


@dataclass(frozen=True, repr=False)
class DescribeConsumers(Question):
    """Describe the group as a KIP-848 group."""

    def request(self, side: Side) -> ConsumerGroupDescribeRequest:
        return ConsumerGroupDescribeRequest([side.name(GROUP)])


@dataclass(frozen=True, repr=False)
class List(Question):
    """List the groups. Only this conversation's group is compared."""

    states: str = ""
    types: str = ""

    def request(self, side: Side) -> ListGroupsRequest:
        return ListGroupsRequest(self.states.split(), self.types.split())

    def answered(self, side: Side, answer: Response) -> Response:
        assert isinstance(answer, ListGroupsResponse)
        ours = [each for each in answer.groups if each.group_id == side.name(GROUP)]
        return ListGroupsResponse(error_code=answer.error_code, groups=ours)


@dataclass(frozen=True, repr=False)
class DeleteGroup(Question):
    def request(self, side: Side) -> DeleteGroupsRequest:
        return DeleteGroupsRequest([side.name(GROUP)])


@dataclass(frozen=True, repr=False)
class Until(Step):
    """Wait until the classic group has a state: the coordinator has taken the earlier requests."""

    state: str
    members: int

    def take(self, side: Side) -> None:
        until_seconds = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < until_seconds:
            answer = side.ask(NOBODY, Describe().request(side))
            group = answer.groups[0]
            if (group.group_state, len(group.members)) == (self.state, self.members):
                return
            time.sleep(_STEP_SECONDS)
        raise AssertionError(f"the group is {group.group_state} with {len(group.members)}")
