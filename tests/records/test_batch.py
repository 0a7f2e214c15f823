"""Batch headers: their fields, errors, and a last batch that is cut."""

import struct

import pytest

from spark_kafka_source.errors import CorruptRecordError, UnsupportedRecordFormatError
from spark_kafka_source.records import Codec, TimestampType, batches, chunks, encode_batch
from spark_kafka_source.records.encode import with_crc
from tests.records.batches import (
    TOPIC_PARTITION,
    Batch,
    encoded,
    header_of,
    numbered,
    offsets_of,
    rows_of,
)
from tests.traced import traced

PLAIN = encoded(Batch(numbered(3, 10), 10))


def changed(at: int, layout: str, value: int, data: bytes = PLAIN) -> bytes:
    """Return `data` with other bytes at `at` and a correct CRC."""
    damaged = bytearray(data)
    struct.pack_into(layout, damaged, at, value)
    return with_crc(bytes(damaged))


def test_a_header_says_all_that_was_encoded() -> None:
    header = header_of(
        encode_batch(
            [],
            base_offset=5,
            timestamp_type=TimestampType.LOG_APPEND_TIME,
            append_timestamp_ms=9,
            last_offset_delta=4,
            producer_id=6,
            producer_epoch=7,
            base_sequence=8,
            transactional=True,
            control=True,
            leader_epoch=3,
        )
    )
    assert (header.base_offset, header.last_offset, header.size) == (5, 9, 61)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (6, 7, 8)
    assert (header.partition_leader_epoch, header.max_timestamp) == (3, 9)
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert header.is_transactional
    assert header.is_control


@pytest.mark.parametrize("magic", [0, 1, 3, 255])
def test_other_formats_are_named(magic: int) -> None:
    # A message set of v0 or v1: offset, size (smaller than any v2 batch), CRC, magic, the rest.
    message_set = struct.pack(">qiIB", 7, 14, 0, magic) + bytes(9)
    with pytest.raises(UnsupportedRecordFormatError, match=f"events-3 at offset 7.*v{magic}"):
        rows_of(message_set)


def test_an_unknown_codec_is_named() -> None:
    with pytest.raises(UnsupportedRecordFormatError, match="codec 5"):
        rows_of(changed(21, ">h", 5))


@pytest.mark.parametrize(
    ("at", "layout", "value", "reason"),
    [
        (0, ">q", -1, "base offset -1"),
        (8, ">i", -1, "record batch of 11 bytes"),
        (8, ">i", 48, "record batch of 60 bytes"),
        (23, ">i", -1, "last offset delta -1"),
        (23, ">i", 1, "3 records for 2 offsets"),
        (57, ">i", -1, "-1 records"),
        (57, ">i", 2, "2 records claimed in"),
        (57, ">i", 0, "0 records claimed in"),
    ],
)
def test_a_header_that_contradicts_itself_is_refused(
    at: int, layout: str, value: int, reason: str
) -> None:
    with pytest.raises(CorruptRecordError, match=reason):
        rows_of(changed(at, layout, value))


def test_records_claimed_that_cannot_fit_are_refused() -> None:
    claimed = changed(57, ">i", 1 << 30, changed(23, ">i", 1 << 30))
    with pytest.raises(CorruptRecordError, match="1073741824 records claimed in"):
        rows_of(claimed)


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.NONE])
def test_no_room_is_made_for_records_that_are_not_there(codec: Codec) -> None:
    """Decompression shows a false record count: three records are 59 bytes."""
    batch = encoded(Batch(numbered(3, 10), 10, codec))
    claimed = changed(57, ">i", (1 << 31) - 1, changed(23, ">i", (1 << 31) - 2, batch))
    with (
        traced() as memory,
        pytest.raises(CorruptRecordError, match="2147483647 records claimed"),
    ):
        list(chunks(claimed, topic_partition=TOPIC_PARTITION))
    assert memory.peak_bytes < 4 << 20  # zlib and lz4 use a buffer of a chunk's size.


@pytest.mark.parametrize("codec", Codec)
def test_a_batch_that_claims_records_and_has_none_is_refused(codec: Codec) -> None:
    empty = encode_batch([], base_offset=9, last_offset_delta=4)
    claimed = changed(57, ">i", 5, changed(21, ">h", codec, empty))
    with pytest.raises(CorruptRecordError, match="5 records claimed in 0 bytes"):
        rows_of(claimed)


def test_an_offset_past_64_bits_is_refused() -> None:
    with pytest.raises(CorruptRecordError, match="last offset delta"):
        rows_of(changed(0, ">q", (1 << 63) - 2))


def test_batches_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(CorruptRecordError, match="base offset 10, where 13 or more is due"):
        rows_of(PLAIN + PLAIN)


def test_crcs_are_checked_unless_told_otherwise() -> None:
    damaged = bytearray(PLAIN)
    damaged[-2] ^= 1
    with pytest.raises(CorruptRecordError, match="CRC-32C"):
        rows_of(bytes(damaged))
    assert offsets_of(rows_of(bytes(damaged), check_crcs=False)) == [10, 11, 12]


def test_a_batch_cut_at_any_byte_is_not_there_yet() -> None:
    last = encoded(Batch(numbered(3, 13), 13))
    for length in range(len(last)):
        (chunk,) = chunks(PLAIN + last[:length], topic_partition=TOPIC_PARTITION)
        assert (chunk.record_count, chunk.next_offset) == (3, 13)
        assert chunk.cut_batch_bytes == (0 if length == 0 else 61 if length < 17 else len(last))


def test_a_fetch_whose_first_batch_is_cut_tells_how_many_bytes_it_takes() -> None:
    (chunk,) = chunks(PLAIN[:-1], topic_partition=TOPIC_PARTITION, position=10)
    assert (chunk.record_count, chunk.next_offset) == (0, 10)
    assert chunk.cut_batch_bytes == len(PLAIN)


def test_an_empty_fetch_is_one_empty_chunk() -> None:
    (chunk,) = chunks(b"", topic_partition=TOPIC_PARTITION, position=10)
    assert (chunk.record_count, chunk.next_offset, chunk.cut_batch_bytes) == (0, 10, 0)
    assert rows_of(b"") == []


def test_batches_gives_the_compressed_records() -> None:
    ((header, payload),) = batches(memoryview(PLAIN), TOPIC_PARTITION)
    assert (header.record_count, bytes(payload)) == (3, PLAIN[61:])
