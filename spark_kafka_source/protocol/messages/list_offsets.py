"""ListOffsets (KIP-79, KIP-734): the offset for a timestamp, and the first and last offset."""

from spark_kafka_source.protocol.declaration import Request, Response, array, message, wire
from spark_kafka_source.protocol.wire import INT8, INT16, INT32, INT64, STRING


@message
class ListOffsetsPartitionResponse:
    """Offset found in one partition, -1 if there is none."""

    partition_index: int = wire(INT32, "0+")
    error_code: int = wire(INT16, "0+")
    timestamp: int = wire(INT64, "1+", default=-1)
    offset: int = wire(INT64, "1+", default=-1)
    leader_epoch: int = wire(INT32, "4+", default=-1)


@message
class ListOffsetsTopicResponse:
    """Partitions of one topic."""

    name: str = wire(STRING, "0+")
    partitions: list[ListOffsetsPartitionResponse] = wire(array(ListOffsetsPartitionResponse), "0+")


@message
class ListOffsetsResponse(Response):
    """Offsets found."""

    KEY, VERSIONS, FLEXIBLE = 2, "1-11", "6+"
    throttle_time_ms: int = wire(INT32, "2+", ignorable=True)
    topics: list[ListOffsetsTopicResponse] = wire(array(ListOffsetsTopicResponse), "0+")


@message
class ListOffsetsPartition:
    """Partition, and a timestamp in ms.

    Special values: -1 the latest offset, -2 the earliest, -3 (v7+) that of the greatest timestamp.
    """

    partition_index: int = wire(INT32, "0+")
    current_leader_epoch: int = wire(INT32, "4+", default=-1, ignorable=True)
    timestamp: int = wire(INT64, "0+")


@message
class ListOffsetsTopic:
    """Partitions of one topic."""

    name: str = wire(STRING, "0+")
    partitions: list[ListOffsetsPartition] = wire(array(ListOffsetsPartition), "0+")


@message
class ListOffsetsRequest(Request[ListOffsetsResponse]):
    """Request for the offsets of timestamps. `replica_id` is -1 for a consumer."""

    KEY, VERSIONS, FLEXIBLE = 2, "1-11", "6+"
    replica_id: int = wire(INT32, "0+")
    isolation_level: int = wire(INT8, "2+")
    topics: list[ListOffsetsTopic] = wire(array(ListOffsetsTopic), "0+")
    timeout_ms: int = wire(INT32, "10+", ignorable=True)
