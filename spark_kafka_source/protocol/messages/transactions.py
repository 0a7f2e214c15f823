"""What a producer says of its transaction: AddPartitionsToTxn, AddOffsetsToTxn, EndTxn (KIP-98).

And TxnOffsetCommit, which its group's coordinator is asked. A transaction's generation (KIP-890) is
chosen by these requests' versions.
"""

from dataclasses import dataclass

from spark_kafka_source.protocol.declaration import Request, Response, array, wire
from spark_kafka_source.protocol.wire import BOOLEAN, INT16, INT32, INT64, STRING


@dataclass(slots=True)
class AddPartitionsToTxnPartitionResult:
    """How it went for one partition."""

    partition_index: int = wire(INT32, "0+")
    partition_error_code: int = wire(INT16, "0+")


@dataclass(slots=True)
class AddPartitionsToTxnTopicResult:
    """The partitions of one topic."""

    name: str = wire(STRING, "0+")
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = wire(
        array(AddPartitionsToTxnPartitionResult), "0+"
    )


@dataclass(slots=True)
class AddPartitionsToTxnResponse(Response):
    """How it went for each partition."""

    KEY, VERSIONS, FLEXIBLE = 24, "0-3", "3+"
    throttle_time_ms: int = wire(INT32, "0+")
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = wire(
        array(AddPartitionsToTxnTopicResult), "0-3"
    )


@dataclass(slots=True)
class AddPartitionsToTxnTopic:
    """The partitions of one topic."""

    name: str = wire(STRING, "0+")
    partitions: list[int] = wire(array(INT32), "0+")


@dataclass(slots=True)
class AddPartitionsToTxnRequest(Request[AddPartitionsToTxnResponse]):
    """These partitions are about to be written to. Brokers ask each other from v4 on."""

    KEY, VERSIONS, FLEXIBLE = 24, "0-3", "3+"
    v3_and_below_transactional_id: str = wire(STRING, "0-3")
    v3_and_below_producer_id: int = wire(INT64, "0-3")
    v3_and_below_producer_epoch: int = wire(INT16, "0-3")
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = wire(array(AddPartitionsToTxnTopic), "0-3")


@dataclass(slots=True)
class AddOffsetsToTxnResponse(Response):
    """Whether the group's offsets are in the transaction."""

    KEY, VERSIONS, FLEXIBLE = 25, "0-4", "3+"
    throttle_time_ms: int = wire(INT32, "0+")
    error_code: int = wire(INT16, "0+")


@dataclass(slots=True)
class AddOffsetsToTxnRequest(Request[AddOffsetsToTxnResponse]):
    """Offsets of this group are about to be committed in the transaction."""

    KEY, VERSIONS, FLEXIBLE = 25, "0-4", "3+"
    transactional_id: str = wire(STRING, "0+")
    producer_id: int = wire(INT64, "0+")
    producer_epoch: int = wire(INT16, "0+")
    group_id: str = wire(STRING, "0+")


@dataclass(slots=True)
class EndTxnResponse(Response):
    """Whether it is decided; from v5 on with the id and epoch of the next transaction."""

    KEY, VERSIONS, FLEXIBLE = 26, "0-5", "3+"
    throttle_time_ms: int = wire(INT32, "0+")
    error_code: int = wire(INT16, "0+")
    producer_id: int = wire(INT64, "5+", default=-1, ignorable=True)
    producer_epoch: int = wire(INT16, "5+", default=-1, ignorable=True)


@dataclass(slots=True)
class EndTxnRequest(Request[EndTxnResponse]):
    """Commit the transaction, or abort it."""

    KEY, VERSIONS, FLEXIBLE = 26, "0-5", "3+"
    transactional_id: str = wire(STRING, "0+")
    producer_id: int = wire(INT64, "0+")
    producer_epoch: int = wire(INT16, "0+")
    committed: bool = wire(BOOLEAN, "0+")


@dataclass(slots=True)
class TxnOffsetCommitResponsePartition:
    """How it went for one partition."""

    partition_index: int = wire(INT32, "0+")
    error_code: int = wire(INT16, "0+")


@dataclass(slots=True)
class TxnOffsetCommitResponseTopic:
    """The partitions of one topic."""

    name: str = wire(STRING, "0+")
    partitions: list[TxnOffsetCommitResponsePartition] = wire(
        array(TxnOffsetCommitResponsePartition), "0+"
    )


@dataclass(slots=True)
class TxnOffsetCommitResponse(Response):
    """How it went for each partition."""

    KEY, VERSIONS, FLEXIBLE = 28, "0-5", "3+"
    throttle_time_ms: int = wire(INT32, "0+")
    topics: list[TxnOffsetCommitResponseTopic] = wire(array(TxnOffsetCommitResponseTopic), "0+")


@dataclass(slots=True)
class TxnOffsetCommitRequestPartition:
    """The offset to commit for one partition: that of the next record to read."""

    partition_index: int = wire(INT32, "0+")
    committed_offset: int = wire(INT64, "0+")
    committed_leader_epoch: int = wire(INT32, "2+", default=-1, ignorable=True)
    committed_metadata: str | None = wire(STRING, "0+", nullable="0+")


@dataclass(slots=True)
class TxnOffsetCommitRequestTopic:
    """The partitions of one topic."""

    name: str = wire(STRING, "0+")
    partitions: list[TxnOffsetCommitRequestPartition] = wire(
        array(TxnOffsetCommitRequestPartition), "0+"
    )


@dataclass(slots=True)
class TxnOffsetCommitRequest(Request[TxnOffsetCommitResponse]):
    """Remember these offsets of the group once the transaction is committed."""

    KEY, VERSIONS, FLEXIBLE = 28, "0-5", "3+"
    transactional_id: str = wire(STRING, "0+")
    group_id: str = wire(STRING, "0+")
    producer_id: int = wire(INT64, "0+")
    producer_epoch: int = wire(INT16, "0+")
    generation_id: int = wire(INT32, "3+", default=-1)
    member_id: str = wire(STRING, "3+")
    group_instance_id: str | None = wire(STRING, "3+", nullable="3+", default=None)
    topics: list[TxnOffsetCommitRequestTopic] = wire(array(TxnOffsetCommitRequestTopic), "0+")
