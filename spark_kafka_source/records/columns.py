"""Stage 2b: the columns of Spark's Kafka source, which Arrow gathers from a chunk.

https://spark.apache.org/docs/latest/streaming/structured-streaming-kafka-integration.html lists
the columns. Their Arrow types are those of PySpark's `to_arrow_schema`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from spark_kafka_source.records import compiled
from spark_kafka_source.records.chunk import Chunk, Parts
from spark_kafka_source.records.headers import locate_headers, within_limit
from spark_kafka_source.records.locate import Segments, locate, octets
from spark_kafka_source.records.located import Located, Mask, Positions, Slices, Stamps
from spark_kafka_source.records.types import Bytes, TimestampOverflowError
from spark_kafka_source.records.varints import Octets

HEADER_TYPE = pa.struct([("key", pa.string()), ("value", pa.binary())])
HEADERS_TYPE = pa.list_(pa.field("element", HEADER_TYPE))
TIMESTAMP_TYPE = pa.timestamp("us", "UTC")

MICROSECONDS = 1000
MAX_TIMESTAMP_MS = ((1 << 63) - 1) // MICROSECONDS

FIELDS: Mapping[str, pa.DataType] = MappingProxyType(
    {
        "key": pa.binary(),
        "value": pa.binary(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": TIMESTAMP_TYPE,
        "timestampType": pa.int32(),
        "headers": HEADERS_TYPE,
    }
)
"""All columns in their order, with their types. All are nullable."""

COLUMNS = tuple(name for name in FIELDS if name != "headers")
COLUMNS_WITH_HEADERS = tuple(FIELDS)


@cache
def schema(columns: tuple[str, ...] = COLUMNS) -> pa.Schema:
    """Return the Arrow schema of these columns, in the order given."""
    return pa.schema([pa.field(name, FIELDS[name]) for name in columns])


def to_arrow(chunk: Chunk, *, include_headers: bool = False) -> pa.RecordBatch:
    """Return the seven columns of Spark's Kafka source, or with headers eight.

    See `record_batch`.
    """
    return record_batch(chunk, COLUMNS_WITH_HEADERS if include_headers else COLUMNS)


def record_batch(chunk: Chunk, columns: tuple[str, ...]) -> pa.RecordBatch:
    """Return the records of a chunk with offsets in `[position, end)`, as these columns.

    A record without headers has null in `headers`. Bytes of a header's key that are not UTF-8 are
    U+FFFD, as in Java's clients. Errors in headers show only if `headers` is among the columns.
    Raises `CorruptRecordError` for malformed records, and `TimestampOverflowError` for a timestamp
    beyond microseconds in 64 bits. With the column `headers` it raises `RecordTooLargeError` for a
    record with more than one header per 64 bytes of `chunk.limit`, unless the limit passes over the
    record.
    """
    kernels = compiled.kernels()
    if kernels is not None and "headers" not in columns:
        whole = copied(chunk, kernels.copy_records)
        if whole is not None:
            arrays = [_of_copied(name, chunk, whole) for name in columns]
            return pa.RecordBatch.from_arrays(arrays, schema=schema(columns))
    located = locate(chunk)
    if "headers" in columns:
        located = within_limit(chunk, located)
    arrays = [column(name, chunk, located) for name in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=schema(columns))


@dataclass(frozen=True, slots=True)
class Copied(Stamps):
    """All records of a chunk, with their keys and values."""

    key: pa.BinaryArray
    value: pa.BinaryArray


def copied(chunk: Chunk, copy_records: Callable[..., int]) -> Copied | None:
    """Find and copy each record's key and value in one compiled pass, which reads each byte once.

    Return None if a record's offset is not in `[position, end)`, or if a record is not sound. Then
    `locate` and `gather` give the same columns, or say why not. They need the records in one
    buffer, and read them twice.
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


def _of_copied(name: str, chunk: Chunk, whole: Copied) -> pa.Array:
    if name == "key":
        return whole.key
    return whole.value if name == "value" else _OF_STAMPS[name](chunk, whole)


def column(name: str, chunk: Chunk, located: Located) -> pa.Array:
    """Return one column, by its name, of the located records of a chunk."""
    return _BUILDERS[name](chunk, located)


