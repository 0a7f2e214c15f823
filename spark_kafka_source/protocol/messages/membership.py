"""Membership of a consumer in a group.

JoinGroup, SyncGroup, Heartbeat and LeaveGroup are the classic protocol, with static members since
KIP-345. ConsumerGroupHeartbeat is the only request of KIP-848's protocol.
"""

import uuid

from spark_kafka_source.protocol.declaration import Request, Response, array, message, wire
from spark_kafka_source.protocol.wire import BOOLEAN, BYTES, INT16, INT32, STRING, UUID


@message
class JoinGroupResponseMember:
    """Member, as described to the group's leader."""

    member_id: str = wire(STRING, "0+")
    group_instance_id: str | None = wire(STRING, "5+", nullable="5+", default=None, ignorable=True)
    metadata: bytes = wire(BYTES, "0+")


@message
class JoinGroupResponse(Response):
    """New generation, after all members have joined. Only the leader gets the list of members."""

    throttle_time_ms: int = wire(INT32, "2+", ignorable=True)
    error_code: int = wire(INT16, "0+")
    generation_id: int = wire(INT32, "0+", default=-1)
    protocol_type: str | None = wire(STRING, "7+", nullable="7+", default=None, ignorable=True)
    protocol_name: str | None = wire(STRING, "0+", nullable="7+")
    leader: str = wire(STRING, "0+")
    skip_assignment: bool = wire(BOOLEAN, "9+")
    member_id: str = wire(STRING, "0+")
    members: list[JoinGroupResponseMember] = wire(array(JoinGroupResponseMember), "0+")


@message
class JoinGroupRequestProtocol:
    """Assignor, and the member's metadata for it."""

    name: str = wire(STRING, "0+")
    metadata: bytes = wire(BYTES, "0+")


@message
class JoinGroupRequest(Request[JoinGroupResponse]):
    """Request to join the group, or to stay in it for the next generation."""

    KEY, VERSIONS, FLEXIBLE = 11, "0-9", "6+"
    group_id: str = wire(STRING, "0+")
    session_timeout_ms: int = wire(INT32, "0+")
    rebalance_timeout_ms: int = wire(INT32, "1+", default=-1, ignorable=True)
    member_id: str = wire(STRING, "0+")
    group_instance_id: str | None = wire(STRING, "5+", nullable="5+", default=None)
    protocol_type: str = wire(STRING, "0+")
    protocols: list[JoinGroupRequestProtocol] = wire(array(JoinGroupRequestProtocol), "0+")
    reason: str | None = wire(STRING, "8+", nullable="8+", default=None, ignorable=True)


