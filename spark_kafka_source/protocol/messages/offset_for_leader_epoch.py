"""OffsetForLeaderEpoch (KIP-320): the end of a leader epoch, which shows whether a log was cut."""

from spark_kafka_source.protocol.declaration import Request, Response, array, message, wire
from spark_kafka_source.protocol.wire import INT16, INT32, INT64, STRING


@message
class EpochEndOffset:
    """End, in one partition, of the requested epoch or the last one before it."""

    error_code: int = wire(INT16, "0+")
    partition: int = wire(INT32, "0+")
    leader_epoch: int = wire(INT32, "1+", default=-1, ignorable=True)
    end_offset: int = wire(INT64, "0+", default=-1)


@message
class OffsetForLeaderTopicResult:
    """Partitions of one topic."""

    topic: str = wire(STRING, "0+")
    partitions: list[EpochEndOffset] = wire(array(EpochEndOffset), "0+")


@message
class OffsetForLeaderEpochResponse(Response):
    """End of each epoch."""

    throttle_time_ms: int = wire(INT32, "2+", ignorable=True)
    topics: list[OffsetForLeaderTopicResult] = wire(array(OffsetForLeaderTopicResult), "0+")


@message
class OffsetForLeaderPartition:
    """Partition, and the epoch to look up."""

    partition: int = wire(INT32, "0+")
    current_leader_epoch: int = wire(INT32, "2+", default=-1, ignorable=True)
    leader_epoch: int = wire(INT32, "0+")


@message
class OffsetForLeaderTopic:
    """Partitions of one topic."""

    topic: str = wire(STRING, "0+")
    partitions: list[OffsetForLeaderPartition] = wire(array(OffsetForLeaderPartition), "0+")


@message
class OffsetForLeaderEpochRequest(Request[OffsetForLeaderEpochResponse]):
    """Request for the ends of epochs. A consumer sets `replica_id` to -1. The default is -2."""

    KEY, VERSIONS, FLEXIBLE = 23, "2-4", "4+"
    replica_id: int = wire(INT32, "3+", default=-2, ignorable=True)
    topics: list[OffsetForLeaderTopic] = wire(array(OffsetForLeaderTopic), "0+")