def gather(data: Bytes, slices: Slices) -> pa.BinaryArray:
    """Return a column of these slices of `data`.

    Arrow copies them. An array is laid over all of `data`: its even elements are the slices, its
    odd elements the gaps between them. Then the even elements are taken.
    """
    count = len(slices.null)
    if count == 0:
        return pa.array([], pa.binary())
    buffers = [None, pa.py_buffer(slices.bounds), pa.py_buffer(data)]
    laid = pa.BinaryArray.from_buffers(pa.binary(), 2 * count - 1, buffers)
    null = slices.null if slices.null.any() else None
    return laid.take(pa.array(np.arange(0, 2 * count, 2, dtype=np.int32), mask=null))


def _key(chunk: Chunk, located: Located) -> pa.Array:
    return gather(chunk.data, located.key)


def _value(chunk: Chunk, located: Located) -> pa.Array:
    return gather(chunk.data, located.value)


def _topic(chunk: Chunk, located: Stamps) -> pa.Array:
    # Faster than pa.repeat(), which works record by record.
    count, name = len(located.offset), chunk.topic_partition.topic.encode()
    bounds = np.arange(count + 1, dtype=np.int32) * np.int32(len(name))
    return pa.StringArray.from_buffers(count, pa.py_buffer(bounds), pa.py_buffer(name * count))


def _partition(chunk: Chunk, located: Stamps) -> pa.Array:
    return pa.array(np.full(len(located.offset), chunk.topic_partition.partition, np.int32))


def _offset(_: Chunk, located: Stamps) -> pa.Array:
    return pa.array(located.offset)


def _timestamp(chunk: Chunk, located: Stamps) -> pa.Array:
    timestamp_ms = located.timestamp_ms
    least, most = timestamp_ms.min(initial=0), timestamp_ms.max(initial=0)
    if least < -MAX_TIMESTAMP_MS or most > MAX_TIMESTAMP_MS:
        bad = (timestamp_ms > MAX_TIMESTAMP_MS) | (timestamp_ms < -MAX_TIMESTAMP_MS)
        row = bad.argmax()
        offset, value_ms = int(located.offset[row]), int(timestamp_ms[row])
        raise TimestampOverflowError(chunk.topic_partition, offset, value_ms)
    return pa.array(timestamp_ms * MICROSECONDS).view(TIMESTAMP_TYPE)


def _timestamp_type(_: Chunk, located: Stamps) -> pa.Array:
    return pa.array(located.timestamp_type.astype(np.int32))


def _headers(chunk: Chunk, located: Located) -> pa.Array:
    headers = locate_headers(chunk, located)
    count = located.header_count
    names = gather(chunk.data, headers.key)
    try:
        key = names.cast(pa.string())
    except pa.ArrowInvalid:
        key = pa.array(map(_as_java, names.to_pylist()), pa.string())
    value = gather(chunk.data, headers.value)
    elements = pa.StructArray.from_arrays([key, value], fields=list(HEADER_TYPE))
    first = np.zeros(len(count) + 1, np.int32)
    np.cumsum(count, out=first[1:])
    return pa.ListArray.from_arrays(
        pa.array(first), elements, type=HEADERS_TYPE, mask=pa.array(count == 0)
    )


def _as_java(name: bytes) -> str:
    """Decode UTF-8 with a U+FFFD wherever Java's `String` has one.

    Python has one for each byte of a surrogate in UTF-8, and Java has one for all of them.
    """
    shown = re.sub(rb"\xed[\xa0-\xbf][\x80-\xbf]?", b"\xef\xbf\xbd", name)
    return shown.decode("utf-8", "replace")


_OF_STAMPS: Mapping[str, Callable[[Chunk, Stamps], pa.Array]] = MappingProxyType(
    {
        "topic": _topic,
        "partition": _partition,
        "offset": _offset,
        "timestamp": _timestamp,
        "timestampType": _timestamp_type,
    }
)
_BUILDERS: Mapping[str, Callable[[Chunk, Located], pa.Array]] = MappingProxyType(
    {"key": _key, "value": _value, **_OF_STAMPS, "headers": _headers}
)
