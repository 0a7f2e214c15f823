"""A group's offsets: commits, fetches, and offsets pending in a transaction (KIP-447)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from spark_kafka_source.protocol import Request
from spark_kafka_source.protocol.messages.groups import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from spark_kafka_source.protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from spark_kafka_source.testing.memory.answers import code
from spark_kafka_source.testing.memory.cluster import MemoryCluster, Pending
from spark_kafka_source.testing.memory.consumer_coordinator import KIP_848_COMMIT, ConsumerGroup
from spark_kafka_source.testing.memory.coordinator import Handler, MemoryGroup
from spark_kafka_source.testing.memory.transactions import offsets_error
from spark_kafka_source.topic_partition import TopicPartition

# From this version on, offsets join their transaction without an announcement (KIP-890).
_ADDS_GROUP = 5


def offset_commit(
    cluster: MemoryCluster, node_id: int, request: OffsetCommitRequest, version: int
) -> OffsetCommitResponse:
    """v2-9, by topic name. If the group has members, only a member may commit.

    A missing partition has an error of its own, whatever the state of the group.
    """
    assert version <= 9, "by id from v10 on, which no client here asks for"
    refusal = _wrong_coordinator(cluster, node_id, request.group_id)
    refusal = refusal or _commit_refusal(cluster, request, version)
    topics = []
    for topic in request.topics:
        partitions = []
        for each in topic.partitions:
            where = TopicPartition(topic.name, each.partition_index)
            error = cluster.refusal or _offset_error(cluster, where, each) or refusal
            if not error:
                cluster.commit(request.group_id, where, _pending(cluster, each))
            partitions.append(OffsetCommitResponsePartition(each.partition_index, error))
        topics.append(OffsetCommitResponseTopic(topic.name, partitions=partitions))
    return OffsetCommitResponse(topics=topics)


def _offset_error(
    cluster: MemoryCluster,
    where: TopicPartition,
    found: OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition,
) -> int:
    """Return why one offset is refused, or 0."""
    if cluster.log(*where) is None:
        return code("UNKNOWN_TOPIC_OR_PARTITION")
    # Java's length of a text is that in UTF-16.
    size = len((found.committed_metadata or "").encode("utf-16-le")) // 2
    is_long = size > int(cluster.broker_settings["offset.metadata.max.bytes"])
    return code("OFFSET_METADATA_TOO_LARGE") if is_long else 0


def _pending(
    cluster: MemoryCluster,
    found: OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition,
) -> Pending:
    metadata = found.committed_metadata or ""
    commit = next(cluster.commits)
    return Pending(found.committed_offset, commit, metadata, found.committed_leader_epoch)


def _commit_refusal(cluster: MemoryCluster, request: OffsetCommitRequest, version: int) -> int:
    if request.group_id in cluster.consumer_groups:
        group: ConsumerGroup = cluster.consumer_groups[request.group_id]
        return group.commit_refusal(request, version)
    is_known = request.group_id in {*cluster.groups, *cluster.committed}
    if not is_known and request.generation_id_or_member_epoch >= 0:
        return code("GROUP_ID_NOT_FOUND" if version >= KIP_848_COMMIT else "ILLEGAL_GENERATION")
    classic: MemoryGroup = cluster.groups.get(request.group_id) or MemoryGroup()
    return classic.commit_refusal(request)


def offset_fetch(
    cluster: MemoryCluster, node_id: int, request: OffsetFetchRequest, version: int
) -> OffsetFetchResponse:
    """v1-7: one group. v8-9: several groups. Topics go by name. -1 means no committed offset."""
    assert version <= 9, "by id from v10 on, which no client here asks for"
    if version >= 8:
        return OffsetFetchResponse(
            groups=[
                _committed_of_group(cluster, node_id, each, request.require_stable)
                for each in request.groups
            ]
        )
    if refusal := _wrong_coordinator(cluster, node_id, request.group_id):
        return OffsetFetchResponse(error_code=refusal)
    asked = _asked(cluster.committed.get(request.group_id, {}), request.topics)
    found = _Offsets(cluster, request.group_id, request.require_stable)
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(topic, [found.alone(topic, each) for each in partitions])
            for topic, partitions in asked.items()
        ]
    )


@dataclass(frozen=True)
class _Offsets:
    """A group's offsets. `is_stable` holds offsets back that an open transaction may change."""

    cluster: MemoryCluster
    group_id: str
    is_stable: bool

    def alone(self, topic: str, partition: int) -> OffsetFetchResponsePartition:
        return OffsetFetchResponsePartition(partition, *self._of(TopicPartition(topic, partition)))

    def of_several(self, topic: str, partition: int) -> OffsetFetchResponsePartitions:
        return OffsetFetchResponsePartitions(partition, *self._of(TopicPartition(topic, partition)))

    def _of(self, where: TopicPartition) -> tuple[int, int, str, int]:
        """Return offset, leader epoch, metadata and error code."""
        pending = self.cluster.pending.get(self.group_id, {}).values()
        if self.is_stable and any(where in offsets for offsets in pending):
            return -1, -1, "", code("UNSTABLE_OFFSET_COMMIT")
        committed = self.cluster.committed.get(self.group_id, {})
        if where not in committed:
            return -1, -1, "", 0
        key = (self.group_id, where)
        epoch = self.cluster.committed_epochs.get(key, -1)
        return committed[where], epoch, self.cluster.metadata.get(key, ""), 0


