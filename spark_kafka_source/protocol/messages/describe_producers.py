"""DescribeProducers (KIP-664): producers of a partition, and where their transactions began."""

from spark_kafka_source.protocol.declaration import Request, Response, array, message, wire
from spark_kafka_source.protocol.wire import INT16, INT32, INT64, STRING


@message
class ProducerState:
    """State of one producer in the memory of the partition's leader."""

    producer_id: int = wire(INT64, "0+")
    producer_epoch: int = wire(INT32, "0+")
    last_sequence: int = wire(INT32, "0+", default=-1)
    last_timestamp: int = wire(INT64, "0+", default=-1)
    coordinator_epoch: int = wire(INT32, "0+")
    current_txn_start_offset: int = wire(INT64, "0+", default=-1)


@message
class PartitionResponse:
    """Producers of one partition."""

    partition_index: int = wire(INT32, "0+")
    error_code: int = wire(INT16, "0+")
    error_message: str | None = wire(STRING, "0+", nullable="0+", default=None)
    active_producers: list[ProducerState] = wire(array(ProducerState), "0+")


@message
class TopicResponse:
    """Partitions of one topic."""

    name: str = wire(STRING, "0+")
    partitions: list[PartitionResponse] = wire(array(PartitionResponse), "0+")


@message
class DescribeProducersResponse(Response):
    """Producers of each partition."""

    throttle_time_ms: int = wire(INT32, "0+")
    topics: list[TopicResponse] = wire(array(TopicResponse), "0+")


@message
class TopicRequest:
    """Partitions of one topic."""

    name: str = wire(STRING, "0+")
    partition_indexes: list[int] = wire(array(INT32), "0+")


@message
class DescribeProducersRequest(Request[DescribeProducersResponse]):
    """Request for the producers of these partitions. Send it to their leader."""

    KEY, VERSIONS, FLEXIBLE = 61, "0", "0+"
    topics: list[TopicRequest] = wire(array(TopicRequest), "0+")
