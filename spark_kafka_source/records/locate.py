"""Stage 2a: positions of each record's fields, found for all records of a chunk at once.

The layout of a record is https://kafka.apache.org/documentation/#record. Without a compiled kernel,
Python code walks only the chain of record lengths, and numpy reads all other varints. No position
is trusted until one pass at the end has compared all positions with the ends of the records.
"""

from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np

from spark_kafka_source.errors import CorruptRecordError
from spark_kafka_source.records import compiled
from spark_kafka_source.records.chunk import Chunk, Segment
from spark_kafka_source.records.located import Located, Mask, Slices
from spark_kafka_source.records.types import Bytes, TimestampType
from spark_kafka_source.records.varints import VARLONG_BYTES, Integers, Octets, varints
from spark_kafka_source.records.walk import walk

MIN_HEADER_BYTES = 2


def locate(chunk: Chunk) -> Located:
    """Locate the fields of the chunk's records with offsets in `[position, end)`.

    Raises `CorruptRecordError`, with the batch and the record in it, for any record whose fields do
    not fill its length, in the range or not.
    """
    segments = Segments(chunk)
    kernels = compiled.kernels(segments.record_count)
    located = by_kernel(segments, kernels.locate_records) if kernels else None
    if located is None:
        located = by_numpy(segments)
    bounds = np.searchsorted(located.offset, (chunk.position, chunk.end))
    return located.rows(*bounds.tolist())


def by_kernel(segments: "Segments", locate_records: Callable[..., bool]) -> Located | None:
    """Locate all fields in one compiled pass. None for bad records: `by_numpy` says why."""
    count = segments.record_count
    timestamp_delta, offset, headers_start, header_count, end = np.empty((5, count), np.int64)
    key, value = Slices.room(count), Slices.room(count)
    sound = locate_records(
        segments.data,
        segments.table,
        timestamp_delta,
        offset,
        key.bounds,
        key.null,
        value.bounds,
        value.null,
        headers_start,
        header_count,
        end,
    )
    if not sound:
        return None
    timestamp_ms, types = segments.timestamps(timestamp_delta), segments.timestamp_types()
    return Located(offset, timestamp_ms, types, key, value, headers_start, header_count, end)


def by_numpy(segments: "Segments") -> Located:
    """Locate field after field, each for all records at once. Raises as `locate` does."""
    data = segments.data
    start, end = segments.walked()
    length, at = varints(data, start)
    timestamp_delta, at = varints(data, at + 1, VARLONG_BYTES)  # after the attributes, all unused
    offset_delta, at = varints(data, at)
    key_length, key_start = varints(data, at)
    value_length, value_start = varints(data, key_start + np.maximum(key_length, 0))
    header_count, headers_start = varints(data, value_start + np.maximum(value_length, 0))

    headers_bytes = end - headers_start
    spare_bytes = headers_bytes - MIN_HEADER_BYTES * header_count
    stray_bytes = (header_count - 1) & -headers_bytes  # negative where bytes follow no headers
    # A sign bit anywhere survives the OR. Only then is it worth finding the record and the reason.
    signs = length | headers_bytes | (key_length + 1) | (value_length + 1) | header_count
    if (signs | spare_bytes | stray_bytes).min(initial=0) < 0:
        refuse = segments.refuse
        refuse(length < 0, "its length is negative")
        refuse(headers_bytes < 0, "its fields do not end where it ends")
        refuse((key_length < -1) | (value_length < -1), "its key or value has a negative length")
        refuse(header_count < 0, "its header count is negative")
        refuse(spare_bytes < 0, "its headers do not fit in")
        refuse(stray_bytes < 0, "bytes follow its last field")
    return Located(
        segments.offsets(offset_delta),
        segments.timestamps(timestamp_delta),
        segments.timestamp_types(),
        Slices.of(key_start, key_length),
        Slices.of(value_start, value_length),
        headers_start,
        header_count,
        end,
    )


