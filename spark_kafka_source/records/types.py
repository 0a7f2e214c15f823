"""Types of Kafka's record batch format, https://kafka.apache.org/documentation/#recordbatch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from spark_kafka_source.errors import CorruptRecordError, LocalError
from spark_kafka_source.topic_partition import TopicPartition

Bytes: TypeAlias = bytes | bytearray | memoryview
"""Contiguous bytes, indexed as unsigned 8-bit integers."""

CHUNK_BYTES = 2 << 20
"""The usual size of a chunk."""


class Codec(IntEnum):
    """Compression of a batch's records: bits 0-2 of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    def __str__(self) -> str:
        return self.name.lower()


class TimestampType(IntEnum):
    """Origin of a batch's timestamps, the producer or the broker: bit 3 of its attributes."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class IsolationLevel(IntEnum):
    """Whether a reader sees records of aborted transactions (KIP-98)."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1

    def __str__(self) -> str:
        return self.name.lower()


class AbortedTransaction(NamedTuple):
    """Aborted transaction of a Fetch response: its producer, and its first offset."""

    producer_id: int
    first_offset: int


class RecordTooLargeError(CorruptRecordError):
    """A record at `offset`, or a snappy block that begins there, takes more than the limit."""


class TimestampOverflowError(CorruptRecordError):
    """A record at `offset` has a timestamp beyond Arrow's and Spark's microseconds in 64 bits.

    The log is not damaged. Its producer wrote another unit than Kafka's milliseconds. `timestamp`
    is the number.
    """

    def __init__(self, topic_partition: TopicPartition, offset: int, timestamp: int) -> None:
        reason = (
            f"KAFKA_MALFORMED_RECORD_TIMESTAMP: timestamp overflow, {timestamp} ms is more than 64 "
            "bits of microseconds hold. The log is not damaged: Kafka's timestamps are "
            "milliseconds since 1970, and the record's producer wrote another unit"
            f"{_as_nanoseconds(timestamp)}. Correct the producer. To read these records, leave the "
            "column 'timestamp' out: in Spark by the option 'columns'"
        )
        super().__init__(topic_partition, offset, reason)
        self.args, self.timestamp = (topic_partition, offset, timestamp), timestamp


def _as_nanoseconds(timestamp: int) -> str:
    at = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=timestamp // 1_000)
    return f" (as nanoseconds it is {at:%Y-%m-%dT%H:%M:%SZ})"


class ColumnTypeError(LocalError):
    """A column of records to write has a type that Kafka's records have no place for."""

    def __init__(self, column: str, found: object, expected: str) -> None:
        super().__init__(column, found, expected)
        self.column, self.found, self.expected = column, found, expected

    def _text(self) -> str:
        return f"Column '{self.column}' is of the type {self.found}; it must be {self.expected}"


class UnencodableRowError(LocalError):
    """Some rows cannot be written as records. No record of their table is encoded.

    `rows` are the row numbers of all rows with this fault, in the table that was given. The text
    names the first row and its fault.
    """

    def __init__(self, rows: Sequence[int], reason: str) -> None:
        super().__init__(tuple(rows), reason)
        self.rows, self.reason = tuple(rows), reason

    @property
    def row(self) -> int:
        """The first of `rows`."""
        return self.rows[0]

    def _text(self) -> str:
        others = f" (and {len(self.rows) - 1} more rows)" if len(self.rows) > 1 else ""
        return f"Row {self.row}{others}: {self.reason}"


class RowTooLargeError(UnencodableRowError):
    """A row's record may take more than `max.request.size`, as Kafka's producer estimates it."""


def _refuse(error: RecordTooLargeError) -> None:
    raise error


@dataclass(frozen=True, slots=True)
class RecordLimit:
    """Limit for the decompressed bytes of a record, its length included: at least `CHUNK_BYTES`.

    Each record over the limit is reported to `exceeded`, which raises by default. If it returns,
    the record is passed over.
    """

    max_bytes: int = 256 << 20
    exceeded: Callable[[RecordTooLargeError], None] = _refuse
