"""The coordinator of classic groups: members, generations, rebalances.

It answers JoinGroup once all members have joined, and SyncGroup once the leader has assigned.
Sessions and rebalances time out by the loop's clock. A test can also end a session. The module is
long because all requests of a group go through its one state.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from spark_kafka_source.protocol import Request, Response
from spark_kafka_source.protocol.messages.groups import OffsetCommitRequest
from spark_kafka_source.protocol.messages.membership import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from spark_kafka_source.testing.memory.answers import Action, code
from spark_kafka_source.testing.memory.cluster import MemoryCluster

R = TypeVar("R", bound=Response)

EMPTY, PREPARING = "Empty", "PreparingRebalance"
COMPLETING, STABLE = "CompletingRebalance", "Stable"

# From this version on a dynamic member must ask for a member id first (KIP-394).
_ID_REQUIRED_SINCE = 4
_SKIP_ASSIGNMENT_SINCE = 9


@dataclass(eq=False)
class GroupMember:
    """A member, and the answers that it waits for."""

    member_id: str
    join: JoinGroupRequest
    joining: "asyncio.Future[JoinGroupResponse] | None" = None
    syncing: "asyncio.Future[SyncGroupResponse] | None" = None
    assignment: bytes = b""
    session: asyncio.TimerHandle | None = None

    @property
    def names(self) -> list[str]:
        """The names of its assignors, the preferred one first."""
        return [each.name for each in self.join.protocols]

    def metadata(self, protocol_name: str) -> bytes:
        """Return what the member tells an assignor."""
        return next(each.metadata for each in self.join.protocols if each.name == protocol_name)


@dataclass(eq=False)
class MemoryGroup:
    """A classic group. Only the broker's loop changes it. Tests may read it."""

    state: str = EMPTY
    generation_id: int = 0
    protocol_type: str = ""
    protocol_name: str = ""
    leader: str = ""
    members: dict[str, GroupMember] = field(default_factory=dict)
    pending: set[str] = field(default_factory=set)
    max_size: int = 100
    _numbers: Any = field(default_factory=itertools.count)
    _round: asyncio.TimerHandle | None = None

    # -- JoinGroup ---------------------------------------------------------------------------------

    def join(self, request: JoinGroupRequest, version: int) -> Awaitable[JoinGroupResponse]:
        """Answer JoinGroup once all members have joined."""
        error = self._join_refusal(request)
        if error:
            return _now(JoinGroupResponse(error_code=error, member_id=request.member_id))
        if request.group_instance_id is not None:
            return self._join_static(request, version)
        if not request.member_id:
            member_id = f"member-{next(self._numbers)}"
            if version >= _ID_REQUIRED_SINCE:
                self.pending.add(member_id)
                required = code("MEMBER_ID_REQUIRED")
                return _now(JoinGroupResponse(error_code=required, member_id=member_id))
            return self._join_as(member_id, request)
        return self._join_as(request.member_id, request)

    def _join_refusal(self, request: JoinGroupRequest) -> int:
        known = request.member_id in self.members or request.member_id in self.pending
        holder = self._holder(request.group_instance_id)
        if request.group_instance_id is not None and request.member_id and holder is not None:
            if holder.member_id != request.member_id:
                return code("FENCED_INSTANCE_ID")
        elif request.member_id and not known:
            return code("UNKNOWN_MEMBER_ID")
        if len(self.members) >= self.max_size and not known:
            return code("GROUP_MAX_SIZE_REACHED")
        return 0 if self._fits(request) else code("INCONSISTENT_GROUP_PROTOCOL")

    def _fits(self, request: JoinGroupRequest) -> bool:
        """Return whether the member names an assignor that all other members have too."""
        others = [each for each in self.members.values() if each.member_id != request.member_id]
        if not others:
            return bool(request.protocols)
        is_alike = request.protocol_type == self.protocol_type
        return is_alike and bool(self._common([*others, GroupMember("", request)]))

    def _holder(self, instance_id: str | None) -> GroupMember | None:
        return next(
            (
                each
                for each in self.members.values()
                if instance_id is not None and each.join.group_instance_id == instance_id
            ),
            None,
        )

    def _join_static(self, request: JoinGroupRequest, version: int) -> Awaitable[JoinGroupResponse]:
        """Let a static member replace its former self. Avoid a rebalance if possible."""
        holder = self._holder(request.group_instance_id)
        if request.member_id or holder is None:
            member_id = request.member_id or f"{request.group_instance_id}-{next(self._numbers)}"
            return self._join_as(member_id, request)
        member_id = f"{request.group_instance_id}-{next(self._numbers)}"
        was_leader = self.leader == holder.member_id
        fenced = code("FENCED_INSTANCE_ID")
        _answer(holder.joining, JoinGroupResponse(error_code=fenced, member_id=holder.member_id))
        _answer(holder.syncing, SyncGroupResponse(error_code=fenced))
        self._remove(holder)
        replacement = GroupMember(member_id, request, assignment=holder.assignment)
        others = [replacement, *self.members.values()]
        if self.state != STABLE or self._common(others)[0] != self.protocol_name:
            return self._join_as(member_id, request)
        self.members[member_id] = replacement
        self._renew(replacement)
        if was_leader:
            self.leader = member_id
        skips = was_leader and version >= _SKIP_ASSIGNMENT_SINCE
        answer = self._joined(replacement, tells_members=skips)
        answer.skip_assignment = skips
        if was_leader and not skips:
            answer.leader = holder.member_id  # Not the member itself: it must not assign.
        return _now(answer)

    def _join_as(self, member_id: str, request: JoinGroupRequest) -> Awaitable[JoinGroupResponse]:
        known = self.members.get(member_id)
        self.pending.discard(member_id)
        unchanged = known is not None and known.join.protocols == request.protocols
        if self.state == STABLE and known and unchanged and self.leader != member_id:
            return _now(self._joined(known))
        if self.state == COMPLETING and known and unchanged:
            return _now(self._joined(known, tells_members=self.leader == member_id))
        member = known or GroupMember(member_id, request)
        member.join = request
        self.members[member_id] = member
        self.protocol_type = request.protocol_type
        if member.session is not None:
            member.session.cancel()
        joining = member.joining = asyncio.get_running_loop().create_future()
        self._prepare()
        self._complete_if_all_joined()
        return joining

    def _prepare(self) -> None:
        if self.state == PREPARING:
            return
        self.state = PREPARING
        again = code("REBALANCE_IN_PROGRESS")
        for member in self.members.values():
            _answer(member.syncing, SyncGroupResponse(error_code=again))
            if member.joining is None:
                self._renew(member)
        timeout_ms = max((m.join.rebalance_timeout_ms for m in self.members.values()), default=0)
        loop = asyncio.get_running_loop()
        self._round = loop.call_later(timeout_ms / 1000, self._end_round)

    def _end_round(self) -> None:
        for member in [each for each in self.members.values() if each.joining is None]:
            self._remove(member)
        self._complete_if_all_joined()

    def _complete_if_all_joined(self) -> None:
        members = list(self.members.values())
        if self.state != PREPARING or any(each.joining is None for each in members):
            return
        if self._round is not None:
            self._round.cancel()
        if not members:
            self.state, self.protocol_name, self.leader = EMPTY, "", ""
            return
        self.generation_id += 1
        self.state = COMPLETING
        self.protocol_name = self._common(members)[0]
        self.leader = self.leader if self.leader in self.members else members[0].member_id
        for member in members:
            joining, member.joining = member.joining, None
            is_leader = member.member_id == self.leader
            _answer(joining, self._joined(member, tells_members=is_leader))
            self._renew(member)

    def _common(self, members: list[GroupMember]) -> list[str]:
        first, *rest = members
        return [name for name in first.names if all(name in each.names for each in rest)]

    def _joined(self, member: GroupMember, *, tells_members: bool = False) -> JoinGroupResponse:
        members = self.members.values() if tells_members else ()
        return JoinGroupResponse(
            generation_id=self.generation_id,
            protocol_type=member.join.protocol_type,
            protocol_name=self.protocol_name,
            leader=self.leader,
            member_id=member.member_id,
            members=[
                JoinGroupResponseMember(
                    each.member_id, each.join.group_instance_id, each.metadata(self.protocol_name)
                )
                for each in members
            ],
        )

    # -- SyncGroup, Heartbeat, LeaveGroup ----------------------------------------------------------

    def refusal(self, member_id: str, generation_id: int, instance_id: str | None = None) -> int:
        """Return why this is no member in this generation, or 0."""
        holder = self._holder(instance_id)
        if holder is not None and holder.member_id != member_id:
            return code("FENCED_INSTANCE_ID")
        if member_id not in self.members:
            return code("UNKNOWN_MEMBER_ID")
        return 0 if generation_id == self.generation_id else code("ILLEGAL_GENERATION")

    def sync(self, request: SyncGroupRequest) -> Awaitable[SyncGroupResponse]:
        """Answer SyncGroup once the leader has assigned."""
        error = self.refusal(request.member_id, request.generation_id, request.group_instance_id)
        if not error and self.state == PREPARING:
            error = code("REBALANCE_IN_PROGRESS")
        if not error and request.protocol_name not in (None, self.protocol_name):
            error = code("INCONSISTENT_GROUP_PROTOCOL")
        if error:
            return _now(SyncGroupResponse(error_code=error))
        member = self.members[request.member_id]
        self._renew(member)
        if self.state == STABLE:
            return _now(self._synced(member))
        syncing = member.syncing = asyncio.get_running_loop().create_future()
        if request.member_id == self.leader:
            self.state = STABLE
            assigned = {each.member_id: each.assignment for each in request.assignments}
            for each in self.members.values():
                each.assignment = assigned.get(each.member_id, b"")
                _answer(each.syncing, self._synced(each))
                each.syncing = None
        return syncing

    def _synced(self, member: GroupMember) -> SyncGroupResponse:
        return SyncGroupResponse(
            protocol_type=member.join.protocol_type,
            protocol_name=self.protocol_name,
            assignment=member.assignment,
        )

    def heartbeat(self, request: HeartbeatRequest) -> HeartbeatResponse:
        """Renew the session of a member, and say whether it must join again."""
        error = self.refusal(request.member_id, request.generation_id, request.group_instance_id)
        if not error:
            self._renew(self.members[request.member_id])
            error = code("REBALANCE_IN_PROGRESS") if self.state == PREPARING else 0
        return HeartbeatResponse(error_code=error)

    def leave(self, request: LeaveGroupRequest) -> LeaveGroupResponse:
        """Remove members that leave."""
        if not request.members:
            return LeaveGroupResponse(error_code=self._leave(request.member_id, None))
        return LeaveGroupResponse(
            members=[
                MemberResponse(
                    each.member_id,
                    each.group_instance_id,
                    self._leave(each.member_id, each.group_instance_id),
                )
                for each in request.members
            ]
        )

    def _leave(self, member_id: str, instance_id: str | None) -> int:
        if member_id in self.pending:
            self.pending.discard(member_id)
            return 0
        holder = self._holder(instance_id)
        if holder is not None and member_id not in ("", holder.member_id):
            return code("FENCED_INSTANCE_ID")
        member = holder or (None if instance_id else self.members.get(member_id))
        if member is None:
            return code("UNKNOWN_MEMBER_ID")
        self.drop(member.member_id)
        return 0

    def drop(self, member_id: str) -> None:
        """Remove a member. The others join again."""
        member = self.members.get(member_id)
        if member is not None:
            self._remove(member)
            self._prepare()
            self._complete_if_all_joined()

    def gather(self) -> None:
        """Make all members join again."""
        self._prepare()

    def _remove(self, member: GroupMember) -> None:
        del self.members[member.member_id]
        if member.session is not None:
            member.session.cancel()
        unknown = code("UNKNOWN_MEMBER_ID")
        _answer(member.joining, JoinGroupResponse(error_code=unknown))
        _answer(member.syncing, SyncGroupResponse(error_code=unknown))

    def _renew(self, member: GroupMember) -> None:
        """Restart the member's session timeout."""
        if member.session is not None:
            member.session.cancel()
        seconds = member.join.session_timeout_ms / 1000
        loop = asyncio.get_running_loop()
        member.session = loop.call_later(seconds, self._expire, member)

    def _expire(self, member: GroupMember) -> None:
        if member.joining is None and member.syncing is None:
            self.drop(member.member_id)

    def commit_refusal(self, request: OffsetCommitRequest) -> int:
        """Return why a commit is refused, or 0."""
        generation_id = request.generation_id_or_member_epoch
        if generation_id < 0 and not self.members:
            return 0
        error = self.refusal(request.member_id, generation_id, request.group_instance_id)
        return error or (code("REBALANCE_IN_PROGRESS") if self.state == COMPLETING else 0)


