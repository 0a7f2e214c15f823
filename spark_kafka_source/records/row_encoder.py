"""Encoder of a few single records, in plain Python.

`encode_columns` costs as much for one record as this encoder for a hundred or more, and less for
each further record. Both make the same bytes. The format is
https://kafka.apache.org/documentation/#recordbatch.
"""

from collections.abc import Sequence

from spark_kafka_source.records.batch import HEADER_BYTES
from spark_kafka_source.records.compression import Compression
from spark_kafka_source.records.encode import wrapped
from spark_kafka_source.records.encoded_batch import EncodedBatch
from spark_kafka_source.records.varints import encode_varint

FEW_ROWS = 400
"""So many records are encoded sooner one by one than as columns."""

Headers = Sequence[tuple[bytes, bytes | None]]
"""The headers of a record: the name of each, as UTF-8, and its value."""
Row = tuple[bytes | None, bytes | None, Headers, int]
"""A single record: its key, value, headers and timestamp in milliseconds."""

_ATTRIBUTES = b"\0"
_NULL = encode_varint(-1)
_NO_HEADERS = encode_varint(0)
_SHORT = [encode_varint(number) for number in range(1 << 12)]
"""The varints of small numbers, which are most of all."""


def encode_rows(rows: Sequence[Row], compression: Compression) -> EncodedBatch:
    """Return one or more records as one batch."""
    base_ms = rows[0][3]
    parts: list[bytes] = []
    for number, (key, value, headers, timestamp_ms) in enumerate(rows):
        body = b"".join(
            (
                _ATTRIBUTES,
                _varint(timestamp_ms - base_ms),
                _varint(number),
                *((_NULL,) if key is None else (_varint(len(key)), key)),
                *((_NULL,) if value is None else (_varint(len(value)), value)),
                *(_encoded(headers) if headers else (_NO_HEADERS,)),
            )
        )
        parts += (_varint(len(body)), body)
    records = b"".join(parts)
    return EncodedBatch(
        group=0,
        start=0,
        record_count=len(rows),
        base_timestamp_ms=base_ms,
        max_timestamp_ms=max(row[3] for row in rows),
        codec=compression.codec,
        uncompressed_bytes=HEADER_BYTES + len(records),
        payload=compression.compress(records),
    )


def _varint(number: int) -> bytes:
    return _SHORT[number] if 0 <= number < len(_SHORT) else encode_varint(wrapped(number))


def _encoded(headers: Headers) -> list[bytes]:
    parts = [_varint(len(headers))]
    for name, data in headers:
        parts += (_varint(len(name)), name)
        parts += (_NULL,) if data is None else (_varint(len(data)), data)
    return parts
