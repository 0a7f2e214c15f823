"""Stage 2 in one compiled pass: it finds each record's key and value, and copies them into columns.

It reads each byte once, in the buffer into which it was decompressed. `locate` and `gather` give
the same columns for all chunks. They need the records in one buffer, and read them twice.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spark_kafka_source.records.chunk import Chunk, Parts
from spark_kafka_source.records.locate import Segments, octets
from spark_kafka_source.records.located import Mask, Positions, Stamps
from spark_kafka_source.records.varints import Octets


@dataclass(frozen=True, slots=True)
class Copied(Stamps):
    """All records of a chunk, with their keys and values."""

    key: pa.BinaryArray
    value: pa.BinaryArray


def copied(chunk: Chunk, copy_records: Callable[..., int]) -> Copied | None:
    """Return the records of a chunk with offsets in `[position, end)`, if all its records have.

    Else return None. So it does for a record that is not sound: `locate` says why.
    """
    parts = chunk.parts
    if not parts.segments:
        return None
    if (
        parts.segments[0].first_offset < chunk.position
        or parts.segments[-1].last_offset >= chunk.end
    ):
        return None
    segments = Segments(chunk, parts.segments)
    count, size = segments.record_count, chunk.size_bytes
    stamps = np.empty((2, count), np.int64)
    ends, null = np.zeros((2, count + 1), np.int32), np.empty((2, count), np.bool_)
    # Nothing touches the memory behind the last byte, and it is given back.
    room = [pa.allocate_buffer(size, resizable=True) for _ in range(2)]
    if not _fill(parts, segments, copy_records, (stamps, ends, null, *map(_writable, room))):
        return None
    timestamp_ms, types = segments.timestamps(stamps[0]), segments.timestamp_types()
    key, value = (_column(*each) for each in zip(room, ends, null, strict=True))
    return Copied(stamps[1], timestamp_ms, types, key, value)


def _fill(
    parts: Parts, segments: Segments, copy_records: Callable[..., int], into: tuple[object, ...]
) -> bool:
    row = 0
    for first, stop in _same_buffers(parts):
        data = octets(parts.buffers[first])
        row = copy_records(data, segments.table[first:stop], row, *into)
        if row < 0:
            return False
    return row == segments.record_count


def _same_buffers(parts: Parts) -> Iterator[tuple[int, int]]:
    """Yield the bounds of each run of segments that share a buffer."""
    first = 0
    for number, buffer in enumerate(parts.buffers):
        if buffer is not parts.buffers[first]:
            yield first, number
            first = number
    yield first, len(parts.buffers)


def _writable(buffer: pa.Buffer) -> Octets:
    return np.frombuffer(buffer, np.uint8)


def _column(buffer: pa.Buffer, ends: Positions, null: Mask) -> pa.BinaryArray:
    count = len(null)
    buffer.resize(int(ends[-1]))
    nulls = int(np.count_nonzero(null))
    validity = pa.py_buffer(np.packbits(~null, bitorder="little")) if nulls else None
    buffers = [validity, pa.py_buffer(ends), buffer]
    return pa.BinaryArray.from_buffers(pa.binary(), count, buffers, nulls)
