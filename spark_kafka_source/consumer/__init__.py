"""Kafka's consumer semantics over a client: offsets, a group's commits, ranges read ahead."""

from spark_kafka_source.consumer.ahead import Ahead
from spark_kafka_source.consumer.config import FETCH_SETTINGS, FetchConfig
from spark_kafka_source.consumer.group_offsets import commit_offsets, committed_offsets
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
from spark_kafka_source.consumer.range_reader import (
    OffsetOutOfRangeError,
    OffsetRange,
    RangeReader,
    RecordsLostError,
    TopicGoneError,
)

__all__ = [
    "EARLIEST_TIMESTAMP",
    "FETCH_SETTINGS",
    "LATEST_TIMESTAMP",
    "NO_OFFSET",
    "Ahead",
    "FetchConfig",
    "OffsetAndEpoch",
    "OffsetOutOfRangeError",
    "OffsetRange",
    "RangeReader",
    "RecordsLostError",
    "TopicGoneError",
    "commit_offsets",
    "committed_offsets",
    "earliest_offsets",
    "epoch_end_offsets",
    "latest_offsets",
    "list_offsets",
]
