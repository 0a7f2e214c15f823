"""Stage 1: checks and decompresses the records of a fetch, and cuts them into small chunks."""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from typing import TypeAlias

from spark_kafka_source.errors import CorruptRecordError, ProtocolError
from spark_kafka_source.records.batch import (
    CODEC_BITS,
    HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
    MAX_OFFSET,
    MIN_RECORD_BYTES,
    BatchHeader,
    batches,
    cut_batch_bytes,
)
from spark_kafka_source.records.chunk import Chunk, Parts, Segment
from spark_kafka_source.records.compression import Decompressor, TooLargeError
from spark_kafka_source.records.transactions import Visibility, offset_delta
from spark_kafka_source.records.types import (
    CHUNK_BYTES,
    AbortedTransaction,
    Bytes,
    IsolationLevel,
    RecordLimit,
    RecordTooLargeError,
)
from spark_kafka_source.records.varints import varint
from spark_kafka_source.records.walk import Oversized, Run, runs
from spark_kafka_source.topic_partition import TopicPartition

MAX_CHUNK_BYTES = 32 << 20
"""The most bytes of a chunk. No column, not even the topic's, outgrows Arrow's 32-bit offsets."""

CHUNK_RECORDS = 10_000
"""The usual most records of a chunk. With small records a chunk's arrays then fit a cache."""

MAX_CHUNK_RECORDS = 5 * CHUNK_RECORDS
"""The most records of any chunk. Larger batches are cut, which takes a second walk over them. Each
record takes up to 1 KiB in memory while it is read."""

MAX_LENGTH = (1 << 31) - 1

MIN_PIECE_BYTES = 64 << 10


_as_segment = partial(tuple.__new__, Segment)

Part: TypeAlias = tuple[Bytes, Segment | None, int]
"""A buffer, the segment in it or None, and the offset to continue from."""


def chunks(
    records: Bytes,
    *,
    topic_partition: TopicPartition,
    position: int = 0,
    end: int = MAX_OFFSET,
    check_crcs: bool = True,
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    aborted: Iterable[AbortedTransaction] = (),
    chunk_bytes: int = CHUNK_BYTES,
    limit: RecordLimit | None = None,
) -> Iterator[Chunk]:
    """Yield the records of one partition of a Fetch response with offsets in `[position, end)`.

    There is at least one chunk. The `next_offset` of the last chunk is where the next fetch must
    start. Decompression goes no further than the next chunk needs, so a batch of many records is
    read in bounded memory. Batches outside the range and control batches are not decompressed. With
    READ_COMMITTED the batches of `aborted` transactions (of the same response, in any order) are
    not decompressed either. Uncompressed records are not copied: a chunk may hold on to `records`.

    `chunk_bytes` (default 2 MiB, at most 32 MiB) is the target size. A chunk exceeds it by at most
    one record. A chunk has more than 10,000 records only if they are of one batch, and never more
    than 50,000.

    Raises `CorruptRecordError` and its subclasses. `UnsupportedRecordFormatError` is for another
    format. `RecordTooLargeError` is for a record in the range, or a snappy block, that takes more
    than `limit` (default 256 MiB), unless `limit` passes over it. A record is passed over alone, a
    block with the rest of its batch. The records of good batches before the bad one come first, and
    nothing was skipped silently.
    """
    unpacking = _Unpacking(
        memoryview(records),
        topic_partition,
        position=position,
        end=end,
        chunk_bytes=min(chunk_bytes, MAX_CHUNK_BYTES),
        limit=limit or RecordLimit(),
    )
    return unpacking.chunks(check_crcs, Visibility(isolation_level, aborted))