def _answer(waiting: "asyncio.Future[Any] | None", response: Response) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(response)


async def _now(response: R) -> R:
    return response


def _at(
    cluster: MemoryCluster, node_id: int, request: Any, response_type: type[Any]
) -> "MemoryGroup | Response":
    """Return the group, if this node coordinates it. Create it for a new member."""
    wrong = cluster.coordinator(request.group_id) != node_id
    error = cluster.refusal or (code("NOT_COORDINATOR") if wrong else 0)
    if error:
        refused: Response = response_type(error_code=error)
        return refused
    group: MemoryGroup = cluster.groups.get(request.group_id) or MemoryGroup()
    if response_type is JoinGroupResponse and not request.member_id:
        cluster.groups[request.group_id] = group
    return group


Handled = Response | Action | Awaitable[Response]
Handler = Callable[[MemoryCluster, int, Any, int], Handled]


def join_group(
    cluster: MemoryCluster, node_id: int, request: JoinGroupRequest, version: int
) -> Handled:
    """v0-9. From v4 on, members ask for an id first. From v9 on, a leader may skip assigning."""
    group = _at(cluster, node_id, request, JoinGroupResponse)
    return group if isinstance(group, Response) else group.join(request, version)


def sync_group(
    cluster: MemoryCluster, node_id: int, request: SyncGroupRequest, version: int
) -> Handled:
    """v0-5."""
    group = _at(cluster, node_id, request, SyncGroupResponse)
    return group if isinstance(group, Response) else group.sync(request)


def heartbeat(
    cluster: MemoryCluster, node_id: int, request: HeartbeatRequest, version: int
) -> Handled:
    """v0-4."""
    group = _at(cluster, node_id, request, HeartbeatResponse)
    return group if isinstance(group, Response) else group.heartbeat(request)


def leave_group(
    cluster: MemoryCluster, node_id: int, request: LeaveGroupRequest, version: int
) -> Handled:
    """v0-2: one member. v3-5: several members."""
    group = _at(cluster, node_id, request, LeaveGroupResponse)
    return group if isinstance(group, Response) else group.leave(request)


GROUP_HANDLERS: dict[type[Request[Any]], Handler] = {
    JoinGroupRequest: join_group,
    SyncGroupRequest: sync_group,
    HeartbeatRequest: heartbeat,
    LeaveGroupRequest: leave_group,
}
