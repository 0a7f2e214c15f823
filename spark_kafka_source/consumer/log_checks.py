"""Whether a log still is the one that was read from, and what it has: asked when in doubt."""

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.consumer.losses import (
    UNKNOWN_TOPIC,
    OffsetOutOfRangeError,
    RecordsLostError,
    TopicGoneError,
)
from spark_kafka_source.consumer.offsets import earliest_offsets, latest_offsets
from spark_kafka_source.errors import BrokerError
from spark_kafka_source.topic_partition import TopicPartition


def out_of_range(
    client: KafkaClient, topic_partition: TopicPartition, offset: int
) -> RecordsLostError:
    """What to raise where a broker says OFFSET_OUT_OF_RANGE: names the offsets that there are."""
    try:
        earliest = earliest_offsets(client, [topic_partition])[topic_partition]
        latest = latest_offsets(client, [topic_partition])[topic_partition].offset
    except BrokerError as error:
        if error.error in UNKNOWN_TOPIC:
            return TopicGoneError(topic_partition, offset)
        raise
    return OffsetOutOfRangeError(topic_partition, offset, earliest, latest)
