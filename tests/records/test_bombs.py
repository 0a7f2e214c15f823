"""Decompression bombs: many records are read, a too large record is an error, memory is bounded."""

from collections.abc import Callable, Iterator
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.errors import CorruptRecordError, ProtocolError
from spark_kafka_source.records import (
    COLUMNS,
    COLUMNS_WITH_HEADERS,
    Chunk,
    Codec,
    Record,
    RecordLimit,
    RecordTooLargeError,
    chunks,
    compiled,
    encode_batch,
    record_batch,
)
from spark_kafka_source.records.batch import MAX_OFFSET
from spark_kafka_source.records.encode import encode_record, with_crc
from spark_kafka_source.records.unpacking import CHUNK_RECORDS, MAX_CHUNK_RECORDS
from spark_kafka_source.records.varints import encode_varint
from spark_kafka_source.records.walk import Run, runs
from tests.records.batches import TOPIC_PARTITION
from tests.records.strategies import untimed
from tests.traced import traced
from tools import bombs
from tools.bombs import MIB

LIMIT_BYTES = 4 * MIB
COMPRESSED = [codec for codec in Codec if codec is not Codec.NONE]
FRAMINGS = {codec.name: (codec, bombs.usual(codec)) for codec in Codec} | bombs.OTHER_STREAMS
STREAMED = [
    name for name in FRAMINGS if name not in ("snappy, one bare block", "snappy, blocks of 16 MiB")
]


def framed(framing: str, make: Callable[[], Iterator[bytes]], count: int) -> bytes:
    codec, stream = FRAMINGS[framing]
    size = sum(map(len, make()))
    return bombs.batch(codec, make(), record_count=count, stream=stream(size))


class Reading:
    """The offsets of a read, and the errors of too large records, which the read skips."""

    def __init__(
        self,
        data: bytes,
        columns: tuple[str, ...] = ("offset",),
        position: int = 0,
        end: int = MAX_OFFSET,
    ) -> None:
        self.told: list[RecordTooLargeError] = []
        self.offsets: list[int] = []
        self.next_offset = -1
        limit = RecordLimit(LIMIT_BYTES, self.told.append)
        for chunk in chunks(
            data, topic_partition=TOPIC_PARTITION, position=position, end=end, limit=limit
        ):
            self.offsets += record_batch(chunk, columns)["offset"].to_pylist()
            self.next_offset = chunk.next_offset

    @property
    def told_of(self) -> list[int]:
        return [error.offset for error in self.told]


def between(large_bytes: int, before: int = 2, after: int = 2) -> Iterator[bytes]:
    """Yield small records, a large one, and small ones again."""
    small = [bombs.record(delta, 10) for delta in range(before + 1 + after)]
    small[before] = bombs.record(before, large_bytes)
    return chain.from_iterable(small)


# -- many records ----------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", COMPRESSED)
def test_many_large_records_are_read_in_little_memory(codec: Codec) -> None:
    data = bombs.batch(codec, bombs.records(100, MIB), record_count=100)
    with traced() as memory:
        rows = 0
        for chunk in chunks(data, topic_partition=TOPIC_PARTITION):
            rows += record_batch(chunk, COLUMNS).num_rows
            del chunk
    assert rows == 100
    assert memory.peak_bytes < 16 * MIB


@pytest.mark.parametrize("codec", Codec)
def test_many_empty_records_come_in_chunks_of_some_thousands(codec: Codec) -> None:
    count = MAX_CHUNK_RECORDS + 1
    data = bombs.batch(codec, bombs.empty_records(count), record_count=count)
    found = list(chunks(data, topic_partition=TOPIC_PARTITION))
    assert max(chunk.record_count for chunk in found) == CHUNK_RECORDS
    offsets = [n for chunk in found for n in record_batch(chunk, ("offset",))["offset"].to_pylist()]
    assert offsets == list(range(count))


# -- a record too large ----------------------------------------------------------------------------


@pytest.mark.parametrize("framing", STREAMED)
def test_a_record_too_large_is_told_of_by_its_own_offset_and_size(framing: str) -> None:
    data = framed(framing, lambda: between(64 * MIB), 5)
    limit = RecordLimit(LIMIT_BYTES)
    found: list[Chunk] = []
    with pytest.raises(RecordTooLargeError) as caught:
        found += chunks(data, topic_partition=TOPIC_PARTITION, limit=limit)
    assert (caught.value.topic_partition, caught.value.offset) == (TOPIC_PARTITION, 2)
    size = len(b"".join(bombs.record(2, 64 * MIB)))
    assert caught.value.reason == f"a record of {size} bytes; maxRecordBytes is {LIMIT_BYTES}"


