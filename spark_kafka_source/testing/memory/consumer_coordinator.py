"""The coordinator of KIP-848 groups: epochs, target assignments, and the steps to the target.

It deals the subscribed partitions to members in the order of member ids. A partition gets a new
owner only after its former owner has confirmed the revocation. A member without a heartbeat within
the session timeout is removed.
"""

import asyncio
import re
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spark_kafka_source.protocol.messages.groups import OffsetCommitRequest
from spark_kafka_source.protocol.messages.membership import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from spark_kafka_source.testing.memory.answers import code

if TYPE_CHECKING:
    from spark_kafka_source.testing.memory.cluster import MemoryCluster

KIP_848_COMMIT = 9
"""The first version of OffsetCommit with a member epoch."""

LEAVE, LEAVE_FOR_A_WHILE = -1, -2
"""Member epochs of a member that leaves. A static member that will be back sends the second."""

Owned = frozenset[tuple[uuid.UUID, int]]


@dataclass(eq=False)
class ConsumerMember:
    """A member: its subscription, the partitions it says it owns, and its assignment."""

    member_id: str
    instance_id: str | None
    topics: list[str]
    regex: str = ""
    epoch: int = 0
    owned: Owned = frozenset()
    assigned: Owned = frozenset()
    session: asyncio.TimerHandle | None = None

    def wants(self, topic: str) -> bool:
        """Return whether the member subscribes to a topic, by name or by pattern."""
        return topic in self.topics or bool(self.regex and re.fullmatch(self.regex, topic))


@dataclass(eq=False)
class ConsumerGroup:
    """A KIP-848 group. It sends `heartbeat_interval_ms` to its members."""

    heartbeat_interval_ms: int = 20
    epoch: int = 0
    members: dict[str, ConsumerMember] = field(default_factory=dict)
    targets: dict[str, Owned] = field(default_factory=dict)
    divided: dict[uuid.UUID, int] = field(default_factory=dict)
    """The number of partitions of each topic, at the last division."""

    def heartbeat(
        self, cluster: "MemoryCluster", request: ConsumerGroupHeartbeatRequest
    ) -> ConsumerGroupHeartbeatResponse:
        """Let a member join, go on or leave. Tell it what it shall own."""
        if request.member_epoch < 0:
            return self._leave(cluster, request)
        if not _is_regex(request.subscribed_topic_regex):
            error = code("INVALID_REGULAR_EXPRESSION")
        elif request.member_epoch == 0:
            error = self._join(cluster, request)
        else:
            error = self._refusal(request)
        if error:
            return ConsumerGroupHeartbeatResponse(error_code=error, error_message="refused")
        member = self.members[request.member_id]
        self._renew(cluster, member)
        if request.subscribed_topic_names not in (None, member.topics):
            member.topics = request.subscribed_topic_names or []
            self._divide(cluster)
        if request.subscribed_topic_regex not in (None, member.regex):
            member.regex = request.subscribed_topic_regex or ""
            self._divide(cluster)
        if self.divided != _partition_counts(cluster):
            self._divide(cluster)
        if request.topic_partitions is not None:
            member.owned = frozenset(
                (each.topic_id, partition)
                for each in request.topic_partitions
                for partition in each.partitions
            )
        says_all = request.rebalance_timeout_ms >= 0
        return self._next_step(member, tells=says_all)

    def _join(self, cluster: "MemoryCluster", request: ConsumerGroupHeartbeatRequest) -> int:
        holder = self._holder(request.instance_id)
        if holder is not None and holder.member_id != request.member_id:
            if holder.epoch != LEAVE_FOR_A_WHILE:
                return code("UNRELEASED_INSTANCE_ID")
            self._remove(holder)
        if request.member_id in self.members:  # The answer was lost.
            return 0
        topics = request.subscribed_topic_names or []
        regex = request.subscribed_topic_regex or ""
        member = ConsumerMember(request.member_id, request.instance_id, topics, regex)
        if holder is not None and holder.epoch == LEAVE_FOR_A_WHILE:
            member.assigned = holder.assigned
            self.targets[member.member_id] = self.targets.pop(holder.member_id)
            self.members[member.member_id] = member
            return 0
        self.members[member.member_id] = member
        self._divide(cluster)
        return 0

    def _holder(self, instance_id: str | None) -> ConsumerMember | None:
        found = (
            each
            for each in self.members.values()
            if instance_id is not None and each.instance_id == instance_id
        )
        return next(found, None)

    def _refusal(self, request: ConsumerGroupHeartbeatRequest) -> int:
        holder = self._holder(request.instance_id)
        if holder is not None and holder.member_id != request.member_id:
            return code("FENCED_INSTANCE_ID")
        member = self.members.get(request.member_id)
        if member is None:
            return code("UNKNOWN_MEMBER_ID")
        is_its_own = request.member_epoch in (member.epoch, LEAVE, LEAVE_FOR_A_WHILE)
        return 0 if is_its_own else code("FENCED_MEMBER_EPOCH")

    def commit_refusal(self, request: OffsetCommitRequest, version: int) -> int:
        """Return why a commit is refused, or 0. A group without members takes any commit."""
        epoch = request.generation_id_or_member_epoch
        if epoch < 0 and not self.members:
            return 0
        if request.member_id in self.members and version < KIP_848_COMMIT:
            return code("UNSUPPORTED_VERSION")
        return self.epoch_refusal(request.member_id, epoch)

    def epoch_refusal(self, member_id: str, epoch: int) -> int:
        """Return why this is no member in this epoch, or 0."""
        member = self.members.get(member_id)
        if member is None:
            return code("UNKNOWN_MEMBER_ID")
        return 0 if member.epoch == epoch else code("STALE_MEMBER_EPOCH")

    def _leave(
        self, cluster: "MemoryCluster", request: ConsumerGroupHeartbeatRequest
    ) -> ConsumerGroupHeartbeatResponse:
        if error := self._refusal(request):
            return ConsumerGroupHeartbeatResponse(error_code=error)
        if request.member_epoch == LEAVE_FOR_A_WHILE:
            self.members[request.member_id].epoch = LEAVE_FOR_A_WHILE
        else:
            self.drop(cluster, request.member_id)
        return ConsumerGroupHeartbeatResponse(
            member_id=request.member_id, member_epoch=request.member_epoch
        )

    def drop(self, cluster: "MemoryCluster", member_id: str) -> None:
        """Remove a member. Its partitions go to others."""
        self._remove(self.members[member_id])
        self._divide(cluster)

    def _remove(self, member: ConsumerMember) -> None:
        del self.members[member.member_id]
        if member.session is not None:
            member.session.cancel()

    def _renew(self, cluster: "MemoryCluster", member: ConsumerMember) -> None:
        """Restart the member's session timeout."""
        if member.session is not None:
            member.session.cancel()
        seconds = cluster.consumer_session_timeout_ms / 1000
        loop = asyncio.get_running_loop()
        member.session = loop.call_later(seconds, self.drop, cluster, member.member_id)

    def _divide(self, cluster: "MemoryCluster") -> None:
        self.epoch += 1
        self.divided = _partition_counts(cluster)
        members = sorted(self.members)
        dealt: dict[str, set[tuple[uuid.UUID, int]]] = {each: set() for each in members}
        for name in sorted(cluster.topics):
            topic = cluster.topics[name]
            takers = [each for each in members if self.members[each].wants(name)]
            for partition in range(len(topic.logs) if takers else 0):
                dealt[takers[partition % len(takers)]].add((topic.topic_id, partition))
        self.targets = {member_id: frozenset(found) for member_id, found in dealt.items()}

    def _next_step(self, member: ConsumerMember, *, tells: bool) -> ConsumerGroupHeartbeatResponse:
        target = self.targets[member.member_id]
        if member.owned <= target:
            member.epoch = self.epoch
            others = [each for each in self.members.values() if each is not member]
            held = frozenset[tuple[uuid.UUID, int]]().union(
                *(each.owned | each.assigned for each in others)
            )
            assigned = target - held
        else:
            assigned = member.owned & target
            member.epoch = member.epoch or self.epoch
        tells = tells or assigned != member.assigned
        member.assigned = assigned
        return ConsumerGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=self.heartbeat_interval_ms,
            assignment=Assignment(_by_topic(assigned)) if tells else None,
        )

    @property
    def state(self) -> str:
        """Return the group's state. It is never Assigning, since the group assigns at once."""
        if not self.members:
            return "Empty"
        is_stable = all(
            each.epoch == self.epoch and each.assigned == self.targets[each.member_id]
            for each in self.members.values()
        )
        return "Stable" if is_stable else "Reconciling"


