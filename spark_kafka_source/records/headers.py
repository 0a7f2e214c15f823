"""Stage 2a for headers: positions of each header's key and value.

The layout of a header is https://kafka.apache.org/documentation/#recordheader.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from spark_kafka_source.errors import CorruptRecordError, ProtocolError
from spark_kafka_source.records import compiled
from spark_kafka_source.records.chunk import Chunk
from spark_kafka_source.records.locate import octets
from spark_kafka_source.records.located import Located, Mask, Slices
from spark_kafka_source.records.types import Bytes, RecordTooLargeError
from spark_kafka_source.records.varints import NOWHERE, Integers, varint, varints

FEW = 32
"""Up to this many records are faster one by one. So is a single record of a million headers."""


HEADER_COUNTS_BYTES = 64
"""The memory that a header takes at least. Each header uses up this much of a record's limit."""


def within_limit(chunk: Chunk, located: Located) -> Located:
    """Drop records with too many headers, and report them to `chunk.limit`."""
    most = chunk.limit.max_bytes // HEADER_COUNTS_BYTES
    too_many = located.header_count > most
    for row in np.flatnonzero(too_many).tolist():
        count, offset = int(located.header_count[row]), int(located.offset[row])
        text = (
            f"a record of {count} headers, of {HEADER_COUNTS_BYTES} bytes or more in memory; "
            f"maxRecordBytes is {chunk.limit.max_bytes}"
        )
        chunk.limit.exceeded(RecordTooLargeError(chunk.topic_partition, offset, text))
    return located.where(~too_many) if too_many.any() else located


@dataclass(frozen=True, slots=True)
class LocatedHeaders:
    """Positions of headers: one row per header, record after record."""

    key: Slices
    value: Slices


def locate_headers(chunk: Chunk, located: Located) -> LocatedHeaders:
    """Locate the headers of all `located` records.

    Raises `CorruptRecordError` with the record's offset if the headers do not fill their record or
    have no key.
    """
    kernels = compiled.kernels()
    headers = headers_by_kernel(chunk, located, kernels.locate_headers) if kernels else None
    return headers or headers_by_numpy(chunk, located)


def headers_by_kernel(
    chunk: Chunk, located: Located, kernel: Callable[..., bool]
) -> LocatedHeaders | None:
    """Locate the headers in one compiled pass. None for bad ones: `headers_by_numpy` says why."""
    count = int(located.header_count.sum())
    key, value = Slices.room(count), Slices.room(count)
    key.null[:] = False
    sound = kernel(
        octets(chunk.data),
        located.headers_start,
        located.header_count,
        located.end,
        key.bounds,
        value.bounds,
        value.null,
    )
    return LocatedHeaders(key, value) if sound else None


def headers_by_numpy(chunk: Chunk, located: Located) -> LocatedHeaders:
    """Locate the first headers of all records, then the second ones. Raises as `locate_headers`."""
    data = np.frombuffer(chunk.data, np.uint8)
    count = located.header_count
    first = np.cumsum(count) - count
    # Bounded by the bytes of the records: locate() has checked the counts.
    fields = np.zeros((4, int(count.sum())), np.int64)
    at = located.headers_start.copy()
    rows, ordinal = np.flatnonzero(count), 0
    while len(rows) > FEW:
        key_length, key_start = varints(data, at[rows])
        value_length, value_start = varints(data, key_start + np.maximum(key_length, 0))
        fields[:, first[rows] + ordinal] = key_start, key_length, value_start, value_length
        at[rows] = value_start + np.maximum(value_length, 0)
        ordinal += 1
        rows = rows[count[rows] > ordinal]
    for row in rows.tolist():
        rest = fields[:, first[row] + ordinal : first[row] + count[row]]
        at[row] = _locate_one_by_one(chunk.data, int(at[row]), rest)

    headers = LocatedHeaders(Slices.of(*fields[:2]), Slices.of(*fields[2:]))
    _refuse(chunk, located, at != located.end, "its headers do not end where it ends")
    negative = (fields[1] < 0) | (fields[3] < -1)
    owner = np.repeat(np.arange(len(count)), count)
    bad = np.bincount(owner[negative], minlength=len(count)) > 0
    _refuse(chunk, located, bad, "a header's key or value has a negative length")
    return headers


def _locate_one_by_one(data: Bytes, at: int, fields: Integers) -> int:
    """Fill the columns of `fields`, and return the position after the last header."""
    try:
        for slot in range(fields.shape[1]):
            key_length, key_start = varint(data, at)
            value_length, value_start = varint(data, key_start + max(key_length, 0))
            fields[:, slot] = key_start, key_length, value_start, value_length
            at = value_start + max(value_length, 0)
    except ProtocolError:
        return NOWHERE
    return at


def _refuse(chunk: Chunk, located: Located, bad: Mask, reason: str) -> None:
    if bad.any():
        offset = int(located.offset[bad.argmax()])
        raise CorruptRecordError(chunk.topic_partition, offset, reason)
