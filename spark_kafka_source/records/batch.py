"""Record batches of format v2: https://kafka.apache.org/documentation/#recordbatch."""

from collections.abc import Iterator
from functools import partial
from struct import Struct
from typing import NamedTuple

from spark_kafka_source.errors import CorruptRecordError, UnsupportedRecordFormatError
from spark_kafka_source.records.types import Codec, TimestampType
from spark_kafka_source.topic_partition import TopicPartition


def crc32c(data: bytes | bytearray | memoryview, so_far: int = 0) -> int:
    """Return the checksum of `data`, which follows bytes with the checksum `so_far`."""
    # The library imports a parser of mail to know its version. A process that plans needs neither.
    from crc32c import crc32c as checksum  # noqa: PLC0415

    return checksum(data, so_far)


# A record batch, big-endian. The first column has the byte at which a field begins.
#
#    0  base_offset             int64
#    8  batch_length            int32   the number of bytes after this field
#   12  partition_leader_epoch  int32
#   16  magic                   int8    2
#   17  crc                     uint32  CRC-32C of all bytes from 21 on
#   21  attributes              int16   bits 0-2: codec, 3: timestamp type, 4: transactional,
#                                       5: control, 6: delete horizon
#   23  last_offset_delta       int32
#   27  base_timestamp          int64
#   35  max_timestamp           int64
#   43  producer_id             int64
#   51  producer_epoch          int16
#   53  base_sequence           int32
#   57  record_count            int32
#   61  the records, compressed as a whole
HEADER = Struct(">qiibIhiqqqhii")
HEADER_BYTES = HEADER.size
LENGTH_FOLLOWS_BYTES = 12
"""`batch_length` counts the bytes after itself. Itself and the base offset take these 12 bytes."""

MAGIC = 2
MAGIC_AT = 16
"""The position of the magic byte. Formats v0 and v1 have it here too."""

CHECKED_FROM = 21
"""The first byte that the CRC-32C covers: it covers all from the attributes on."""

MIN_RECORD_BYTES = 7
"""The size of the smallest record: seven fields of one byte each."""

CODEC_BITS = 0x07
MAX_CODEC = max(Codec)
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

MAX_OFFSET = (1 << 63) - 1


class BatchHeader(NamedTuple):
    """The 61 bytes before the records of a batch, in the order of the wire."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """The size of the whole batch in bytes, header included."""
        return self.batch_length + LENGTH_FOLLOWS_BYTES

    @property
    def last_offset(self) -> int:
        """The last offset of the batch. Compaction may have removed the record with this offset."""
        return self.base_offset + self.last_offset_delta

    @property
    def codec(self) -> Codec:
        """The compression of the records."""
        return Codec(self.attributes & CODEC_BITS)

    @property
    def timestamp_type(self) -> TimestampType:
        """Whether producers or the broker set the timestamps."""
        return TimestampType(bool(self.attributes & LOG_APPEND_TIME_BIT))

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        """Whether the batch holds Kafka's own markers instead of records."""
        return bool(self.attributes & CONTROL_BIT)


_as_header = partial(tuple.__new__, BatchHeader)
"""`BatchHeader._make` without its Python frame. `Struct` guarantees the number of fields."""


