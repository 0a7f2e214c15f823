"""The coordinator's answers to admin clients: describe, list and delete groups and offsets."""

from typing import Any
from uuid import UUID

from spark_kafka_source.protocol import Request
from spark_kafka_source.protocol.messages import consumer_group_describe as messages
from spark_kafka_source.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from spark_kafka_source.protocol.messages.group_admin import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from spark_kafka_source.testing.memory.answers import code
from spark_kafka_source.testing.memory.cluster import MemoryCluster
from spark_kafka_source.testing.memory.consumer_coordinator import ConsumerGroup, Owned
from spark_kafka_source.testing.memory.coordinator import EMPTY, STABLE, Handler, MemoryGroup
from spark_kafka_source.topic_partition import TopicPartition

CLIENT_ID, HOST = "client", "/127.0.0.1"

_ERROR_FOR_UNKNOWN_SINCE = 6
_BY_KIP_848 = 1
"""A member's type (KIP-1099)."""


def _refusal(cluster: MemoryCluster, node_id: int, group_id: str) -> int:
    wrong = cluster.coordinator(group_id) != node_id
    return cluster.refusal or (code("NOT_COORDINATOR") if wrong else 0)


def _group(cluster: MemoryCluster, group_id: str) -> MemoryGroup | None:
    """Return the classic group, which has members or only offsets; None where there is neither."""
    if group_id in cluster.consumer_groups:
        return None
    found: MemoryGroup | None = cluster.groups.get(group_id)
    return found or (MemoryGroup() if cluster.has_offsets(group_id) else None)


def list_groups(
    cluster: MemoryCluster, node_id: int, request: ListGroupsRequest, version: int
) -> ListGroupsResponse:
    """v0-5: states from v4 on, types from v5 on."""
    if cluster.refusal:
        return ListGroupsResponse(error_code=cluster.refusal)
    groups = []
    for group_id in {*cluster.groups, *cluster.committed, *cluster.pending}:
        group = _group(cluster, group_id)
        if group is None or cluster.coordinator(group_id) != node_id:
            continue
        groups.append(ListedGroup(group_id, group.protocol_type, group.state, "classic"))
    for group_id, consumers in cluster.consumer_groups.items():
        if cluster.coordinator(group_id) == node_id:
            groups.append(ListedGroup(group_id, "consumer", consumers.state, "consumer"))
    return ListGroupsResponse(
        groups=[
            each
            for each in groups
            if each.group_state in (request.states_filter or [each.group_state])
            and each.group_type in (request.types_filter or [each.group_type])
        ]
    )


def describe_groups(
    cluster: MemoryCluster, node_id: int, request: DescribeGroupsRequest, version: int
) -> DescribeGroupsResponse:
    """v0-6. A missing group is Dead, and from v6 on an error (KIP-1043)."""
    return DescribeGroupsResponse(
        groups=[_describe(cluster, node_id, each, version) for each in request.groups]
    )


def _describe(cluster: MemoryCluster, node_id: int, group_id: str, version: int) -> DescribedGroup:
    refusal = _refusal(cluster, node_id, group_id)
    group = _group(cluster, group_id)
    if refusal or group is None:
        unknown = code("GROUP_ID_NOT_FOUND") if version >= _ERROR_FOR_UNKNOWN_SINCE else 0
        return DescribedGroup(refusal or unknown, group_id=group_id, group_state="Dead")
    stable = group.state == STABLE
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol_name if stable else "",
        members=[
            DescribedGroupMember(
                each.member_id,
                each.join.group_instance_id,
                CLIENT_ID,
                HOST,
                each.metadata(group.protocol_name) if stable else b"",
                each.assignment,
            )
            for each in group.members.values()
        ],
    )


def consumer_group_describe(
    cluster: MemoryCluster, node_id: int, request: ConsumerGroupDescribeRequest, version: int
) -> ConsumerGroupDescribeResponse:
    """v0-1. A classic group is not found."""
    return ConsumerGroupDescribeResponse(
        groups=[_describe_consumers(cluster, node_id, each) for each in request.group_ids]
    )


