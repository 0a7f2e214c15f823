"""The reading of logs: positions, fetches, checks of the log, look-ups of offsets, lost records.

A reader gets partitions with a start and perhaps an end, and returns `Chunk`s. A Spark task and a
consumer both use it.
"""

from typing import TYPE_CHECKING

from spark_kafka_source.lazily import importing

if TYPE_CHECKING:
    from spark_kafka_source.fetch.config import FetchConfig
    from spark_kafka_source.fetch.losses import (
        LogTruncatedError,
        OffsetOutOfRangeError,
        RecordsLostError,
        TopicGoneError,
    )
    from spark_kafka_source.fetch.offsets import (
        EARLIEST_TIMESTAMP,
        LATEST_TIMESTAMP,
        NO_OFFSET,
        OffsetAndEpoch,
        earliest_offsets,
        epoch_end_offsets,
        latest_offsets,
        list_offsets,
    )
    from spark_kafka_source.fetch.range_reader import RangeReader
    from spark_kafka_source.fetch.ranges import OffsetRange
    from spark_kafka_source.fetch.sampling import sampled_bytes_per_offset
    from spark_kafka_source.fetch.watch import Watch

__all__ = [
    "EARLIEST_TIMESTAMP",
    "LATEST_TIMESTAMP",
    "NO_OFFSET",
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

if not TYPE_CHECKING:
    __getattr__ = importing(
        __name__,
        {
            "config": "FetchConfig",
            "losses": "LogTruncatedError OffsetOutOfRangeError RecordsLostError TopicGoneError",
            "offsets": (
                "EARLIEST_TIMESTAMP LATEST_TIMESTAMP NO_OFFSET OffsetAndEpoch earliest_offsets "
                "epoch_end_offsets latest_offsets list_offsets"
            ),
            "range_reader": "RangeReader",
            "ranges": "OffsetRange",
            "sampling": "sampled_bytes_per_offset",
            "watch": "Watch",
        },
    )
