"""Stage 2a: where each record's fields lie, found for all records of a chunk at once.

The layout of a record is https://kafka.apache.org/documentation/#record. Only the chain of lengths
is walked by an interpreted loop; every other varint is read with numpy. Nothing is believed until
all positions have been held against the records' ends, in one pass at the end.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from spark_kafka_source.errors import CorruptRecordError
from spark_kafka_source.records.chunk import Chunk
from spark_kafka_source.records.types import TimestampType
from spark_kafka_source.records.varints import VARLONG_BYTES, Integers, varints
from spark_kafka_source.records.walk import walk

MIN_HEADER_BYTES = 2

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Located:
    """One row per record, in arrays; positions count bytes of the chunk's data. Null is length -1.

    From `headers_start` to `end` lie `header_count` headers, not looked into so far.
    """

    offset: Integers
    timestamp_ms: Integers
    timestamp_type: Integers
    key_start: Integers
    key_length: Integers
    value_start: Integers
    value_length: Integers
    headers_start: Integers
    header_count: Integers
    end: Integers

    def rows(self, first: int, stop: int) -> "Located":
        """The rows from `first` to `stop`; a view."""
        if first == 0 and stop >= len(self.offset):
            return self
        return Located(*(getattr(self, field.name)[first:stop] for field in fields(self)))


def locate(chunk: Chunk) -> Located:
    """The fields of the chunk's records with offsets in `[position, end)`.

    Raises `CorruptRecordError`, naming the batch and the record in it, for every record that does
    not fill its length, whether in the range or not.
    """
    data = np.frombuffer(chunk.data, np.uint8)
    segments = _Segments(chunk)
    start, end = segments.walked()
    length, at = varints(data, start)
    timestamp_delta, at = varints(data, at + 1, VARLONG_BYTES)  # after the attributes, all unused
    offset_delta, at = varints(data, at)
    key_length, key_start = varints(data, at)
    value_length, value_start = varints(data, key_start + np.maximum(key_length, 0))
    header_count, headers_start = varints(data, value_start + np.maximum(value_length, 0))

    headers_bytes = end - headers_start
    refuse = segments.refuse
    refuse(length < 0, "its length is negative")
    refuse(headers_bytes < 0, "its fields do not end where it ends")
    refuse((key_length < -1) | (value_length < -1), "its key or value has a negative length")
    refuse(header_count < 0, "its header count is negative")
    refuse(header_count * MIN_HEADER_BYTES > headers_bytes, "its headers do not fit in")
    refuse((header_count == 0) & (headers_bytes > 0), "bytes follow its last field")
    offset = segments.offsets(offset_delta)
    located = Located(
        offset,
        *segments.timestamps(timestamp_delta),
        key_start,
        key_length,
        value_start,
        value_length,
        headers_start,
        header_count,
        end,
    )
    return located.rows(*np.searchsorted(offset, (chunk.position, chunk.end)).tolist())


class _Segments:
    """A chunk's segments as arrays with one element per segment, or per record."""

    def __init__(self, chunk: Chunk) -> None:
        self._chunk = chunk
        self._counts = np.array([segment.record_count for segment in chunk.segments], np.int64)

    def walked(self) -> tuple[Integers, Integers]:
        """Each record's start and end."""
        starts: list[int] = []
        for index, segment in enumerate(self._chunk.segments):
            positions = walk(self._chunk.data, segment.start, segment.end)
            stop = positions.pop()
            if stop != segment.end or len(positions) != segment.record_count:
                found = f"{len(positions)} found, to byte {stop - segment.start}"
                claimed = (
                    f"{segment.record_count} records claimed in {segment.end - segment.start} bytes"
                )
                raise self._corrupt(index, f"{claimed}, {found}")
            starts += positions
        start = np.fromiter(starts, np.int64, len(starts))
        end = np.empty_like(start)
        end[:-1] = start[1:]
        end[np.cumsum(self._counts) - 1] = [segment.end for segment in self._chunk.segments]
        return start, end

    def offsets(self, delta: Integers) -> Integers:
        """The records' offsets, which must rise, and lie in their batch."""
        headers = [segment.header for segment in self._chunk.segments]
        offset = delta + self._spread([header.base_offset for header in headers])
        last = self._spread([header.last_offset for header in headers])
        first = self._spread([segment.first_offset for segment in self._chunk.segments])
        self.refuse((offset < first) | (offset > last), "its offset is not one of its batch")
        self.refuse(np.diff(offset, prepend=-1) <= 0, "its offset does not rise")
        return offset

    def timestamps(self, delta: Integers) -> tuple[Integers, Integers]:
        """The records' timestamps in milliseconds, and who set them.

        A delta wraps around at 64 bits, as Kafka's own does, and so always finds its way back.
        """
        headers = [segment.header for segment in self._chunk.segments]
        kind = self._spread([header.timestamp_type for header in headers])
        created = delta + self._spread([header.base_timestamp for header in headers])
        appended = self._spread([header.max_timestamp for header in headers])
        return np.where(kind == TimestampType.LOG_APPEND_TIME, appended, created), kind

    def _spread(self, values: Sequence[int]) -> Integers:
        return np.repeat(np.array(values, np.int64), self._counts)

    def refuse(self, bad: Mask, reason: str) -> None:
        """Raises for the first record that is bad, if any."""
        if bad.any():
            record = int(bad.argmax())
            index = int(np.searchsorted(np.cumsum(self._counts), record, side="right"))
            nth = record - int(self._counts[:index].sum()) + 1
            raise self._corrupt(index, f"record {nth} of {self._counts[index]}: {reason}")

    def _corrupt(self, index: int, reason: str) -> CorruptRecordError:
        base_offset = self._chunk.segments[index].header.base_offset
        return CorruptRecordError(self._chunk.topic_partition, base_offset, reason)
