"""Peek at the end offset of a fetch, without checking or decompressing it."""

from struct import Struct

from spark_kafka_source.records.batch import HEADER, HEADER_BYTES, LENGTH_FOLLOWS_BYTES, BatchHeader

_LENGTH = Struct(">8xi")


def next_offset(records: memoryview) -> int | None:
    """Return the offset after the last whole batch, by its header. None if no batch is whole.

    Only lengths are checked. The result is good enough to start a request, not for more.
    """
    at, last = 0, -1
    while len(records) - at >= HEADER_BYTES:
        (length,) = _LENGTH.unpack_from(records, at)
        after = at + length + LENGTH_FOLLOWS_BYTES
        if not at + HEADER_BYTES <= after <= len(records):
            break
        at, last = after, at
    if last < 0:
        return None
    return BatchHeader._make(HEADER.unpack_from(records, last)).last_offset + 1
