"""Kafka's consumer semantics over a client: offsets, ranges of records."""

from spark_kafka_source.consumer.config import FetchConfig
from spark_kafka_source.consumer.losses import (
    UNKNOWN_TOPIC,
    LogTruncatedError,
    OffsetOutOfRangeError,
    RecordsLostError,
    TopicGoneError,
)
from spark_kafka_source.consumer.offsets import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    NO_OFFSET,
    OffsetAndEpoch,
    earliest_offsets,
    epoch_end_offsets,
    latest_offsets,
    list_offsets,
)
from spark_kafka_source.consumer.range_reader import OffsetRange, RangeReader
from spark_kafka_source.consumer.sampling import sampled_bytes_per_offset
from spark_kafka_source.consumer.watch import Watch

__all__ = [
    "EARLIEST_TIMESTAMP",
    "LATEST_TIMESTAMP",
    "NO_OFFSET",
    "UNKNOWN_TOPIC",
    "FetchConfig",
    "LogTruncatedError",
    "OffsetAndEpoch",
    "OffsetOutOfRangeError",
    "OffsetRange",
    "RangeReader",
    "RecordsLostError",
    "TopicGoneError",
    "Watch",
    "earliest_offsets",
    "epoch_end_offsets",
    "latest_offsets",
    "list_offsets",
    "sampled_bytes_per_offset",
]