class _Unpacking:
    """State of one `chunks` call: the records that wait to become the next chunk."""

    def __init__(
        self,
        records: memoryview,
        topic_partition: TopicPartition,
        *,
        position: int,
        end: int,
        chunk_bytes: int,
        limit: RecordLimit,
    ) -> None:
        self._records, self._topic_partition = records, topic_partition
        self._position, self._end = position, end
        self._chunk_bytes, self._limit = chunk_bytes, limit
        self._decompressor = Decompressor(max(chunk_bytes, MIN_PIECE_BYTES), limit.max_bytes)
        self._next_offset = position
        self._waiting: list[tuple[Bytes, Segment]] = []
        self._waiting_bytes = self._waiting_records = 0

    def chunks(self, check_crcs: bool, visibility: Visibility) -> Iterator[Chunk]:
        try:
            yield from self._chunks(check_crcs, visibility)
        except CorruptRecordError as error:
            if not isinstance(error, RecordTooLargeError):
                self._keep_before(error.offset)
            if self._waiting:
                yield self._chunk()
            raise

    def _keep_before(self, bad_batch: int) -> None:
        """Keep only the waiting records of batches before this offset: a bad batch has none."""
        self._waiting = [waiting for waiting in self._waiting if waiting[1].last_offset < bad_batch]
        if self._waiting:
            last_offset = self._waiting[-1][1].last_offset
            self._next_offset = max(self._position, min(self._end, last_offset + 1))

    def _chunks(self, check_crcs: bool, visibility: Visibility) -> Iterator[Chunk]:
        at = 0
        for header, payload in batches(self._records, self._topic_partition, check_crcs=check_crcs):
            at += HEADER_BYTES
            if header.base_offset < self._end:
                yield from self._batch(header, payload, at, visibility)
            self._move_to(header.base_offset + header.last_offset_delta + 1)
            at += len(payload)
            if self._next_offset >= self._end:
                at = len(self._records)
                break
        yield self._chunk(cut_batch_bytes(self._records, at, self._topic_partition))

    def _batch(
        self, header: BatchHeader, payload: memoryview, at: int, visibility: Visibility
    ) -> Iterator[Chunk]:
        last_offset = header.base_offset + header.last_offset_delta
        try:
            if not visibility.sees(header, payload) or last_offset < self._position:
                return
            yield from self._visible(header, payload, at)
        except ProtocolError as reason:
            text = str(reason)
            raise CorruptRecordError(self._topic_partition, header.base_offset, text) from reason

    def _visible(self, header: BatchHeader, payload: memoryview, at: int) -> Iterator[Chunk]:
        try:
            for buffer, segment, next_offset in self._parts(header, payload, at):
                if segment:
                    yield from self._add_waiting(buffer, segment)
                del buffer
                self._move_to(next_offset)
                if self._next_offset >= self._end:
                    return
        except TooLargeError as reason:
            first = max(self._next_offset, header.base_offset)
            text = f"{reason}; it holds the records up to offset {header.last_offset}"
            self._limit.exceeded(RecordTooLargeError(self._topic_partition, first, text))

    def _add_waiting(self, buffer: Bytes, segment: Segment) -> Iterator[Chunk]:
        """Let a segment wait. First yield the waiting ones as a chunk if they leave no room."""
        size = segment.end - segment.start
        if self._waiting and (
            self._waiting_bytes + size > self._chunk_bytes
            or self._waiting_records + segment.record_count > CHUNK_RECORDS
        ):
            yield self._chunk()
        self._waiting.append((buffer, segment))
        self._waiting_bytes += size
        self._waiting_records += segment.record_count

    def _parts(self, header: BatchHeader, payload: memoryview, at: int) -> Iterable[Part]:
        if header.record_count == 0:  # compacted until nothing was left
            return ()
        few = header.record_count <= MAX_CHUNK_RECORDS
        if not header.attributes & CODEC_BITS:
            if few and len(payload) <= self._chunk_bytes:
                return (_whole(header, self._records, at, at + len(payload)),)
            return self._cut(header, [(self._records, at, at + len(payload))])
        pieces = self._decompressor.pieces(header.codec, payload)
        ahead = [next(pieces, b"")]
        if few and len(ahead[0]) <= self._chunk_bytes:
            ahead.append(next(pieces, b""))
            if not ahead[1]:
                return (_whole(header, ahead[0], 0, len(ahead[0])),)
        return self._cut(header, map(_whole_buffer, chain(_popped(ahead), pieces)))

    def _cut(
        self, header: BatchHeader, buffers: Iterable[tuple[Bytes, int, int]]
    ) -> Iterator[Part]:
        """Yield the records of a batch that is too large for one chunk, in smaller parts."""
        count, offset = 0, header.base_offset
        for run in runs(
            buffers,
            target_bytes=self._chunk_bytes,
            most_records=CHUNK_RECORDS,
            max_record_bytes=self._limit.max_bytes,
        ):
            count += 1 if isinstance(run, Oversized) else len(run.positions) - 1
            if count > header.record_count:
                break
            part = self._part(header, run, offset)
            offset = part[-1]
            del run
            yield part
            del part
        if count != header.record_count:
            more = " or more" * (count > header.record_count)
            raise ProtocolError(f"{header.record_count} records claimed, {count}{more} found")

    def _part(self, header: BatchHeader, run: Run | Oversized, first_offset: int) -> Part:
        if isinstance(run, Oversized):
            return b"", None, self._pass_over(header, run, first_offset) + 1
        data, positions = run
        last_delta, _ = offset_delta(data, positions[-2])
        count = len(positions) - 1
        segment = _segment(header, positions[0], positions[-1], count, first_offset)
        return data, segment, header.base_offset + last_delta + 1

    def _pass_over(self, header: BatchHeader, record: Oversized, first_offset: int) -> int:
        """Report a record that is too large, if it is in the range, and return its offset."""
        length, _ = varint(record.head, 0)
        delta, _ = offset_delta(record.head, 0)
        offset = header.base_offset + delta
        if not (0 <= length <= MAX_LENGTH and first_offset <= offset <= header.last_offset):
            raise ProtocolError(f"a record of {length} bytes at offset {offset}")
        if self._position <= offset < self._end:
            text = f"a record of {record.size} bytes; maxRecordBytes is {self._limit.max_bytes}"
            self._limit.exceeded(RecordTooLargeError(self._topic_partition, offset, text))
        return offset

    def _move_to(self, offset: int) -> None:
        if offset > self._next_offset:
            self._next_offset = max(self._next_offset, min(offset, self._end))

    def _chunk(self, cut_batch_bytes: int = 0) -> Chunk:
        """Make a chunk of all waiting segments."""
        waiting, self._waiting = self._waiting, []
        self._waiting_bytes = self._waiting_records = 0
        return Chunk(
            self._topic_partition,
            self._position,
            self._end,
            Parts([buffer for buffer, _ in waiting], [segment for _, segment in waiting]),
            self._next_offset,
            cut_batch_bytes,
            self._limit,
        )


