"""Offsets of a group: OffsetCommit, OffsetFetch (KIP-709)."""

import uuid

from spark_kafka_source.protocol.declaration import Request, Response, array, message, wire
from spark_kafka_source.protocol.wire import BOOLEAN, INT16, INT32, INT64, STRING, UUID


@message
class OffsetCommitResponsePartition:
    """Result for one partition."""

    partition_index: int = wire(INT32, "0+")
    error_code: int = wire(INT16, "0+")


@message
class OffsetCommitResponseTopic:
    """Partitions of one topic."""

    name: str = wire(STRING, "0-9", ignorable=True)
    topic_id: uuid.UUID = wire(UUID, "10+", ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = wire(
        array(OffsetCommitResponsePartition), "0+"
    )


@message
class OffsetCommitResponse(Response):
    """Results for each partition."""

    throttle_time_ms: int = wire(INT32, "3+", ignorable=True)
    topics: list[OffsetCommitResponseTopic] = wire(array(OffsetCommitResponseTopic), "0+")


@message
class OffsetCommitRequestPartition:
    """Offset to commit for one partition: the offset of the next record to read."""

    partition_index: int = wire(INT32, "0+")
    committed_offset: int = wire(INT64, "0+")
    committed_leader_epoch: int = wire(INT32, "6+", default=-1, ignorable=True)
    committed_metadata: str | None = wire(STRING, "0+", nullable="0+")


@message
class OffsetCommitRequestTopic:
    """Topic by name (up to v9) or by id (from v10 on)."""

    name: str = wire(STRING, "0-9", ignorable=True)
    topic_id: uuid.UUID = wire(UUID, "10+", ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = wire(array(OffsetCommitRequestPartition), "0+")


@message
class OffsetCommitRequest(Request[OffsetCommitResponse]):
    """Request to store these offsets of the group."""

    KEY, VERSIONS, FLEXIBLE = 8, "2-10", "8+"
    group_id: str = wire(STRING, "0+")
    generation_id_or_member_epoch: int = wire(INT32, "1+", default=-1, ignorable=True)
    member_id: str = wire(STRING, "1+", ignorable=True)
    group_instance_id: str | None = wire(STRING, "7+", nullable="7+", default=None)
    retention_time_ms: int = wire(INT64, "2-4", default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = wire(array(OffsetCommitRequestTopic), "0+")


@message
class OffsetFetchResponsePartition:
    """Committed offset of one partition, -1 if there is none (up to v7)."""

    partition_index: int = wire(INT32, "0-7")
    committed_offset: int = wire(INT64, "0-7")
    committed_leader_epoch: int = wire(INT32, "5-7", default=-1, ignorable=True)
    metadata: str | None = wire(STRING, "0-7", nullable="0-7")
    error_code: int = wire(INT16, "0-7")


@message
class OffsetFetchResponseTopic:
    """Partitions of one topic (up to v7)."""

    name: str = wire(STRING, "0-7")
    partitions: list[OffsetFetchResponsePartition] = wire(
        array(OffsetFetchResponsePartition), "0-7"
    )


@message
class OffsetFetchResponsePartitions:
    """Committed offset of one partition, -1 if there is none (from v8 on)."""

    partition_index: int = wire(INT32, "8+")
    committed_offset: int = wire(INT64, "8+")
    committed_leader_epoch: int = wire(INT32, "8+", default=-1, ignorable=True)
    metadata: str | None = wire(STRING, "8+", nullable="8+")
    error_code: int = wire(INT16, "8+")


@message
class OffsetFetchResponseTopics:
    """Partitions of one topic (from v8 on)."""

    name: str = wire(STRING, "8-9", ignorable=True)
    topic_id: uuid.UUID = wire(UUID, "10+", ignorable=True)
    partitions: list[OffsetFetchResponsePartitions] = wire(
        array(OffsetFetchResponsePartitions), "8+"
    )


@message
class OffsetFetchResponseGroup:
    """Offsets of one group."""

    group_id: str = wire(STRING, "8+")
    topics: list[OffsetFetchResponseTopics] = wire(array(OffsetFetchResponseTopics), "8+")
    error_code: int = wire(INT16, "8+")


@message
class OffsetFetchResponse(Response):
    """Offsets of one group, or from v8 on of each group."""

    throttle_time_ms: int = wire(INT32, "3+", ignorable=True)
    topics: list[OffsetFetchResponseTopic] = wire(array(OffsetFetchResponseTopic), "0-7")
    error_code: int = wire(INT16, "2-7", ignorable=True)
    groups: list[OffsetFetchResponseGroup] = wire(array(OffsetFetchResponseGroup), "8+")


@message
class OffsetFetchRequestTopic:
    """Partitions of one topic (up to v7)."""

    name: str = wire(STRING, "0-7")
    partition_indexes: list[int] = wire(array(INT32), "0-7")


@message
class OffsetFetchRequestTopics:
    """Partitions of one topic (from v8 on), by name (up to v9) or by id (from v10 on)."""

    name: str = wire(STRING, "8-9", ignorable=True)
    topic_id: uuid.UUID = wire(UUID, "10+", ignorable=True)
    partition_indexes: list[int] = wire(array(INT32), "8+")


@message
class OffsetFetchRequestGroup:
    """Group. Null topics mean all topics with committed offsets."""

    group_id: str = wire(STRING, "8+")
    member_id: str | None = wire(STRING, "9+", nullable="9+", default=None, ignorable=True)
    member_epoch: int = wire(INT32, "9+", default=-1, ignorable=True)
    topics: list[OffsetFetchRequestTopics] | None = wire(
        array(OffsetFetchRequestTopics), "8+", nullable="8+"
    )


@message
class OffsetFetchRequest(Request[OffsetFetchResponse]):
    """Request for a group's committed offsets, or from v8 on of several groups (KIP-709)."""

    KEY, VERSIONS, FLEXIBLE = 9, "1-10", "6+"
    group_id: str = wire(STRING, "0-7")
    topics: list[OffsetFetchRequestTopic] | None = wire(
        array(OffsetFetchRequestTopic), "0-7", nullable="2-7"
    )
    groups: list[OffsetFetchRequestGroup] = wire(array(OffsetFetchRequestGroup), "8+")
    require_stable: bool = wire(BOOLEAN, "7+")
