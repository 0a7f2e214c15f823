"""Estimates of the bytes per offset in a log, from the headers of a few record batches."""

from collections.abc import Iterator, Mapping, Sequence

from spark_kafka_source.client import LEADER, Broker, KafkaClient, Told, ask_each
from spark_kafka_source.errors import CorruptRecordError
from spark_kafka_source.fetch.losses import OFFSET_OUT_OF_RANGE
from spark_kafka_source.fetch.request import FETCH_BY_NAME, fetch_topics, partition_fetches
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
    comes whole (KIP-74). Errors: see `ask_each`.
    """

    def request(asked: Sequence[TopicPartition]) -> FetchRequest:
        offsets = {partition: positions[partition] for partition in asked}
        topics = fetch_topics(partition_fetches(client.cluster, offsets, SAMPLE_BYTES))
        return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=_ANSWER_BYTES, topics=topics)

    samples = await ask_each(
        client,
        "Fetch of a sample",
        LEADER,
        positions,
        request=request,
        answers=_samples,
        max_version=FETCH_BY_NAME,  # Answers with topic ids would need a look-up of the names.
    )
    return {partition: size for partition, size in samples.items() if size}


def _samples(answer: FetchResponse, _: Broker) -> Iterator[Told[TopicPartition, float]]:
    for topic in answer.responses:
        for partition in topic.partitions:
            where = TopicPartition(topic.topic, partition.partition_index)
            # The task reports lost and corrupt records.
            code = 0 if partition.error_code == OFFSET_OUT_OF_RANGE.code else partition.error_code
            yield Told(where, _bytes_per_offset(partition, where), code)


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