@message
class SyncGroupResponse(Response):
    """Assignment of this member, made by the leader."""

    throttle_time_ms: int = wire(INT32, "1+", ignorable=True)
    error_code: int = wire(INT16, "0+")
    protocol_type: str | None = wire(STRING, "5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = wire(STRING, "5+", nullable="5+", default=None, ignorable=True)
    assignment: bytes = wire(BYTES, "0+")


@message
class SyncGroupRequestAssignment:
    """Assignment of one member, made by the leader."""

    member_id: str = wire(STRING, "0+")
    assignment: bytes = wire(BYTES, "0+")


@message
class SyncGroupRequest(Request[SyncGroupResponse]):
    """Request for this member's assignment. The leader sends all assignments with it."""

    KEY, VERSIONS, FLEXIBLE = 14, "0-5", "4+"
    group_id: str = wire(STRING, "0+")
    generation_id: int = wire(INT32, "0+")
    member_id: str = wire(STRING, "0+")
    group_instance_id: str | None = wire(STRING, "3+", nullable="3+", default=None)
    protocol_type: str | None = wire(STRING, "5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = wire(STRING, "5+", nullable="5+", default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = wire(array(SyncGroupRequestAssignment), "0+")


@message
class HeartbeatResponse(Response):
    """Answer that says whether the generation is still current."""

    throttle_time_ms: int = wire(INT32, "1+", ignorable=True)
    error_code: int = wire(INT16, "0+")


@message
class HeartbeatRequest(Request[HeartbeatResponse]):
    """Heartbeat of a member."""

    KEY, VERSIONS, FLEXIBLE = 12, "0-4", "4+"
    group_id: str = wire(STRING, "0+")
    generation_id: int = wire(INT32, "0+")
    member_id: str = wire(STRING, "0+")
    group_instance_id: str | None = wire(STRING, "3+", nullable="3+", default=None)


@message
class MemberResponse:
    """Result for one member."""

    member_id: str = wire(STRING, "3+")
    group_instance_id: str | None = wire(STRING, "3+", nullable="3+")
    error_code: int = wire(INT16, "3+")


@message
class LeaveGroupResponse(Response):
    """Result, or from v3 on results for each member."""

    throttle_time_ms: int = wire(INT32, "1+", ignorable=True)
    error_code: int = wire(INT16, "0+")
    members: list[MemberResponse] = wire(array(MemberResponse), "3+")


@message
class MemberIdentity:
    """Member that leaves, and its reason."""

    member_id: str = wire(STRING, "3+")
    group_instance_id: str | None = wire(STRING, "3+", nullable="3+", default=None)
    reason: str | None = wire(STRING, "5+", nullable="5+", default=None, ignorable=True)


@message
class LeaveGroupRequest(Request[LeaveGroupResponse]):
    """Request to leave the group, from v3 on for several members (KIP-345)."""

    KEY, VERSIONS, FLEXIBLE = 13, "0-5", "4+"
    group_id: str = wire(STRING, "0+")
    member_id: str = wire(STRING, "0-2")
    members: list[MemberIdentity] = wire(array(MemberIdentity), "3+")


@message
class TopicPartitions:
    """Partitions of one topic."""

    topic_id: uuid.UUID = wire(UUID, "0+")
    partitions: list[int] = wire(array(INT32), "0+")


@message
class Assignment:
    """Target partitions that no other member still owns."""

    topic_partitions: list[TopicPartitions] = wire(array(TopicPartitions), "0+")


@message
class ConsumerGroupHeartbeatResponse(Response):
    """Epoch of the member, and its assignment if that has changed."""

    throttle_time_ms: int = wire(INT32, "0+")
    error_code: int = wire(INT16, "0+")
    error_message: str | None = wire(STRING, "0+", nullable="0+", default=None)
    member_id: str | None = wire(STRING, "0+", nullable="0+", default=None)
    member_epoch: int = wire(INT32, "0+")
    heartbeat_interval_ms: int = wire(INT32, "0+")
    assignment: Assignment | None = wire(Assignment, "0+", nullable="0+", default=None)


@message
class ConsumerGroupHeartbeatRequest(Request[ConsumerGroupHeartbeatResponse]):
    """Heartbeat of a member, with its subscription and its partitions. Null means unchanged.

    The member's epoch is 0 to join, -1 to leave, and -2 for a static member that will return.
    """

    KEY, VERSIONS, FLEXIBLE = 68, "0-1", "0+"
    group_id: str = wire(STRING, "0+")
    member_id: str = wire(STRING, "0+")
    member_epoch: int = wire(INT32, "0+")
    instance_id: str | None = wire(STRING, "0+", nullable="0+", default=None)
    rack_id: str | None = wire(STRING, "0+", nullable="0+", default=None)
    rebalance_timeout_ms: int = wire(INT32, "0+", default=-1)
    subscribed_topic_names: list[str] | None = wire(
        array(STRING), "0+", nullable="0+", default=None
    )
    subscribed_topic_regex: str | None = wire(STRING, "1+", nullable="1+", default=None)
    server_assignor: str | None = wire(STRING, "0+", nullable="0+", default=None)
    topic_partitions: list[TopicPartitions] | None = wire(
        array(TopicPartitions), "0+", nullable="0+", default=None
    )