def _committed_of_group(
    cluster: MemoryCluster, node_id: int, asked: OffsetFetchRequestGroup, is_stable: bool
) -> OffsetFetchResponseGroup:
    refusal = _wrong_coordinator(cluster, node_id, asked.group_id)
    if not refusal and asked.group_id in cluster.consumer_groups and asked.member_id is not None:
        group: ConsumerGroup = cluster.consumer_groups[asked.group_id]
        refusal = group.epoch_refusal(asked.member_id, asked.member_epoch)
    if refusal:
        return OffsetFetchResponseGroup(asked.group_id, error_code=refusal)
    committed = cluster.committed.get(asked.group_id, {})
    found = _Offsets(cluster, asked.group_id, is_stable)
    return OffsetFetchResponseGroup(
        asked.group_id,
        [
            OffsetFetchResponseTopics(
                topic, partitions=[found.of_several(topic, each) for each in partitions]
            )
            for topic, partitions in _asked(committed, asked.topics).items()
        ],
    )


def _asked(
    committed: Iterable[TopicPartition],
    topics: Sequence[OffsetFetchRequestTopic | OffsetFetchRequestTopics] | None,
) -> dict[str, list[int]]:
    """Return the partitions by topic. Null topics mean all partitions with a committed offset."""
    if topics is not None:
        return {topic.name: topic.partition_indexes for topic in topics}
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(committed):
        found.setdefault(topic, []).append(partition)
    return found


def txn_offset_commit(
    cluster: MemoryCluster, node_id: int, request: TxnOffsetCommitRequest, version: int
) -> TxnOffsetCommitResponse:
    """v0-5. A client that is no member may commit, even if the group has members."""
    refusal = _wrong_coordinator(cluster, node_id, request.group_id)
    refusal = refusal or _txn_refusal(cluster, request, adds=version >= _ADDS_GROUP)
    topics = []
    for topic in request.topics:
        partitions = []
        for each in topic.partitions:
            where = TopicPartition(topic.name, each.partition_index)
            error = cluster.refusal or _offset_error(cluster, where, each) or refusal
            if not error:
                pending = cluster.pending.setdefault(request.group_id, {})
                pending.setdefault(request.producer_id, {})[where] = _pending(cluster, each)
            partitions.append(TxnOffsetCommitResponsePartition(each.partition_index, error))
        topics.append(TxnOffsetCommitResponseTopic(topic.name, partitions=partitions))
    return TxnOffsetCommitResponse(topics=topics)


def _txn_refusal(cluster: MemoryCluster, request: TxnOffsetCommitRequest, *, adds: bool) -> int:
    error = offsets_error(
        cluster,
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        request.group_id,
        adds=adds,
    )
    is_nobody = (request.generation_id_or_member_epoch, request.member_id) == (-1, "")
    if error or (is_nobody and request.group_instance_id is None):
        return error
    if request.group_id in cluster.consumer_groups:
        consumers: ConsumerGroup = cluster.consumer_groups[request.group_id]
        error = consumers.epoch_refusal(request.member_id, request.generation_id_or_member_epoch)
        return code("ILLEGAL_GENERATION") if error == code("STALE_MEMBER_EPOCH") else error
    classic: MemoryGroup | None = cluster.groups.get(request.group_id)
    if classic is None:
        return code("ILLEGAL_GENERATION") if request.generation_id_or_member_epoch >= 0 else 0
    return classic.refusal(
        request.member_id, request.generation_id_or_member_epoch, request.group_instance_id
    )


def _wrong_coordinator(cluster: MemoryCluster, node_id: int, group_id: str) -> int:
    wrong = cluster.coordinator(group_id) != node_id
    return cluster.refusal or (code("NOT_COORDINATOR") if wrong else 0)


OFFSET_HANDLERS: dict[type[Request[Any]], Handler] = {
    OffsetCommitRequest: offset_commit,
    OffsetFetchRequest: offset_fetch,
    TxnOffsetCommitRequest: txn_offset_commit,
}
