"""Reading ranges of one partition, and the requests to the broker."""

from typing import Any

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.fetch import FetchConfig, OffsetRange, RangeReader
from spark_kafka_source.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from spark_kafka_source.records import IsolationLevel, to_arrow
from spark_kafka_source.testing.memory import MemoryBroker
from spark_kafka_source.topic_partition import TopicPartition

T0 = TopicPartition("t", 0)
COMMITTED = FetchConfig(isolation_level=IsolationLevel.READ_COMMITTED)


def fetches_of(size_bytes: int) -> FetchConfig:
    """Return a configuration with fetches of a fixed size."""
    return FetchConfig(max_partition_fetch_bytes=size_bytes, fetch_max_bytes=size_bytes)


SMALL = fetches_of(100)


def reader(
    client: KafkaClient, start: int, end: int, config: FetchConfig | None = None, **values: Any
) -> RangeReader:
    return RangeReader(client, [OffsetRange(T0, start, end)], config or FetchConfig(), **values)


def offsets(reading: RangeReader) -> list[int]:
    return [
        offset for chunk in reading.chunks() for offset in to_arrow(chunk)["offset"].to_pylist()
    ]


def values(reading: RangeReader) -> list[bytes]:
    return [value for chunk in reading.chunks() for value in to_arrow(chunk)["value"].to_pylist()]


def fetched(broker: MemoryBroker) -> list[int]:
    return [
        request.topics[0].partitions[0].fetch_offset for request in broker.requests(FetchRequest)
    ]


def answer(records: bytes, **rest: Any) -> Any:
    """Return a fetch's answer with `records`, independent of the log."""

    def respond(request: FetchRequest) -> FetchResponse:
        topic = request.topics[0]
        partition = PartitionData(topic.partitions[0].partition, records=records, **rest)
        return FetchResponse(
            responses=[FetchableTopicResponse(topic.topic, topic.topic_id, [partition])]
        )

    return respond