def _whole(header: BatchHeader, buffer: Bytes, start: int, end: int) -> Part:
    """Return a batch as one part. Check its record count before memory for rows is allocated."""
    if header.record_count * MIN_RECORD_BYTES > end - start:
        raise ProtocolError(f"{header.record_count} records claimed in {end - start} bytes")
    segment = _segment(header, start, end, header.record_count, header.base_offset)
    return buffer, segment, segment.last_offset + 1


def _segment(
    header: BatchHeader, start: int, end: int, record_count: int, first_offset: int
) -> Segment:
    base_offset, _, _, _, _, attributes, delta, base_timestamp, max_timestamp, _, _, _, _ = header
    timestamp_type = (attributes & LOG_APPEND_TIME_BIT) // LOG_APPEND_TIME_BIT
    return _as_segment(
        (
            start,
            end,
            record_count,
            first_offset,
            base_offset,
            base_offset + delta,
            base_timestamp,
            max_timestamp,
            timestamp_type,
        )
    )


def _whole_buffer(buffer: Bytes) -> tuple[Bytes, int, int]:
    return buffer, 0, len(buffer)


def _popped(pieces: list[Bytes]) -> Iterator[Bytes]:
    """Yield each piece and drop the list's reference to it: a snappy block may be large."""
    while pieces:
        yield pieces.pop(0)
