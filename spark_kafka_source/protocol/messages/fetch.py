"""Fetch (KIP-227, KIP-320, KIP-392): records from a partition's leader, or a close replica."""

import uuid

from spark_kafka_source.protocol.declaration import Request, Response, array, message, wire
from spark_kafka_source.protocol.wire import (
    INT8,
    INT16,
    INT32,
    INT64,
    RECORDS,
    STRING,
    UUID,
    Records,
)

# The value from a follower that does not know the field.
_NO_HIGH_WATERMARK = 0x7FFFFFFFFFFFFFFF


@message
class EpochEndOffset:
    """Point where the logs diverge: the largest common epoch and its end."""

    epoch: int = wire(INT32, "12+", default=-1)
    end_offset: int = wire(INT64, "12+", default=-1)


@message
class LeaderIdAndEpoch:
    """Current leader of the partition, as far as the broker knows."""

    leader_id: int = wire(INT32, "12+", default=-1)
    leader_epoch: int = wire(INT32, "12+", default=-1)


@message
class SnapshotId:
    """Snapshot to fetch instead. Only for brokers."""

    end_offset: int = wire(INT64, "0+", default=-1)
    epoch: int = wire(INT32, "0+", default=-1)


@message
class AbortedTransaction:
    """Aborted transaction that affects the records, for READ_COMMITTED."""

    producer_id: int = wire(INT64, "4+")
    first_offset: int = wire(INT64, "4+")


@message
class PartitionData:
    """Records of one partition, as a view of the response, and its offsets."""

    partition_index: int = wire(INT32, "0+")
    error_code: int = wire(INT16, "0+")
    high_watermark: int = wire(INT64, "0+")
    last_stable_offset: int = wire(INT64, "4+", default=-1, ignorable=True)
    log_start_offset: int = wire(INT64, "5+", default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset = wire(EpochEndOffset, "12+", tag=0, tagged="12+")
    current_leader: LeaderIdAndEpoch = wire(LeaderIdAndEpoch, "12+", tag=1, tagged="12+")
    snapshot_id: SnapshotId = wire(SnapshotId, "12+", tag=2, tagged="12+")
    aborted_transactions: list[AbortedTransaction] | None = wire(
        array(AbortedTransaction), "4+", nullable="4+", ignorable=True
    )
    preferred_read_replica: int = wire(INT32, "11+", default=-1)
    records: Records | None = wire(RECORDS, "0+", nullable="0+")


@message
class FetchableTopicResponse:
    """Partitions of one topic."""

    topic: str = wire(STRING, "0-12", ignorable=True)
    topic_id: uuid.UUID = wire(UUID, "13+", ignorable=True)
    partitions: list[PartitionData] = wire(array(PartitionData), "0+")


@message
class NodeEndpoint:
    """Address of a leader that `current_leader` names."""

    node_id: int = wire(INT32, "16+")
    host: str = wire(STRING, "16+")
    port: int = wire(INT32, "16+")
    rack: str | None = wire(STRING, "16+", nullable="16+", default=None)


@message
class FetchResponse(Response):
    """Records of partitions. The last batch of a partition is often cut."""

    throttle_time_ms: int = wire(INT32, "1+", ignorable=True)
    error_code: int = wire(INT16, "7+", ignorable=True)
    session_id: int = wire(INT32, "7+")
    responses: list[FetchableTopicResponse] = wire(array(FetchableTopicResponse), "0+")
    node_endpoints: list[NodeEndpoint] = wire(array(NodeEndpoint), "16+", tag=0, tagged="16+")


@message
class ReplicaState:
    """Replica that sends the request. Only for brokers."""

    replica_id: int = wire(INT32, "15+", default=-1)
    replica_epoch: int = wire(INT64, "15+", default=-1)


@message
class FetchPartition:
    """Partition, and the offset to begin with."""

    partition: int = wire(INT32, "0+")
    current_leader_epoch: int = wire(INT32, "9+", default=-1, ignorable=True)
    fetch_offset: int = wire(INT64, "0+")
    last_fetched_epoch: int = wire(INT32, "12+", default=-1)
    log_start_offset: int = wire(INT64, "5+", default=-1, ignorable=True)
    partition_max_bytes: int = wire(INT32, "0+")
    replica_directory_id: uuid.UUID = wire(UUID, "17+", tag=0, tagged="17+", ignorable=True)
    high_watermark: int = wire(
        INT64, "18+", tag=1, tagged="18+", default=_NO_HIGH_WATERMARK, ignorable=True
    )


@message
class FetchTopic:
    """Topic by name (up to v12) or by id (from v13 on). Set both: each version uses its own."""

    topic: str = wire(STRING, "0-12", ignorable=True)
    topic_id: uuid.UUID = wire(UUID, "13+", ignorable=True)
    partitions: list[FetchPartition] = wire(array(FetchPartition), "0+")


@message
class ForgottenTopic:
    """Partitions to leave out of the fetch session from now on."""

    topic: str = wire(STRING, "7-12", ignorable=True)
    topic_id: uuid.UUID = wire(UUID, "13+", ignorable=True)
    partitions: list[int] = wire(array(INT32), "7+")


@message
class FetchRequest(Request[FetchResponse]):
    """Request for records from these offsets on.

    A consumer leaves `replica_id` and `replica_state` at their defaults.
    """

    KEY, VERSIONS, FLEXIBLE = 1, "4-18", "12+"
    cluster_id: str | None = wire(
        STRING, "12+", nullable="12+", tag=0, tagged="12+", default=None, ignorable=True
    )
    replica_id: int = wire(INT32, "0-14", default=-1)
    replica_state: ReplicaState = wire(ReplicaState, "15+", tag=1, tagged="15+")
    max_wait_ms: int = wire(INT32, "0+")
    min_bytes: int = wire(INT32, "0+")
    max_bytes: int = wire(INT32, "3+", default=0x7FFFFFFF, ignorable=True)
    isolation_level: int = wire(INT8, "4+", ignorable=True)
    session_id: int = wire(INT32, "7+", ignorable=True)
    session_epoch: int = wire(INT32, "7+", default=-1, ignorable=True)
    topics: list[FetchTopic] = wire(array(FetchTopic), "0+")
    forgotten_topics_data: list[ForgottenTopic] = wire(array(ForgottenTopic), "7+")
    rack_id: str = wire(STRING, "11+", ignorable=True)