def octets(data: Bytes) -> Octets:
    """Return bytes as an array, as compiled kernels take it."""
    array: Octets = np.frombuffer(data, np.uint8)
    array.flags.writeable = False  # numba gives read-only arrays a type of their own
    return array


class Segments:
    """Segments of a chunk as arrays, with one element per segment or per record."""

    def __init__(self, chunk: Chunk, segments: Sequence[Segment] | None = None) -> None:
        """`segments` are those of `chunk.data`, unless given."""
        self._chunk = chunk
        numbers = chain.from_iterable(chunk.segments if segments is None else segments)
        self.table: Integers = np.fromiter(numbers, np.int64).reshape(-1, len(Segment._fields))
        """A row for each segment, with the fields of `Segment` as columns."""
        self._counts = self._column("record_count")
        self.record_count = int(self._counts.sum())

    @property
    def data(self) -> Octets:
        """The bytes that hold all segments."""
        return octets(self._chunk.data)

    def _column(self, name: str) -> Integers:
        return self.table[:, Segment._fields.index(name)]

    def walked(self) -> tuple[Integers, Integers]:
        """Return each record's start and end."""
        starts: list[int] = []
        for index, segment in enumerate(self._chunk.segments):
            positions = walk(self._chunk.data, segment.start, segment.end)
            stop = positions.pop()
            if stop != segment.end or len(positions) != segment.record_count:
                read = f"{len(positions)} found, to byte {stop - segment.start}"
                claimed = (
                    f"{segment.record_count} records claimed in {segment.end - segment.start} bytes"
                )
                raise self._corrupt(index, f"{claimed}, {read}")
            starts += positions
        start = np.fromiter(starts, np.int64, len(starts))
        end = np.empty_like(start)
        end[:-1] = start[1:]
        end[np.cumsum(self._counts) - 1] = self._column("end")
        return start, end

    def offsets(self, delta: Integers) -> Integers:
        """Return the records' offsets. They must rise, and lie in their batch."""
        offset = delta + self._spread("base_offset")
        stop = np.cumsum(self._counts)
        rises = offset[1:] > offset[:-1]
        starts_within = offset[stop - self._counts] >= self._column("first_offset")
        ends_within = offset[stop - 1] <= self._column("last_offset")
        # If offsets rise, the first and the last of a segment are enough to check its range.
        if not (rises.all() and starts_within.all() and ends_within.all()):
            low = offset < self._spread("first_offset")
            high = offset > self._spread("last_offset")
            self.refuse(low | high, "its offset is not one of its batch")
            self.refuse(np.diff(offset, prepend=-1) <= 0, "its offset does not rise")
        return offset

    def timestamps(self, delta: Integers) -> Integers:
        """Return the records' timestamps in milliseconds.

        A delta wraps around at 64 bits, as Kafka's does, so the sum is always the original
        timestamp.
        """
        kind = self._column("timestamp_type")
        created = delta + self._spread("base_timestamp")
        if not kind.any():
            return created
        appended = self._spread("max_timestamp")
        return np.where(self.timestamp_types() == TimestampType.LOG_APPEND_TIME, appended, created)

    def timestamp_types(self) -> Integers:
        """Return the timestamp type of each record."""
        return self._spread("timestamp_type")

    def _spread(self, name: str) -> Integers:
        return np.repeat(self._column(name), self._counts)

    def refuse(self, bad: Mask, reason: str) -> None:
        """Raise for the first bad record, if any."""
        if bad.any():
            record = int(bad.argmax())
            index = int(np.searchsorted(np.cumsum(self._counts), record, side="right"))
            nth = record - int(self._counts[:index].sum()) + 1
            raise self._corrupt(index, f"record {nth} of {self._counts[index]}: {reason}")

    def _corrupt(self, index: int, reason: str) -> CorruptRecordError:
        base_offset = self._chunk.segments[index].base_offset
        return CorruptRecordError(self._chunk.topic_partition, base_offset, reason)
