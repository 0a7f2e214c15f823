"""Estimates of the bytes per offset in a log, from the headers of a few record batches."""

from collections.abc import Iterator, Mapping
from functools import partial

from spark_kafka_source.client import Cluster, KafkaClient
from spark_kafka_source.errors import CorruptRecordError
from spark_kafka_source.fetch.leaders import ByTopic, ask_leaders
from spark_kafka_source.fetch.losses import OFFSET_OUT_OF_RANGE
from spark_kafka_source.fetch.request import FETCH_BY_NAME, fetch_topics
from spark_kafka_source.protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData
from spark_kafka_source.records import batches
from spark_kafka_source.topic_partition import TopicPartition

SAMPLE_BYTES = 64 * 1024
"""The bytes to fetch of each partition, if its first batch is not larger."""

_ANSWER_BYTES = 50 * 1024 * 1024


async def sampled_bytes_per_offset(
    client: KafkaClient, positions: Mapping[TopicPartition, int]
) -> dict[TopicPartition, float]:
    """Return the bytes of log per offset from each position on, as compressed as the log is.

    Each leader gets one request. A partition without records there is left out. So is one whose
    first batch is larger than the sample, unless it is the first of the answer: then the batch
    comes whole (KIP-74). Errors: see `ask_leaders`.
    """
    # Answers with topic ids would need a look-up of the names.
    request = partial(_request, client.cluster)
    found = await ask_leaders(
        client, "Fetch of a sample", positions, request, _samples, max_version=FETCH_BY_NAME
    )
    return {each: size for each, size in found.items() if size}


def _request(cluster: Cluster, positions: ByTopic[int]) -> FetchRequest:
    topics = fetch_topics(positions, cluster.topic_ids(positions), SAMPLE_BYTES)
    return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=_ANSWER_BYTES, topics=topics)


def _samples(answer: FetchResponse) -> Iterator[tuple[TopicPartition, int, float]]:
    for topic in answer.responses:
        for each in topic.partitions:
            where = TopicPartition(topic.topic, each.partition_index)
            # The task reports lost and corrupt records.
            code = 0 if each.error_code == OFFSET_OUT_OF_RANGE.code else each.error_code
            yield where, code, _bytes_per_offset(each, where)


def _bytes_per_offset(fetched: PartitionData, where: TopicPartition) -> float:
    size = 0
    bounds = []
    try:
        for header, _ in batches(memoryview(fetched.records or b""), where, check_crcs=False):
            size += header.size
            bounds += [header.base_offset, header.last_offset + 1]
    except CorruptRecordError:
        return 0.0
    return size / (bounds[-1] - bounds[0]) if bounds else 0.0
