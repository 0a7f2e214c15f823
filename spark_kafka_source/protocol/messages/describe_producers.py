"""DescribeProducers (KIP-664): who writes to a partition, and since where in a transaction."""

from dataclasses import dataclass

from spark_kafka_source.protocol.declaration import Request, Response, array, wire
from spark_kafka_source.protocol.wire import INT16, INT32, INT64, STRING


@dataclass(slots=True)
class ProducerState:
    """What the partition's leader remembers of one producer."""

    producer_id: int = wire(INT64, "0+")
    producer_epoch: int = wire(INT32, "0+")
    last_sequence: int = wire(INT32, "0+", default=-1)
    last_timestamp: int = wire(INT64, "0+", default=-1)
    coordinator_epoch: int = wire(INT32, "0+")
    current_txn_start_offset: int = wire(INT64, "0+", default=-1)


@dataclass(slots=True)
class PartitionResponse:
    """The producers of one partition."""

    partition_index: int = wire(INT32, "0+")
    error_code: int = wire(INT16, "0+")
    error_message: str | None = wire(STRING, "0+", nullable="0+", default=None)
    active_producers: list[ProducerState] = wire(array(ProducerState), "0+")


@dataclass(slots=True)
class TopicResponse:
    """The partitions of one topic."""

    name: str = wire(STRING, "0+")
    partitions: list[PartitionResponse] = wire(array(PartitionResponse), "0+")


@dataclass(slots=True)
class DescribeProducersResponse(Response):
    """The producers of each partition."""

    KEY, VERSIONS, FLEXIBLE = 61, "0", "0+"
    throttle_time_ms: int = wire(INT32, "0+")
    topics: list[TopicResponse] = wire(array(TopicResponse), "0+")


@dataclass(slots=True)
class TopicRequest:
    """The partitions of one topic."""

    name: str = wire(STRING, "0+")
    partition_indexes: list[int] = wire(array(INT32), "0+")


@dataclass(slots=True)
class DescribeProducersRequest(Request[DescribeProducersResponse]):
    """Who writes to these partitions? Their leader must be asked."""

    KEY, VERSIONS, FLEXIBLE = 61, "0", "0+"
    topics: list[TopicRequest] = wire(array(TopicRequest), "0+")
