"""Stage 1: visible batches, decompression, sizes of chunks, and the next offset."""

from collections.abc import Iterable

import pytest

from spark_kafka_source.errors import CorruptRecordError
from spark_kafka_source.records import (
    AbortedTransaction,
    Chunk,
    Codec,
    IsolationLevel,
    Record,
    RecordLimit,
    RecordTooLargeError,
    chunks,
    encode_batch,
    encode_control_batch,
    to_arrow,
)
from spark_kafka_source.records.encode import with_crc
from tests.records.batches import (
    TOPIC_PARTITION,
    Batch,
    encoded,
    numbered,
    offsets_of,
    rows_in,
    rows_of,
)

COMMITTED = {"isolation_level": IsolationLevel.READ_COMMITTED}


def transactional(producer_id: int, base_offset: int, count: int = 2) -> bytes:
    return encoded(
        Batch(
            numbered(count, base_offset), base_offset, producer_id=producer_id, transactional=True
        )
    )


def marker(producer_id: int, base_offset: int, *, commit: bool = False) -> bytes:
    return encode_control_batch(commit=commit, base_offset=base_offset, producer_id=producer_id)


def committed(fetch: bytes, aborted: Iterable[tuple[int, int]]) -> list[int]:
    rows = rows_of(fetch, aborted=[AbortedTransaction(*row) for row in aborted], **COMMITTED)
    return offsets_of(rows)


INTERLEAVED = b"".join(
    (
        transactional(1, 0),
        transactional(2, 2),
        encoded(Batch(numbered(1, 4), 4)),
        transactional(1, 5),
        marker(2, 7, commit=True),
        marker(1, 8),
        transactional(1, 9),
        marker(1, 11, commit=True),
    )
)


def test_records_of_an_aborted_transaction_are_hidden_until_its_marker() -> None:
    assert committed(INTERLEAVED, [(1, 0)]) == [2, 3, 4, 9, 10]


def test_read_uncommitted_sees_aborted_records_but_no_markers() -> None:
    rows = rows_of(INTERLEAVED, aborted=[AbortedTransaction(1, 0)])
    assert offsets_of(rows) == [0, 1, 2, 3, 4, 5, 6, 9, 10]


def test_a_producer_may_abort_twice_and_the_list_come_in_any_order() -> None:
    fetch = INTERLEAVED + transactional(1, 12) + marker(1, 14) + transactional(1, 15)
    assert committed(fetch, [(1, 12), (1, 0)]) == [2, 3, 4, 9, 10, 15, 16]


def test_a_marker_may_come_twice() -> None:
    fetch = transactional(1, 0) + marker(1, 2) + marker(1, 3) + transactional(1, 4)
    assert committed(fetch, [(1, 0)]) == [4, 5]


def test_a_marker_without_data_before_it_is_no_harm() -> None:
    assert committed(marker(1, 0) + transactional(1, 1), [(1, 0)]) == [1, 2]


def test_a_compacted_marker_ends_nothing() -> None:
    emptied = encode_batch([], base_offset=2, producer_id=1, transactional=True, control=True)
    fetch = transactional(1, 0) + emptied + transactional(1, 3) + marker(1, 5)
    assert committed(fetch, [(1, 0)]) == []


def test_records_outside_transactions_are_seen_whoever_wrote_them() -> None:
    plain = encoded(Batch(numbered(2, 2), 2, producer_id=1))
    assert committed(transactional(1, 0) + plain + marker(1, 4), [(1, 0)]) == [2, 3]


def test_markers_before_the_position_count() -> None:
    fetch = transactional(1, 0) + marker(1, 2) + transactional(1, 3)
    rows = rows_of(fetch, position=3, aborted=[AbortedTransaction(1, 0)], **COMMITTED)
    assert offsets_of(rows) == [3, 4]


def test_a_control_record_without_a_type_is_refused() -> None:
    broken = encode_batch(
        [Record(key=b"\0\0\0", value=b"")], producer_id=1, transactional=True, control=True
    )
    assert offsets_of(rows_of(broken)) == []
    with pytest.raises(CorruptRecordError, match="a control record with a key of 3 bytes"):
        committed(broken, [(1, 0)])


@pytest.mark.parametrize(
    "unseen",
    [
        marker(1, 5),
        encode_batch([], base_offset=5, last_offset_delta=0),
        transactional(1, 5, count=1),
    ],
    ids=["control", "emptied", "aborted"],
)
def test_what_is_not_seen_still_moves_the_position(unseen: bytes) -> None:
    (chunk,) = chunks(
        unseen,
        topic_partition=TOPIC_PARTITION,
        position=5,
        aborted=[AbortedTransaction(1, 5)],
        isolation_level=IsolationLevel.READ_COMMITTED,
    )
    assert (chunk.record_count, chunk.next_offset) == (0, 6)
    assert to_arrow(chunk, include_headers=True).num_rows == 0


def test_the_position_moves_past_records_that_compaction_removed() -> None:
    gap = encode_batch([Record(b"k", b"v")], base_offset=5, last_offset_delta=9)
    assert last(chunks(gap, topic_partition=TOPIC_PARTITION, position=8)).next_offset == 15


def test_the_position_never_moves_back() -> None:
    before = encoded(Batch(numbered(3), 0))
    assert last(chunks(before, topic_partition=TOPIC_PARTITION, position=50)).next_offset == 50


def test_a_range_that_ends_in_a_gap_is_read_to_its_end() -> None:
    fetch = encoded(Batch(numbered(3), 0)) + encoded(Batch(numbered(3, 20), 20))
    found = last(chunks(fetch, topic_partition=TOPIC_PARTITION, end=10))
    assert (found.record_count, found.next_offset, found.cut_batch_bytes) == (3, 10, 0)