@pytest.mark.parametrize("framing", STREAMED)
def test_it_alone_is_passed_over_where_that_is_wanted(framing: str) -> None:
    reading = Reading(framed(framing, lambda: between(64 * MIB), 5))
    assert (reading.offsets, reading.told_of, reading.next_offset) == ([0, 1, 3, 4], [2], 5)


@pytest.mark.parametrize("framing", STREAMED)
def test_it_is_passed_over_without_being_put_together(framing: str) -> None:
    data = framed(framing, lambda: between(64 * MIB), 5)
    with traced() as memory:
        assert Reading(data).told_of == [2]
    assert memory.peak_bytes < 16 * MIB


@pytest.mark.parametrize(
    ("before", "after", "read"), [(0, 0, []), (0, 2, [1, 2]), (3, 0, [0, 1, 2])]
)
@pytest.mark.parametrize("codec", Codec)
def test_it_may_be_the_first_the_last_or_the_only_one(
    codec: Codec, before: int, after: int, read: list[int]
) -> None:
    count = before + 1 + after
    data = bombs.batch(codec, between(8 * MIB, before, after), record_count=count)
    reading = Reading(data)
    assert (reading.offsets, reading.told_of) == (read, [before])
    assert reading.next_offset == count


@pytest.mark.parametrize(("position", "end"), [(3, 5), (0, 2), (4, 5), (1, 2)])
def test_one_outside_the_range_is_nobodys_concern(position: int, end: int) -> None:
    data = bombs.batch(Codec.LZ4, between(8 * MIB), record_count=5)
    reading = Reading(data, position=position, end=end)
    assert (reading.offsets, reading.told) == (list(range(position, end)), [])
    assert reading.next_offset == end


def test_what_lies_behind_the_range_is_not_decompressed() -> None:
    data = bombs.batch(Codec.ZSTD, between(512 * MIB), record_count=5)
    assert Reading(with_crc(data[:-20] + bytes(20)), end=2).offsets == [0, 1]
    assert Reading(with_crc(data[:-20] + bytes(20)), end=3).told_of == [2]


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("more", [0, 1])
def test_exactly_the_limit_is_not_too_large(codec: Codec, more: int) -> None:
    pieces = chain(bombs.record_of_size(0, LIMIT_BYTES + more), bombs.record(1, 10))
    reading = Reading(bombs.batch(codec, pieces, record_count=2), COLUMNS)
    assert (reading.offsets, reading.told_of) == (([1], [0]) if more else ([0, 1], []))


@pytest.mark.parametrize(
    ("framing", "told_of", "read"),
    [("snappy, one bare block", 0, []), ("snappy, blocks of 16 MiB", 0, [])],
)
def test_a_block_of_snappy_too_large_takes_the_rest_of_its_batch_with_it(
    framing: str, told_of: int, read: list[int]
) -> None:
    first = framed(framing, lambda: bombs.record(0, 20 * MIB), 1)
    data = first + encode_batch([Record(b"k", b"v")], base_offset=1)
    reading = Reading(data)
    assert (reading.offsets, reading.told_of) == ([*read, 1], [told_of])
    assert f"bytes; maxRecordBytes is {LIMIT_BYTES}" in reading.told[0].reason
    assert reading.told[0].reason.endswith("it holds the records up to offset 0")
    with pytest.raises(RecordTooLargeError, match="a SNAPPY block of"):
        list(chunks(data, topic_partition=TOPIC_PARTITION, limit=RecordLimit(LIMIT_BYTES)))


@pytest.mark.parametrize("framing", ["snappy, one bare block", "snappy, blocks of 16 MiB"])
def test_a_block_too_large_is_told_of_from_where_one_reads_on(framing: str) -> None:
    """The error's offset is the position of the read, not the first offset of the batch."""

    def two() -> Iterator[bytes]:
        return chain(bombs.record(0, 10), bombs.record(1, 20 * MIB))

    assert Reading(framed(framing, two, 2), position=1).told_of == [1]


# -- false sizes -----------------------------------------------------------------------------------


def test_a_record_that_only_claims_to_be_large_is_corrupt() -> None:
    head = b"".join(bombs.record(0, 512 * MIB))[:3_000_000]
    data = bombs.batch(Codec.ZSTD, [head], record_count=1)
    with pytest.raises(CorruptRecordError, match=r"its last record lacks \d+ bytes") as caught:
        Reading(data)
    assert type(caught.value) is CorruptRecordError
    assert caught.value.offset == 0