def _describe_consumers(
    cluster: MemoryCluster, node_id: int, group_id: str
) -> messages.DescribedGroup:
    group: ConsumerGroup | None = cluster.consumer_groups.get(group_id)
    refusal = _refusal(cluster, node_id, group_id)
    if refusal or group is None:
        return messages.DescribedGroup(refusal or code("GROUP_ID_NOT_FOUND"), group_id=group_id)
    return messages.DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.epoch,
        assignor_name="uniform",
        members=[
            messages.Member(
                member_id=each.member_id,
                instance_id=each.instance_id,
                member_epoch=each.epoch,
                client_id=CLIENT_ID,
                client_host=HOST,
                subscribed_topic_names=each.topics,
                subscribed_topic_regex=each.regex,
                assignment=_assignment(cluster, each.owned | each.assigned),
                target_assignment=_assignment(cluster, group.targets[each.member_id]),
                member_type=_BY_KIP_848,
            )
            for each in group.members.values()
        ],
    )


def _assignment(cluster: MemoryCluster, owned: Owned) -> messages.Assignment:
    found: dict[UUID, list[int]] = {}
    for topic_id, partition in sorted(owned):
        found.setdefault(topic_id, []).append(partition)
    return messages.Assignment(
        [
            messages.TopicPartitions(topic_id, cluster.name_of(topic_id) or "", partitions)
            for topic_id, partitions in found.items()
        ]
    )


def delete_groups(
    cluster: MemoryCluster, node_id: int, request: DeleteGroupsRequest, version: int
) -> DeleteGroupsResponse:
    """v0-2."""
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(each, _delete(cluster, node_id, each))
            for each in request.groups_names
        ]
    )


def _delete(cluster: MemoryCluster, node_id: int, group_id: str) -> int:
    group = cluster.consumer_groups.get(group_id) or _group(cluster, group_id)
    if refusal := _refusal(cluster, node_id, group_id):
        return refusal
    if group is None:
        return code("GROUP_ID_NOT_FOUND")
    if group.state != EMPTY:
        return code("NON_EMPTY_GROUP")
    cluster.groups.pop(group_id, None)
    cluster.consumer_groups.pop(group_id, None)
    cluster.committed.pop(group_id, None)
    cluster.pending.pop(group_id, None)
    return 0


def offset_delete(
    cluster: MemoryCluster, node_id: int, request: OffsetDeleteRequest, version: int
) -> OffsetDeleteResponse:
    """v0. A topic counts as subscribed to as soon as the group has any member."""
    group = cluster.consumer_groups.get(request.group_id) or _group(cluster, request.group_id)
    unknown = code("GROUP_ID_NOT_FOUND") if group is None else 0
    if error := _refusal(cluster, node_id, request.group_id) or unknown:
        return OffsetDeleteResponse(error)
    subscribed = code("GROUP_SUBSCRIBED_TO_TOPIC") if group and group.members else 0
    topics = []
    for topic in request.topics:
        partitions = []
        for each in topic.partitions:
            where = TopicPartition(topic.name, each.partition_index)
            unknown = code("UNKNOWN_TOPIC_OR_PARTITION") if cluster.log(*where) is None else 0
            error = unknown or subscribed
            if not error:
                cluster.committed.get(request.group_id, {}).pop(where, None)
            partitions.append(OffsetDeleteResponsePartition(each.partition_index, error))
        topics.append(OffsetDeleteResponseTopic(topic.name, partitions))
    return OffsetDeleteResponse(topics=topics)


GROUP_ADMIN_HANDLERS: dict[type[Request[Any]], Handler] = {
    ListGroupsRequest: list_groups,
    DescribeGroupsRequest: describe_groups,
    ConsumerGroupDescribeRequest: consumer_group_describe,
    DeleteGroupsRequest: delete_groups,
    OffsetDeleteRequest: offset_delete,
}