def batches(
    records: memoryview, topic_partition: TopicPartition, *, check_crcs: bool = True
) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Yield each batch of a fetch: its checked header, and its records, still compressed.

    The iteration ends at a batch that the end of `records` cuts: see `cut_batch_bytes`. Raises
    `UnsupportedRecordFormatError` for a format other than v2, and `CorruptRecordError` for a batch
    that contradicts itself.
    """
    at, min_offset, end = 0, 0, len(records)
    while end - at >= HEADER_BYTES:
        header = _as_header(HEADER.unpack_from(records, at))
        after = at + header.batch_length + LENGTH_FOLLOWS_BYTES
        if header.magic != MAGIC or not at + HEADER_BYTES <= after <= end:
            break
        if check_crcs:
            _check_crc(header, records[at + CHECKED_FROM : after], topic_partition)
        _check_header(header, min_offset, topic_partition)
        yield header, records[at + HEADER_BYTES : after]
        at, min_offset = after, header.base_offset + header.last_offset_delta + 1
    cut_batch_bytes(records, at, topic_partition)


def cut_batch_bytes(records: memoryview, at: int, topic_partition: TopicPartition) -> int:
    """Return the whole size in bytes of the batch at `at` if the end of `records` cuts it, else 0.

    If even its length is cut, return the size of the smallest batch. Raises as `batches` does.
    """
    left = len(records) - at
    if left <= MAGIC_AT:
        return HEADER_BYTES if left else 0
    base_offset = int.from_bytes(records[at : at + 8], signed=True)
    length = int.from_bytes(records[at + 8 : at + LENGTH_FOLLOWS_BYTES], signed=True)
    _check_magic(records[at + MAGIC_AT], base_offset, topic_partition)
    size = length + LENGTH_FOLLOWS_BYTES
    if size < HEADER_BYTES:
        reason = f"a record batch of {size} bytes; its header alone takes {HEADER_BYTES}"
        raise CorruptRecordError(topic_partition, base_offset, reason)
    return size if size > left else 0


def _check_magic(magic: int, base_offset: int, topic_partition: TopicPartition) -> None:
    if magic == MAGIC:
        return
    if magic < MAGIC:
        reason = (
            f"a message set of format v{magic}, as Kafka wrote before 0.11; "
            "only record batches of format v2 are read"
        )
    else:
        reason = f"record format v{magic} (the magic byte) is not known; v{MAGIC} is"
    raise UnsupportedRecordFormatError(topic_partition, base_offset, reason)


def _check_crc(header: BatchHeader, checked: memoryview, topic_partition: TopicPartition) -> None:
    computed = crc32c(checked)
    if computed != header.crc:
        reason = f"CRC-32C of the batch is {computed:#010x}, its header says {header.crc:#010x}"
        raise CorruptRecordError(topic_partition, header.base_offset, reason)


def _check_header(header: BatchHeader, min_offset: int, topic_partition: TopicPartition) -> None:
    # Access by name or property would cost more than all other work for a batch.
    base_offset, length, _, _, _, attributes, last_offset_delta, _, _, _, _, _, record_count = (
        header
    )
    payload_bytes = length + LENGTH_FOLLOWS_BYTES - HEADER_BYTES
    compressed = attributes & CODEC_BITS
    if base_offset < min_offset:
        reason = f"base offset {base_offset}, where {min_offset} or more is due"
    elif last_offset_delta < 0 or base_offset + last_offset_delta >= MAX_OFFSET:
        reason = f"last offset delta {last_offset_delta}"
    elif not 0 <= record_count <= last_offset_delta + 1:
        reason = f"{record_count} records for {last_offset_delta + 1} offsets"
    elif compressed > MAX_CODEC:
        reason = f"compression codec {compressed} is not known"
        raise UnsupportedRecordFormatError(topic_partition, base_offset, reason)
    elif not _may_hold(record_count, payload_bytes, compressed):
        reason = f"{record_count} records claimed in {payload_bytes} bytes"
    else:
        return
    raise CorruptRecordError(topic_partition, base_offset, reason)


def _may_hold(record_count: int, payload_bytes: int, compressed: int) -> bool:
    if record_count == 0:
        return payload_bytes == 0
    return payload_bytes >= (1 if compressed else record_count * MIN_RECORD_BYTES)


_LENGTH = Struct(">8xi")


def next_offset(records: memoryview) -> int | None:
    """Return the offset after the last whole batch, by its header. None if no batch is whole.

    Only lengths are checked. The result is good enough to start a request, not for more.
    """
    at, last = 0, -1
    while len(records) - at >= HEADER_BYTES:
        (length,) = _LENGTH.unpack_from(records, at)
        after = at + length + LENGTH_FOLLOWS_BYTES
        if not at + HEADER_BYTES <= after <= len(records):
            break
        at, last = after, at
    if last < 0:
        return None
    return BatchHeader._make(HEADER.unpack_from(records, last)).last_offset + 1
