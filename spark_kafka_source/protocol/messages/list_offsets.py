"""ListOffsets: the offset for a timestamp (KIP-79), and for special timestamps below zero.

https://kafka.apache.org/protocol#The_Messages_ListOffsets, KIP-734, and KIP-405, KIP-1005 and
KIP-1023 for tiered storage.
"""

from spark_kafka_source.protocol.declaration import Need, Request, Response, array, message, wire
from spark_kafka_source.protocol.wire import INT8, INT16, INT32, INT64, STRING

MAX_TIMESTAMP = -3
"""The timestamp that means the record with the greatest timestamp."""
EARLIEST_LOCAL_TIMESTAMP = -4
"""The timestamp that means the first offset on the brokers' own disks."""
LATEST_TIERED_TIMESTAMP = -5
"""The timestamp that means the last offset in remote storage."""
EARLIEST_PENDING_UPLOAD_TIMESTAMP = -6
"""The timestamp that means the first offset that remote storage does not have yet."""

# Older brokers take these for times before all records, and answer with the start of the log.
_NEEDS = {
    MAX_TIMESTAMP: Need(7, "the offset of the greatest timestamp", "3.0"),
    EARLIEST_LOCAL_TIMESTAMP: Need(8, "the earliest local offset", "3.5"),
    LATEST_TIERED_TIMESTAMP: Need(9, "the latest tiered offset", "3.9"),
    EARLIEST_PENDING_UPLOAD_TIMESTAMP: Need(11, "the earliest offset pending upload", "4.2"),
}


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

    throttle_time_ms: int = wire(INT32, "2+", ignorable=True)
    topics: list[ListOffsetsTopicResponse] = wire(array(ListOffsetsTopicResponse), "0+")


@message
class ListOffsetsPartition:
    """Partition, and a timestamp in ms since 1970, or one of the special ones."""

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
    """Request for the offsets of timestamps. `replica_id` is -1 for a consumer.

    `timeout_ms` bounds the broker's search in remote storage (KIP-1075); 0 is the broker's bound.
    """

    KEY, VERSIONS, FLEXIBLE = 2, "1-11", "6+"
    replica_id: int = wire(INT32, "0+")
    isolation_level: int = wire(INT8, "2+")
    topics: list[ListOffsetsTopic] = wire(array(ListOffsetsTopic), "0+")
    timeout_ms: int = wire(INT32, "10+", ignorable=True)

    def need(self) -> Need | None:
        """Return the need of the special timestamp that came last into Kafka, if there is one."""
        asked = {partition.timestamp for topic in self.topics for partition in topic.partitions}
        return max((_NEEDS[timestamp] for timestamp in asked & _NEEDS.keys()), default=None)
