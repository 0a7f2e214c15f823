"""A producer's requests for its transaction: AddPartitionsToTxn, AddOffsetsToTxn, EndTxn (KIP-98).

TxnOffsetCommit goes to the group's coordinator. The versions of these requests choose the
transaction's generation (KIP-890).
"""

import uuid

from spark_kafka_source.protocol.declaration import Request, Response, array, message, wire
from spark_kafka_source.protocol.wire import BOOLEAN, INT16, INT32, INT64, STRING, UUID


@message
class AddPartitionsToTxnPartitionResult:
    """Result for one partition."""

    partition_index: int = wire(INT32, "0+")
    partition_error_code: int = wire(INT16, "0+")


@message
class AddPartitionsToTxnTopicResult:
    """Partitions of one topic."""

    name: str = wire(STRING, "0+")
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = wire(
        array(AddPartitionsToTxnPartitionResult), "0+"
    )


@message
class AddPartitionsToTxnResponse(Response):
    """Results for each partition."""

    throttle_time_ms: int = wire(INT32, "0+")
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = wire(
        array(AddPartitionsToTxnTopicResult), "0-3"
    )


@message
class AddPartitionsToTxnTopic:
    """Partitions of one topic."""

    name: str = wire(STRING, "0+")
    partitions: list[int] = wire(array(INT32), "0+")


@message
class AddPartitionsToTxnRequest(Request[AddPartitionsToTxnResponse]):
    """Request to add partitions to the transaction. v4 and later are for brokers."""

    KEY, VERSIONS, FLEXIBLE = 24, "0-3", "3+"
    v3_and_below_transactional_id: str = wire(STRING, "0-3")
    v3_and_below_producer_id: int = wire(INT64, "0-3")
    v3_and_below_producer_epoch: int = wire(INT16, "0-3")
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = wire(array(AddPartitionsToTxnTopic), "0-3")


@message
class AddOffsetsToTxnResponse(Response):
    """Answer that says whether the group's offsets are in the transaction."""

    throttle_time_ms: int = wire(INT32, "0+")
    error_code: int = wire(INT16, "0+")


@message
class AddOffsetsToTxnRequest(Request[AddOffsetsToTxnResponse]):
    """Request to add the group's offsets to the transaction."""

    KEY, VERSIONS, FLEXIBLE = 25, "0-4", "3+"
    transactional_id: str = wire(STRING, "0+")
    producer_id: int = wire(INT64, "0+")
    producer_epoch: int = wire(INT16, "0+")
    group_id: str = wire(STRING, "0+")


@message
class EndTxnResponse(Response):
    """Answer that says whether the end is decided. From v5 on it has the next id and epoch."""

    throttle_time_ms: int = wire(INT32, "0+")
    error_code: int = wire(INT16, "0+")
    producer_id: int = wire(INT64, "5+", default=-1, ignorable=True)
    producer_epoch: int = wire(INT16, "5+", default=-1, ignorable=True)


@message
class EndTxnRequest(Request[EndTxnResponse]):
    """Request to commit or abort the transaction."""

    KEY, VERSIONS, FLEXIBLE = 26, "0-5", "3+"
    transactional_id: str = wire(STRING, "0+")
    producer_id: int = wire(INT64, "0+")
    producer_epoch: int = wire(INT16, "0+")
    committed: bool = wire(BOOLEAN, "0+")


@message
class TxnOffsetCommitResponsePartition:
    """Result for one partition."""

    partition_index: int = wire(INT32, "0+")
    error_code: int = wire(INT16, "0+")


@message
class TxnOffsetCommitResponseTopic:
    """Partitions of one topic, by name (up to v5) or by id (from v6 on, KIP-1319)."""

    name: str = wire(STRING, "0-5", ignorable=True)
    topic_id: uuid.UUID = wire(UUID, "6+", ignorable=True)
    partitions: list[TxnOffsetCommitResponsePartition] = wire(
        array(TxnOffsetCommitResponsePartition), "0+"
    )


@message
class TxnOffsetCommitResponse(Response):
    """Results for each partition."""

    throttle_time_ms: int = wire(INT32, "0+")
    topics: list[TxnOffsetCommitResponseTopic] = wire(array(TxnOffsetCommitResponseTopic), "0+")


@message
class TxnOffsetCommitRequestPartition:
    """Offset to commit for one partition: the offset of the next record to read."""

    partition_index: int = wire(INT32, "0+")
    committed_offset: int = wire(INT64, "0+")
    committed_leader_epoch: int = wire(INT32, "2+", default=-1, ignorable=True)
    committed_metadata: str | None = wire(STRING, "0+", nullable="0+")


@message
class TxnOffsetCommitRequestTopic:
    """Partitions of one topic, by name (up to v5) or by id (from v6 on, KIP-1319)."""

    name: str = wire(STRING, "0-5", ignorable=True)
    topic_id: uuid.UUID = wire(UUID, "6+", ignorable=True)
    partitions: list[TxnOffsetCommitRequestPartition] = wire(
        array(TxnOffsetCommitRequestPartition), "0+"
    )


@message
class TxnOffsetCommitRequest(Request[TxnOffsetCommitResponse]):
    """Request to store these offsets of the group when the transaction commits."""

    KEY, VERSIONS, FLEXIBLE = 28, "0-6", "3+"
    transactional_id: str = wire(STRING, "0+")
    group_id: str = wire(STRING, "0+")
    producer_id: int = wire(INT64, "0+")
    producer_epoch: int = wire(INT16, "0+")
    generation_id_or_member_epoch: int = wire(INT32, "3+", default=-1)
    member_id: str = wire(STRING, "3+")
    group_instance_id: str | None = wire(STRING, "3+", nullable="3+", default=None)
    topics: list[TxnOffsetCommitRequestTopic] = wire(array(TxnOffsetCommitRequestTopic), "0+")
