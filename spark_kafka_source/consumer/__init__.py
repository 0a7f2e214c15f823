"""Kafka's consumer semantics over a client: offsets, ranges of records."""

from typing import TYPE_CHECKING

from spark_kafka_source.lazily import importing

if TYPE_CHECKING:
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
    from spark_kafka_source.consumer.typed_decoding import TypedDecoding
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
    "TypedDecoding",
    "Watch",
    "earliest_offsets",
    "epoch_end_offsets",
    "latest_offsets",
    "list_offsets",
    "sampled_bytes_per_offset",
]

if not TYPE_CHECKING:
    __getattr__ = importing(
        __name__,
        {
            "EARLIEST_TIMESTAMP": "offsets",
            "FetchConfig": "config",
            "LATEST_TIMESTAMP": "offsets",
            "LogTruncatedError": "losses",
            "NO_OFFSET": "offsets",
            "OffsetAndEpoch": "offsets",
            "OffsetOutOfRangeError": "losses",
            "OffsetRange": "range_reader",
            "RangeReader": "range_reader",
            "RecordsLostError": "losses",
            "TopicGoneError": "losses",
            "UNKNOWN_TOPIC": "losses",
            "TypedDecoding": "typed_decoding",
            "Watch": "watch",
            "earliest_offsets": "offsets",
            "epoch_end_offsets": "offsets",
            "latest_offsets": "offsets",
            "list_offsets": "offsets",
            "sampled_bytes_per_offset": "sampling",
        },
    )
