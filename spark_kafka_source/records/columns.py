"""Stage 2b: the columns of Spark's Kafka source, gathered out of a chunk by Arrow.

They are https://spark.apache.org/docs/latest/streaming/structured-streaming-kafka-integration.html's,
in the Arrow types that PySpark's `to_arrow_schema` gives them.
"""

from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from spark_kafka_source.errors import CorruptRecordError
from spark_kafka_source.records.chunk import Chunk
from spark_kafka_source.records.headers import locate_headers
from spark_kafka_source.records.locate import Located, locate
from spark_kafka_source.records.types import Bytes
from spark_kafka_source.records.varints import Integers

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
"""All columns there are, in their order, and their types; all of them nullable."""

COLUMNS = tuple(name for name in FIELDS if name != "headers")
COLUMNS_WITH_HEADERS = tuple(FIELDS)


@cache
def schema(columns: tuple[str, ...] = COLUMNS) -> pa.Schema:
    """The Arrow schema of these columns, in the order given."""
    return pa.schema([pa.field(name, FIELDS[name]) for name in columns])


def to_arrow(chunk: Chunk, *, include_headers: bool = False) -> pa.RecordBatch:
    """The seven columns of Spark's Kafka source, or with the headers eight: see `record_batch`."""
    return record_batch(chunk, COLUMNS_WITH_HEADERS if include_headers else COLUMNS)


def record_batch(chunk: Chunk, columns: tuple[str, ...]) -> pa.RecordBatch:
    """The records of a chunk with offsets in `[position, end)`, as these columns.

    Headers are null where a record has none; what is wrong with them is seen only where they are
    among the columns. Raises `CorruptRecordError` for records that do not hold together, a header
    key that is not UTF-8, and a timestamp that no column of microseconds can hold.
    """
    located = locate(chunk)
    arrays = [_BUILDERS[name](chunk, located) for name in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=schema(columns))


def gather(data: Bytes, start: Integers, length: Integers) -> pa.BinaryArray:
    """A column of the slices of `data`, which must lie inside it, in order and without overlap.

    A length of -1 is null. Arrow copies: an array laid over all of `data` has every slice as an
    even element and what lies between two as an odd one, and the even ones are taken.
    """
    if len(start) == 0:
        return pa.array([], pa.binary())
    bounds = np.empty(2 * len(start), np.int32)
    bounds[0::2] = start
    bounds[1::2] = start + np.maximum(length, 0)
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    laid = pa.BinaryArray.from_buffers(pa.binary(), len(bounds) - 1, buffers)
    null = length < 0
    even = pa.array(np.arange(0, len(bounds), 2, dtype=np.int32), mask=null if null.any() else None)
    return laid.take(even)


def _key(chunk: Chunk, located: Located) -> pa.Array:
    return gather(chunk.data, located.key_start, located.key_length)


def _value(chunk: Chunk, located: Located) -> pa.Array:
    return gather(chunk.data, located.value_start, located.value_length)


def _topic(chunk: Chunk, located: Located) -> pa.Array:
    return pa.repeat(pa.scalar(chunk.topic_partition.topic, pa.string()), len(located.offset))


def _partition(chunk: Chunk, located: Located) -> pa.Array:
    return pa.array(np.full(len(located.offset), chunk.topic_partition.partition, np.int32))


def _offset(_: Chunk, located: Located) -> pa.Array:
    return pa.array(located.offset)


def _timestamp(chunk: Chunk, located: Located) -> pa.Array:
    timestamp_ms = located.timestamp_ms
    bad = (timestamp_ms > MAX_TIMESTAMP_MS) | (timestamp_ms < -MAX_TIMESTAMP_MS)
    if bad.any():
        row = bad.argmax()
        reason = (
            f"KAFKA_MALFORMED_RECORD_TIMESTAMP: timestamp overflow, {timestamp_ms[row]} ms is more "
            "than 64 bits of microseconds hold"
        )
        raise CorruptRecordError(chunk.topic_partition, int(located.offset[row]), reason)
    return pa.array(timestamp_ms * MICROSECONDS).view(TIMESTAMP_TYPE)


def _timestamp_type(_: Chunk, located: Located) -> pa.Array:
    return pa.array(located.timestamp_type.astype(np.int32))


def _headers(chunk: Chunk, located: Located) -> pa.Array:
    headers = locate_headers(chunk, located)
    count = located.header_count
    try:
        key = gather(chunk.data, headers.key_start, headers.key_length).cast(pa.string())
    except pa.ArrowInvalid as failure:
        offset = int(located.offset[0])
        reason = f"in this record or one soon after, a header's key is not UTF-8: {failure}"
        raise CorruptRecordError(chunk.topic_partition, offset, reason) from failure
    value = gather(chunk.data, headers.value_start, headers.value_length)
    elements = pa.StructArray.from_arrays([key, value], fields=list(HEADER_TYPE))
    first = np.zeros(len(count) + 1, np.int32)
    np.cumsum(count, out=first[1:])
    return pa.ListArray.from_arrays(
        pa.array(first), elements, type=HEADERS_TYPE, mask=pa.array(count == 0)
    )


_BUILDERS: Mapping[str, Callable[[Chunk, Located], pa.Array]] = MappingProxyType(
    {
        "key": _key,
        "value": _value,
        "topic": _topic,
        "partition": _partition,
        "offset": _offset,
        "timestamp": _timestamp,
        "timestampType": _timestamp_type,
        "headers": _headers,
    }
)
