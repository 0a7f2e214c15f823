"""What can be said to a broker in a conversation: one line each, with short names for everything.

A partition is `a-0`, and `a-0=5` or `a-0@5` gives its offset. A member is a short name; its id and
its generation (or epoch) are those that the broker gave it, unless a step says otherwise.
"""

import dataclasses
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from spark_kafka_source.errors import error_named
from spark_kafka_source.protocol import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    FindCoordinatorRequest,
    ForgottenTopic,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    ListGroupsRequest,
    ListGroupsResponse,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    MemberIdentity,
    MetadataRequest,
    MetadataRequestTopic,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
    Request,
    Response,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    TopicPartitions,
)
from tests.memory_broker.sides import GROUP, Side

LATEST, EARLIEST, GREATEST = -1, -2, -3
NOBODY = ""

_TIMEOUT_MS = 30_000
_MOST_BYTES = 1 << 20
_PATIENCE_SECONDS = 10.0
_STEP_SECONDS = 0.01


class At(NamedTuple):
    """A partition of a text, and the number given for it."""

    topic: str
    partition: int
    number: int


def by_topic(text: str) -> list[tuple[str, list[At]]]:
    """`a-0=5 a-1=7 b-0` by topic, in the order of the text."""
    found = []
    for word in text.split():
        where, _, number = word.replace("@", "=").partition("=")
        topic, _, partition = where.partition("-")
        found.append(At(topic, int(partition), int(number or 0)))
    return [(topic, list(those)) for topic, those in groupby(found, lambda each: each.topic)]