def _partition_counts(cluster: "MemoryCluster") -> dict[uuid.UUID, int]:
    return {each.topic_id: len(each.logs) for each in cluster.topics.values()}


def _by_topic(owned: Owned) -> list[TopicPartitions]:
    found: dict[uuid.UUID, list[int]] = {}
    for topic_id, partition in sorted(owned):
        found.setdefault(topic_id, []).append(partition)
    return [TopicPartitions(topic_id, partitions) for topic_id, partitions in found.items()]


def consumer_group_heartbeat(
    cluster: "MemoryCluster", node_id: int, request: ConsumerGroupHeartbeatRequest, version: int
) -> ConsumerGroupHeartbeatResponse:
    """v0-1."""
    wrong = cluster.coordinator(request.group_id) != node_id
    error = cluster.refusal or (code("NOT_COORDINATOR") if wrong else 0)
    if error:
        return ConsumerGroupHeartbeatResponse(error_code=error)
    if not _is_whole(request):
        return ConsumerGroupHeartbeatResponse(error_code=code("INVALID_REQUEST"))
    if request.member_epoch != 0 and request.group_id not in cluster.consumer_groups:
        unknown = code("GROUP_ID_NOT_FOUND")
        return ConsumerGroupHeartbeatResponse(error_code=unknown)
    group = cluster.consumer_groups.setdefault(request.group_id, ConsumerGroup())
    found: ConsumerGroup = group
    return found.heartbeat(cluster, request)


def _is_whole(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Return whether a heartbeat has all fields that a join or a static leave needs."""
    if request.member_epoch == LEAVE_FOR_A_WHILE:
        return request.instance_id is not None
    subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex
    has_all = subscribes and request.rebalance_timeout_ms >= 0 and request.topic_partitions == []
    return request.member_epoch != 0 or bool(has_all)


def _is_regex(text: str | None) -> bool:
    try:
        re.compile(text or "")
    except re.error:
        return False
    return True
