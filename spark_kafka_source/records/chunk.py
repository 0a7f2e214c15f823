"""Stage 1: a fetch's records, checked and decompressed, as chunks that fit a cache."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import NamedTuple, TypeAlias

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
from spark_kafka_source.records.compression import Decompressor, TooLargeError
from spark_kafka_source.records.transactions import Visibility, offset_delta
from spark_kafka_source.records.types import (
    AbortedTransaction,
    Bytes,
    IsolationLevel,
    RecordBatchTooLargeError,
)
from spark_kafka_source.records.walk import runs
from spark_kafka_source.topic_partition import TopicPartition

CHUNK_BYTES = 2 << 20
MAX_CHUNK_BYTES = 32 << 20
"""So that no column, not even the topic's names, outgrows Arrow's 32-bit offsets."""

CHUNK_RECORDS = 10_000
"""So that a chunk's arrays fit a cache, too, where its records are small."""

MAX_RECORD_BYTES = 256 << 20

MIN_PIECE_BYTES = 64 << 10


class Segment(NamedTuple):
    """The records of one batch or of a part of one: `record_count` of them in `data[start:end]`.

    Integers only, so that all segments of a chunk are one array.
    """

    start: int
    end: int
    record_count: int
    first_offset: int
    """No record's offset may be lower."""
    base_offset: int
    last_offset: int
    base_timestamp: int
    max_timestamp: int
    timestamp_type: int


_as_segment = partial(tuple.__new__, Segment)

