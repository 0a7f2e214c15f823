"""The words of Kafka's record batch format, https://kafka.apache.org/documentation/#recordbatch."""

from enum import IntEnum
from typing import NamedTuple, TypeAlias

from spark_kafka_source.errors import CorruptRecordError

Bytes: TypeAlias = bytes | bytearray | memoryview
"""Contiguous bytes, indexed as unsigned 8-bit integers."""


class Codec(IntEnum):
    """How the records of a batch are compressed: bits 0-2 of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class TimestampType(IntEnum):
    """Who set the timestamps of a batch: bit 3 of its attributes."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class IsolationLevel(IntEnum):
    """Whether records of transactions that were aborted are seen (KIP-98)."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class AbortedTransaction(NamedTuple):
    """A row of a Fetch response: this producer's transaction from `first_offset` on was aborted."""

    producer_id: int
    first_offset: int


class RecordBatchTooLargeError(CorruptRecordError):
    """A batch whose records cannot be decompressed, piece by piece, within the limit in bytes."""
