"""Encoder of record batches, one record at a time in plain Python. `encode_columns` is quicker.

The format is https://kafka.apache.org/documentation/#recordbatch. Key and value of a control
record are Kafka's messages ControlRecordTypeSchema and EndTxnMarker.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct

from spark_kafka_source.records.batch import (
    CHECKED_FROM,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_BYTES,
    LENGTH_FOLLOWS_BYTES,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    TRANSACTIONAL_BIT,
    crc32c,
)
from spark_kafka_source.records.compression import compress
from spark_kafka_source.records.transactions import ABORT, COMMIT, CONTROL_KEY
from spark_kafka_source.records.types import Codec, TimestampType
from spark_kafka_source.records.varints import encode_varint

NO_TIMESTAMP = -1

END_TRANSACTION = Struct(">hi")
"""The value of a control record: its version, then the epoch of the transaction coordinator."""


@dataclass(frozen=True, slots=True)
class Record:
    """Record to write. Its offset is the batch's base offset plus `offset_delta`."""

    key: bytes | None = None
    value: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp_ms: int = NO_TIMESTAMP
    """Milliseconds since 1970, or -1 for none. `testing.Producer` replaces -1 by its send time."""
    offset_delta: int | None = None
    """By default one more than that of the record before it."""


def encode_batch(
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    codec: Codec = Codec.NONE,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    append_timestamp_ms: int = NO_TIMESTAMP,
    delete_horizon_ms: int | None = None,
    last_offset_delta: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    leader_epoch: int = -1,
) -> bytes:
    """Encode one batch of format v2.

    With LOG_APPEND_TIME all records have the time `append_timestamp_ms`. `last_offset_delta` may
    exceed that of the last record, since compaction leaves the field unchanged. Without records the
    result is the empty batch that compaction keeps to preserve its producer's sequence.
    `delete_horizon_ms` is the value that compaction puts in place of the base timestamp (KIP-534).
    """
    deltas = _offset_deltas(records)
    last_delta = max(last_offset_delta or 0, deltas[-1] if deltas else 0)
    first_ms = records[0].timestamp_ms if records else NO_TIMESTAMP
    base_ms = first_ms if delete_horizon_ms is None else delete_horizon_ms
    last_ms = max((record.timestamp_ms for record in records), default=NO_TIMESTAMP)
    appended = timestamp_type is TimestampType.LOG_APPEND_TIME
    attributes = (
        (codec if records else Codec.NONE)
        | LOG_APPEND_TIME_BIT * appended
        | TRANSACTIONAL_BIT * transactional
        | CONTROL_BIT * control
        | DELETE_HORIZON_BIT * (delete_horizon_ms is not None)
    )
    body = b"".join(
        encode_record(record, record.timestamp_ms - base_ms, delta)
        for record, delta in zip(records, deltas, strict=True)
    )
    payload = compress(codec, body) if records else b""
    header = (
        base_offset,
        HEADER_BYTES + len(payload) - LENGTH_FOLLOWS_BYTES,
        leader_epoch,
        MAGIC,
        0,
        attributes,
        last_delta,
        base_ms,
        append_timestamp_ms if appended else last_ms,
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    return with_crc(HEADER.pack(*header) + payload)


def _offset_deltas(records: Sequence[Record]) -> list[int]:
    deltas: list[int] = []
    for record in records:
        due = deltas[-1] + 1 if deltas else 0
        deltas.append(due if record.offset_delta is None else record.offset_delta)
    return deltas


def encode_record(record: Record, timestamp_delta_ms: int, offset_delta: int) -> bytes:
    """Encode one record as it is in a batch, with its length first."""
    headers = (_nullable(key.encode()) + _nullable(value) for key, value in record.headers)
    body = b"".join(
        (
            b"\0",  # attributes, all unused
            encode_varint(wrapped(timestamp_delta_ms)),
            encode_varint(offset_delta),
            _nullable(record.key),
            _nullable(record.value),
            encode_varint(len(record.headers)),
            *headers,
        )
    )
    return encode_varint(len(body)) + body


def wrapped(delta: int) -> int:
    """Wrap a delta around at 64 bits, as Kafka does."""
    return (delta + (1 << 63)) % (1 << 64) - (1 << 63)


def _nullable(data: bytes | None) -> bytes:
    return encode_varint(-1) if data is None else encode_varint(len(data)) + data


def with_crc(batch: bytes) -> bytes:
    """Return `batch` with the right CRC-32C, which is in bytes 17 to 20."""
    crc = crc32c(batch[CHECKED_FROM:])
    return batch[: CHECKED_FROM - 4] + crc.to_bytes(4) + batch[CHECKED_FROM:]


def encode_control_batch(
    *,
    commit: bool,
    base_offset: int,
    producer_id: int,
    producer_epoch: int = 0,
    timestamp_ms: int = NO_TIMESTAMP,
    coordinator_epoch: int = 0,
    leader_epoch: int = -1,
) -> bytes:
    """Encode the batch of one COMMIT or ABORT marker, which ends a transaction (KIP-98)."""
    marker = Record(
        key=CONTROL_KEY.pack(0, COMMIT if commit else ABORT),
        value=END_TRANSACTION.pack(0, coordinator_epoch),
        timestamp_ms=timestamp_ms,
    )
    return encode_batch(
        [marker],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
        leader_epoch=leader_epoch,
    )