Part: TypeAlias = tuple[Bytes, Segment, int]
"""A buffer, a segment that lies in it, and the offset to read on from after it."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """What stage 2 makes one Arrow record batch of: `to_arrow(chunk)`.

    `next_offset` is where to read on after this chunk, never below `position` nor beyond `end`: it
    passes over what is not seen, too. `cut_batch_bytes` is the size in bytes of the batch that was
    cut at the end of the fetch, 0 where none was: a fetch that began with it must be repeated with
    at least so many.
    """

    topic_partition: TopicPartition
    position: int
    end: int
    data: Bytes
    segments: tuple[Segment, ...]
    next_offset: int
    cut_batch_bytes: int = 0

    @property
    def record_count(self) -> int:
        """How many records there are, those before `position` and from `end` on included."""
        return sum(segment.record_count for segment in self.segments)

    @property
    def size_bytes(self) -> int:
        """The size of the records, decompressed."""
        return sum(segment.end - segment.start for segment in self.segments)


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
    max_record_bytes: int = MAX_RECORD_BYTES,
) -> Iterator[Chunk]:
    """The records of one partition of a Fetch response with offsets in `[position, end)`.

    Yields at least one chunk, the last of them with where the next fetch must start, and
    decompresses no further than the next one: a batch of many records is read in bounded memory.
    Batches outside the range, control batches and, with READ_COMMITTED, those of `aborted`
    transactions (of the same response, in any order) are not decompressed. Uncompressed records
    are not copied: a chunk may hold on to `records`.

    `chunk_bytes` (default 2 MiB, at most 32 MiB) is the size that a chunk does not pass by more
    than a record; 10,000 records it passes only where they are of one batch. Raises
    `CorruptRecordError`, and its kinds `RecordBatchTooLargeError`, where a record, or a block of
    snappy, takes more than `max_record_bytes` (default 256 MiB), and
    `UnsupportedRecordFormatError`. Nothing was skipped silently when it is raised.
    """
    unpacking = _Unpacking(
        memoryview(records),
        topic_partition,
        position=position,
        end=end,
        chunk_bytes=min(chunk_bytes, MAX_CHUNK_BYTES),
        max_record_bytes=max_record_bytes,
    )
    return unpacking.chunks(check_crcs, Visibility(isolation_level, aborted))


class _Unpacking:
    """The state of one `chunks` call: what waits to become the next chunk."""

    def __init__(
        self,
        records: memoryview,
        topic_partition: TopicPartition,
        *,
        position: int,
        end: int,
        chunk_bytes: int,
        max_record_bytes: int,
    ) -> None:
        self._records, self._topic_partition = records, topic_partition
        self._position, self._end = position, end
        self._chunk_bytes, self._max_record_bytes = chunk_bytes, max_record_bytes
        self._decompressor = Decompressor(max(chunk_bytes, MIN_PIECE_BYTES), max_record_bytes)
        self._next_offset = position
        self._waiting: list[tuple[Bytes, Segment]] = []
        self._waiting_bytes = self._waiting_records = 0

    def chunks(self, check_crcs: bool, visibility: Visibility) -> Iterator[Chunk]:
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
        try:
            last_offset = header.base_offset + header.last_offset_delta
            if not visibility.sees(header, payload) or last_offset < self._position:
                return
            for buffer, segment, next_offset in self._parts(header, payload, at):
                size = segment.end - segment.start
                if self._waiting and (
                    self._waiting_bytes + size > self._chunk_bytes
                    or self._waiting_records + segment.record_count > CHUNK_RECORDS
                ):
                    yield self._chunk()
                self._waiting.append((buffer, segment))
                self._waiting_bytes += size
                self._waiting_records += segment.record_count
                self._move_to(next_offset)
                if self._next_offset >= self._end:
                    return
        except ProtocolError as reason:
            too_large = isinstance(reason, TooLargeError)
            kind = RecordBatchTooLargeError if too_large else CorruptRecordError
            raise kind(self._topic_partition, header.base_offset, str(reason)) from reason

    def _parts(self, header: BatchHeader, payload: memoryview, at: int) -> Iterable[Part]:
        if header.record_count == 0:  # compacted until nothing was left
            return ()
        if not header.attributes & CODEC_BITS:
            if len(payload) <= self._chunk_bytes:
                return (_whole(header, self._records, at, at + len(payload)),)
            return self._cut(header, [(self._records, at, at + len(payload))])
        pieces = self._decompressor.pieces(header.codec, payload)
        ahead = list(islice(pieces, 2))
        if not ahead:
            raise ProtocolError(f"{header.record_count} records claimed in 0 bytes")
        if len(ahead) == 1 and len(ahead[0]) <= self._chunk_bytes:
            _check_room(header.record_count, len(ahead[0]))
            return (_whole(header, ahead[0], 0, len(ahead[0])),)
        return self._cut(header, ((piece, 0, len(piece)) for piece in chain(ahead, pieces)))

    def _cut(
        self, header: BatchHeader, buffers: Iterable[tuple[Bytes, int, int]]
    ) -> Iterator[Part]:
        """The records of a batch larger than a chunk, in parts that are not."""
        found, offset = 0, header.base_offset
        for buffer, positions in runs(buffers, self._chunk_bytes, self._max_record_bytes):
            count = len(positions) - 1
            part = _segment(header, positions[0], positions[-1], count, offset)
            offset = header.base_offset + offset_delta(buffer, positions[-2])[0] + 1
            found += count
            if found > header.record_count:
                break
            yield buffer, part, offset
        if found != header.record_count:
            more = " or more" * (found > header.record_count)
            raise ProtocolError(f"{header.record_count} records claimed, {found}{more} found")

    def _move_to(self, offset: int) -> None:
        if offset > self._next_offset:
            self._next_offset = max(self._next_offset, min(offset, self._end))

    def _chunk(self, cut_batch_bytes: int = 0) -> Chunk:
        """All that waits, over one buffer: the only one there is, or else a joined one."""
        waiting, self._waiting = self._waiting, []
        self._waiting_bytes = self._waiting_records = 0
        segments = tuple(segment for _, segment in waiting)
        data: Bytes = waiting[0][0] if waiting else b""
        if any(buffer is not data for buffer, _ in waiting):
            data = b"".join(
                memoryview(buffer)[segment.start : segment.end] for buffer, segment in waiting
            )
            segments = tuple(_end_to_end(segments))
        return Chunk(
            self._topic_partition,
            self._position,
            self._end,
            data,
            segments,
            self._next_offset,
            cut_batch_bytes,
        )


def _check_room(record_count: int, size: int) -> None:
    """For so many records rows are made room for, before any of them is looked at."""
    if record_count * MIN_RECORD_BYTES > size:
        raise ProtocolError(f"{record_count} records claimed in {size} bytes")


def _whole(header: BatchHeader, buffer: Bytes, start: int, end: int) -> Part:
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


def _end_to_end(segments: Iterable[Segment]) -> Iterator[Segment]:
    start = 0
    for segment in segments:
        end = start + segment.end - segment.start
        yield segment._replace(start=start, end=end)
        start = end