def test_the_longest_record_that_there_can_be_is_told_of_as_any_other() -> None:
    """None of its bytes are needed: the length alone causes the error."""
    head = encode_varint((1 << 31) - 1) + bytes(3)
    told: list[RecordTooLargeError] = []
    limit = RecordLimit(LIMIT_BYTES, told.append)
    data = bombs.batch(Codec.LZ4, [head, bytes(8 * MIB)], record_count=1)
    with pytest.raises(CorruptRecordError, match=r"its last record lacks \d+ bytes"):
        list(chunks(data, topic_partition=TOPIC_PARTITION, limit=limit))
    assert [error.offset for error in told] == [0]
    assert f"a record of {(1 << 31) + 4} bytes" in told[0].reason


@pytest.mark.parametrize(
    "head",
    [
        b"\xff\xff\xff\xff\x0f\0\0\0",  # a negative length
        b"\xff\xff\xff\xff\x7f\0\0\0",  # one beyond 32 bits
        b"\x80\x80\x80\x80\x08\0\0\x64",  # the offset of another batch
        b"\x80\x80\x80\x80\x08\0\0\x01",  # an offset before the batch
    ],
)
def test_the_head_of_a_large_record_is_not_believed(head: bytes) -> None:
    data = bombs.batch(Codec.LZ4, [head, bytes(8 * MIB)], record_count=1)
    with pytest.raises(CorruptRecordError, match=r"a record of -?[0-9]+ bytes at offset") as caught:
        Reading(data)
    assert type(caught.value) is CorruptRecordError


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_count_that_does_not_fit_is_refused_before_rows_are_made_for_it(
    codec: Codec, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> bool:
        raise AssertionError("rows were made")

    monkeypatch.setattr(compiled, "kernels", lambda _=0: compiled.Kernels(never, never, never))
    for count in (20, MAX_CHUNK_RECORDS, (1 << 31) - 1):
        data = bombs.batch(codec, bombs.record(0, 100), record_count=count)
        with pytest.raises(CorruptRecordError, match=f"{count} records claimed"):
            Reading(data)


# -- headers ---------------------------------------------------------------------------------------


def test_many_headers_are_too_large_only_where_headers_are_asked_for() -> None:
    most = LIMIT_BYTES // 64
    pieces = chain(
        bombs.record(0, 9, most), bombs.record(1, 9, most + 1), bombs.record(2, 9, headers=1)
    )
    data = bombs.batch(Codec.ZSTD, pieces, record_count=3)
    reading = Reading(data, COLUMNS_WITH_HEADERS)
    assert (reading.offsets, reading.told_of) == ([0, 2], [1])
    assert str(reading.told[0]).endswith(
        f"a record of {most + 1} headers, of 64 bytes or more in memory; "
        f"maxRecordBytes is {LIMIT_BYTES}"
    )
    without = Reading(data, COLUMNS)
    assert (without.offsets, without.told) == ([0, 1, 2], [])


# -- cuts into runs --------------------------------------------------------------------------------


@untimed
@given(st.lists(st.integers(0, 400), max_size=30), st.data())
def test_runs_hold_every_record_once_however_the_bytes_are_cut(
    sizes: list[int], data: st.DataObject
) -> None:
    made = [encode_record(Record(value=bytes(n)), 0, delta) for delta, n in enumerate(sizes)]
    whole = b"".join(made)
    target = data.draw(st.integers(1, 200))
    limit = data.draw(st.integers(target, 450))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    most = data.draw(st.integers(1, 10))
    found: list[int] = []
    for run in runs(
        [(b"\xff" + piece + b"\xff", 1, 1 + len(piece)) for piece in pieces],
        target_bytes=target,
        most_records=most,
        max_record_bytes=limit,
    ):
        if isinstance(run, Run):
            starts = zip(run.positions, run.positions[1:], strict=False)
            records = [bytes(run.data[start:end]) for start, end in starts]
            assert records == made[len(found) : len(found) + len(records)]
            assert len(records) <= most
            assert sum(map(len, records[:-1])) < target
            found += map(len, records)
        else:
            assert run.size > limit
            assert made[len(found)].startswith(run.head[: run.size])
            found.append(run.size)
    assert found == list(map(len, made))
    assert all(size <= limit for size in found) or limit < 450


@untimed
@given(st.integers(1, 300), st.integers(1, 20))
def test_what_is_cut_at_the_end_is_refused(size: int, missing: int) -> None:
    whole = encode_record(Record(value=bytes(size)), 0, 0) * 2
    buffers = [(whole, 0, max(len(whole) - missing, 1))]
    if len(whole) // 2 > missing:
        with pytest.raises(ProtocolError, match=r"no whole record|lacks"):
            list(runs(buffers, target_bytes=50, most_records=9, max_record_bytes=100))
