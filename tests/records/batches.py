"""A description of a batch: input of our and Kafka's encoder, output of both decoders."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from spark_kafka_source.records import (
    BatchHeader,
    Codec,
    Record,
    TimestampType,
    batches,
    chunks,
    encode_batch,
    to_arrow,
)
from spark_kafka_source.topic_partition import TopicPartition

TOPIC_PARTITION = TopicPartition("events", 3)
TIMESTAMP_NAMES = {
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}


@dataclass(frozen=True, slots=True)
class Row:
    """A record in a reader's view."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch: its rows, and the fields of its header."""

    rows: tuple[Row, ...]
    base_offset: int = 0
    codec: Codec = Codec.NONE
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    append_timestamp_ms: int = -1
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    transactional: bool = False
    leader_epoch: int = -1
    last_offset_delta: int | None = None

    @property
    def max_timestamp_ms(self) -> int:
        """Return the header's max timestamp, with or without records."""
        if self.timestamp_type is TimestampType.LOG_APPEND_TIME:
            return self.append_timestamp_ms
        return max((row.timestamp_ms for row in self.rows), default=-1)

    @property
    def expected(self) -> list[Row]:
        """Return the rows of a read. The log may have set their timestamps."""
        if self.timestamp_type is TimestampType.LOG_APPEND_TIME:
            return [replace(row, timestamp_ms=self.append_timestamp_ms) for row in self.rows]
        return list(self.rows)


def encoded(batch: Batch) -> bytes:
    """Encode the batch with our encoder."""
    return encode_batch(
        [
            Record(
                key=row.key,
                value=row.value,
                headers=row.headers,
                timestamp_ms=row.timestamp_ms,
                offset_delta=row.offset - batch.base_offset,
            )
            for row in batch.rows
        ],
        base_offset=batch.base_offset,
        codec=batch.codec,
        timestamp_type=batch.timestamp_type,
        append_timestamp_ms=batch.append_timestamp_ms,
        last_offset_delta=batch.last_offset_delta,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        transactional=batch.transactional,
        leader_epoch=batch.leader_epoch,
    )


def header_of(data: bytes) -> BatchHeader:
    """Return the header of the first batch."""
    return next(batches(memoryview(data), TOPIC_PARTITION))[0]


def rows_of(data: bytes, **options: Any) -> list[Row]:
    """Decode a fetch with our decoder. `options` go to `chunks`."""
    found = chunks(data, topic_partition=TOPIC_PARTITION, **options)
    return [row for chunk in found for row in rows_in(to_arrow(chunk, include_headers=True))]


def rows_in(arrow: pa.RecordBatch) -> list[Row]:
    """Return the rows of our decoder's Arrow batch, after Arrow's own validation."""
    arrow.validate(full=True)
    timestamps = arrow["timestamp"].view(pa.int64()).to_pylist()
    columns = (arrow[name].to_pylist() for name in ("offset", "key", "value", "headers"))
    return [
        Row(
            offset,
            timestamp_us // 1000,
            key,
            value,
            tuple((header["key"], header["value"]) for header in headers or ()),
        )
        for timestamp_us, offset, key, value, headers in zip(timestamps, *columns, strict=True)
    ]


def numbered(count: int, base_offset: int = 0, value: bytes = b"value") -> tuple[Row, ...]:
    """Return plain rows at successive offsets."""
    return tuple(
        Row(base_offset + n, 1_700_000_000_000 + n, b"%d" % n, value) for n in range(count)
    )


def offsets_of(rows: Sequence[Row]) -> list[int]:
    """Return the rows' offsets."""
    return [row.offset for row in rows]