class Step(ABC):
    """One thing that happens; the broker's answer, where it is a question."""

    def __repr__(self) -> str:
        """As it was written: without what was left as it is."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]  # all that there are, are
        given = [
            f"{each.name}={value!r}"
            for each in fields
            if (value := getattr(self, each.name)) != each.default
        ]
        return f"{type(self).__name__}({', '.join(given)})"

    @abstractmethod
    def take(self, side: Side) -> Response | None: ...


class Question(Step):
    """A request, on the connection of its `speaker`."""

    @property
    def speaker(self) -> str:
        return NOBODY

    @property
    def highest_version(self) -> int | None:
        """With None the highest that both sides speak."""
        return None

    @abstractmethod
    def request(self, side: Side) -> Request[Any]: ...

    def learn(self, side: Side, answer: Any) -> None:
        """Keeps what later steps need."""

    def take(self, side: Side) -> Response | None:
        return self.answered(side, side.ask(self.speaker, self.request(side), self.highest_version))

    def answered(self, side: Side, answer: Response) -> Response:
        self.learn(side, answer)
        return answer


@dataclass(frozen=True, repr=False)
class Says(Step):
    """Asks and does not wait; the answer is taken by `Hears`."""

    question: Question

    def take(self, side: Side) -> None:
        question = self.question
        side.send(question.speaker, question.request(side), question.highest_version)


@dataclass(frozen=True, repr=False)
class Hears(Step):
    """The answer to what was said."""

    question: Question

    def take(self, side: Side) -> Response:
        return self.question.answered(side, side.hear(self.question.speaker))


@dataclass(frozen=True, repr=False)
class Until(Step):
    """The classic group comes to a state: what was said before has reached the coordinator."""

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


# -- topics ----------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Create(Step):
    topic: str
    partitions: int = 1

    def take(self, side: Side) -> None:
        side.create_topic(self.topic, self.partitions)


@dataclass(frozen=True, repr=False)
class Delete(Step):
    topic: str

    def take(self, side: Side) -> None:
        side.delete_topic(self.topic)


@dataclass(frozen=True, repr=False)
class Append(Step):
    """Records a second apart, in one batch."""

    topic: str
    count: int
    partition: int = 0

    def take(self, side: Side) -> None:
        side.append(self.topic, self.partition, self.count)


@dataclass(frozen=True, repr=False)
class Metadata(Question):
    topics: str
    by_id: bool = False

    def request(self, side: Side) -> MetadataRequest:
        names = self.topics.split()
        asked = [
            MetadataRequestTopic(side.topic_id(each), None)
            if self.by_id
            else MetadataRequestTopic(name=side.name(each))
            for each in names
        ]
        return MetadataRequest(topics=asked, allow_auto_topic_creation=False)


@dataclass(frozen=True, repr=False)
class ListOffsets(Question):
    """Of each partition the offset at a time in ms, or at the end that a negative one names."""

    partitions: str
    at: int = LATEST
    leader_epoch: int = -1
    isolation_level: int = 0

    def request(self, side: Side) -> ListOffsetsRequest:
        return ListOffsetsRequest(
            replica_id=-1,
            isolation_level=self.isolation_level,
            topics=[
                ListOffsetsTopic(
                    side.name(topic),
                    [
                        ListOffsetsPartition(at.partition, self.leader_epoch, self.at)
                        for at in those
                    ],
                )
                for topic, those in by_topic(self.partitions)
            ],
        )


@dataclass(frozen=True, repr=False)
class EpochEnd(Question):
    """Of each partition where an epoch ends."""

    partitions: str
    epoch: int = 0
    leader_epoch: int = -1

    def request(self, side: Side) -> OffsetForLeaderEpochRequest:
        return OffsetForLeaderEpochRequest(
            replica_id=-1,
            topics=[
                OffsetForLeaderTopic(
                    side.name(topic),
                    [
                        OffsetForLeaderPartition(at.partition, self.leader_epoch, self.epoch)
                        for at in those
                    ],
                )
                for topic, those in by_topic(self.partitions)
            ],
        )


ALONE, FIRST, NEXT, LATE, UNKNOWN, CLOSE = "alone", "first", "next", "late", "unknown", "close"
"""What a fetch is to a session: none of it, its first, its next, one with a former epoch, one of a
session that never was, or its last."""


@dataclass(frozen=True, repr=False)
class Fetch(Question):
    """From these offsets on, in a session or without; `by_name`, as up to v12."""

    partitions: str = ""
    session: str = ALONE
    leader_epoch: int = -1
    forget: str = ""
    by_name: bool = False
    isolation_level: int = 0

    @property
    def highest_version(self) -> int | None:
        return 12 if self.by_name else None

    def request(self, side: Side) -> FetchRequest:
        session_id, session_epoch = {
            ALONE: (0, -1),
            FIRST: (0, 0),
            NEXT: (side.session_id, side.session_epoch),
            LATE: (side.session_id, max(1, side.session_epoch - 1)),
            UNKNOWN: (side.session_id + 1_000, 1),
            CLOSE: (side.session_id, -1),
        }[self.session]
        return FetchRequest(
            max_bytes=_MOST_BYTES,
            isolation_level=self.isolation_level,
            session_id=session_id,
            session_epoch=session_epoch,
            topics=[
                FetchTopic(
                    side.name(topic), side.topic_id(topic), [self._partition(at) for at in those]
                )
                for topic, those in by_topic(self.partitions)
            ],
            forgotten_topics_data=[
                ForgottenTopic(
                    side.name(topic), side.topic_id(topic), [at.partition for at in those]
                )
                for topic, those in by_topic(self.forget)
            ],
        )

    def _partition(self, at: At) -> FetchPartition:
        return FetchPartition(
            at.partition, self.leader_epoch, at.number, partition_max_bytes=_MOST_BYTES
        )

    def learn(self, side: Side, answer: Any) -> None:
        if self.session == FIRST:
            side.session_id, side.session_epoch = answer.session_id, 1
        elif self.session == NEXT and not answer.error_code:
            side.session_epoch += 1


# -- a group's offsets -----------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Commit(Question):
    """By a member, or by nobody; `shift` is added to its generation or epoch."""

    offsets: str
    by: str = NOBODY
    shift: int = 0
    highest_version: int = 9

    def request(self, side: Side) -> OffsetCommitRequest:
        return OffsetCommitRequest(
            group_id=side.name(GROUP),
            generation_id_or_member_epoch=side.generation(self.by) + self.shift,
            member_id=side.member_id(self.by),
            topics=[
                OffsetCommitRequestTopic(
                    side.name(topic),
                    partitions=[
                        OffsetCommitRequestPartition(at.partition, at.number, -1, "")
                        for at in those
                    ],
                )
                for topic, those in by_topic(self.offsets)
            ],
        )


@dataclass(frozen=True, repr=False)
class Committed(Question):
    """What the group committed of these partitions; with None, of all."""

    partitions: str | None = None
    by: str = NOBODY
    shift: int = 0
    highest_version: int = 9

    def request(self, side: Side) -> OffsetFetchRequest:
        topics = None if self.partitions is None else by_topic(self.partitions)
        if self.highest_version < 8:
            one = [
                OffsetFetchRequestTopic(side.name(topic), [at.partition for at in those])
                for topic, those in topics or ()
            ]
            return OffsetFetchRequest(side.name(GROUP), None if topics is None else one)
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
        return OffsetFetchRequest(groups=[group])


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
    """With the id that the member has, if any; MEMBER_ID_REQUIRED gives it one for the next."""

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
    """Assigns each of `to` its name, where the member leads."""

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
    """A heartbeat by KIP-848, in the epoch that the member has, or in one that is given.

    It subscribes to topics, or by a pattern to those whose names begin `like` that of one.
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


# -- groups from outside ---------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class FindCoordinator(Question):
    highest_version: int = 6

    def request(self, side: Side) -> FindCoordinatorRequest:
        if self.highest_version < 4:
            return FindCoordinatorRequest(side.name(GROUP))
        return FindCoordinatorRequest(coordinator_keys=[side.name(GROUP)])


@dataclass(frozen=True, repr=False)
class Describe(Question):
    """As a classic group."""

    highest_version: int = 6

    def request(self, side: Side) -> DescribeGroupsRequest:
        return DescribeGroupsRequest([side.name(GROUP)])


@dataclass(frozen=True, repr=False)
class DescribeConsumers(Question):
    """As a group of KIP-848."""

    def request(self, side: Side) -> ConsumerGroupDescribeRequest:
        return ConsumerGroupDescribeRequest([side.name(GROUP)])


@dataclass(frozen=True, repr=False)
class List(Question):
    """Of all groups that there are, the one."""

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