def test_batches_outside_the_range_are_not_decompressed() -> None:
    rubbish = bytearray(encoded(Batch(numbered(3), 0, Codec.GZIP)))
    rubbish[61:] = bytes(len(rubbish) - 61)
    later = bytearray(rubbish)
    later[:8] = (6).to_bytes(8)
    fetch = with_crc(bytes(rubbish)) + encoded(Batch(numbered(3, 3), 3)) + with_crc(bytes(later))
    assert offsets_of(rows_of(fetch, position=3, end=6)) == [3, 4, 5]
    with pytest.raises(CorruptRecordError, match="at offset 6: cannot be decompressed as GZIP"):
        rows_of(fetch, position=3)


def test_what_lies_behind_the_end_of_the_range_is_not_looked_at() -> None:
    fetch = encoded(Batch(numbered(3), 0)) + b"\xff" * 99
    assert offsets_of(rows_of(fetch, end=3)) == [0, 1, 2]
    with pytest.raises(CorruptRecordError):
        rows_of(fetch)


def test_uncompressed_records_are_not_copied() -> None:
    fetch = memoryview(
        bytearray(encoded(Batch(numbered(3), 0)) + encoded(Batch(numbered(3, 3), 3)))
    )
    (chunk,) = chunks(fetch, topic_partition=TOPIC_PARTITION)
    assert isinstance(chunk.data, memoryview)
    assert chunk.data.obj is fetch.obj


@pytest.mark.parametrize("codec", Codec)
def test_a_large_batch_comes_in_chunks_of_about_the_size_asked_for(codec: Codec) -> None:
    rows = numbered(2000, value=bytes(100))
    found = list(
        chunks(encoded(Batch(rows, 0, codec)), topic_partition=TOPIC_PARTITION, chunk_bytes=10_000)
    )
    assert [row for chunk in found for row in rows_in(to_arrow(chunk, include_headers=True))] == [
        *rows
    ]
    assert max(chunk.size_bytes for chunk in found) < 11_000 + 33_000 * (codec is Codec.SNAPPY)
    assert [chunk.next_offset for chunk in found] == [
        chunk.segments[-1].first_offset + chunk.segments[-1].record_count for chunk in found
    ]


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_many_records_that_decompress_to_much_are_read_as_they_are_asked_for(codec: Codec) -> None:
    """The first chunk comes before the decoder finds an error at the batch's end."""
    fetch = encoded(Batch(numbered(20_000, value=bytes(1000)), 0, codec))[:-20] + bytes(20)
    found = chunks(with_crc(fetch), topic_partition=TOPIC_PARTITION, chunk_bytes=1 << 20)
    first = next(found)
    assert isinstance(first, Chunk)
    assert to_arrow(first).num_rows > 1000
    with pytest.raises(CorruptRecordError):
        list(found)


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.NONE])
def test_one_record_too_large_is_refused_before_it_is_decompressed(codec: Codec) -> None:
    fetch = encoded(Batch(numbered(1, value=bytes(8 << 20)), 0, codec))
    with pytest.raises(RecordTooLargeError, match=f"maxRecordBytes is {1 << 20}"):
        rows_of(fetch, limit=RecordLimit(1 << 20), chunk_bytes=1 << 16)


@pytest.mark.parametrize("chunk_bytes", [100, 1 << 20])
@pytest.mark.parametrize(("claimed", "reason"), [(39, "39 records"), (41, "41 records claimed")])
@pytest.mark.parametrize("codec", Codec)
def test_the_header_must_count_right(
    codec: Codec, claimed: int, reason: str, chunk_bytes: int
) -> None:
    fetch = bytearray(encoded(Batch(numbered(40), 0, codec, last_offset_delta=50)))
    fetch[57:61] = claimed.to_bytes(4)
    with pytest.raises(CorruptRecordError, match=reason):
        rows_of(with_crc(bytes(fetch)), chunk_bytes=chunk_bytes)


def test_good_batches_come_before_the_error_of_a_bad_one() -> None:
    good = encoded(Batch(numbered(3, 0), 0)) + encoded(Batch(numbered(2, 3), 3))
    bad = encoded(Batch(numbered(2, 5), 5))
    found = chunks(good + bad[:-1] + bytes([bad[-1] ^ 1]), topic_partition=TOPIC_PARTITION)
    first = next(found)
    assert (to_arrow(first).num_rows, first.next_offset) == (5, 5)
    with pytest.raises(CorruptRecordError, match="at offset 5"):
        next(found)


@pytest.mark.parametrize("offset", [-1, 0, 1, 2, 3, 4, 5, 9])
def test_the_records_of_a_chunk_before_an_offset(offset: int) -> None:
    fetch = encoded(Batch(numbered(3, 0), 0)) + encoded(Batch(numbered(2, 3), 3))
    (whole,) = chunks(fetch, topic_partition=TOPIC_PARTITION, position=1)
    part = whole.before(offset)
    assert to_arrow(part)["offset"].to_pylist() == list(range(1, min(offset, 5)))
    assert part.next_offset == min(max(offset, 1), 5)


def test_small_records_make_chunks_of_some_thousands() -> None:
    fetch = b"".join(encoded(Batch(numbered(900, base), base)) for base in range(0, 27_000, 900))
    found = list(chunks(fetch, topic_partition=TOPIC_PARTITION))
    assert [chunk.record_count for chunk in found] == [9_900, 9_900, 7_200]
    assert [chunk.next_offset for chunk in found] == [9_900, 19_800, 27_000]


def last(found: Iterable[Chunk]) -> Chunk:
    return list(found)[-1]
