"""The number of rows, their size and their fingerprint, by which replays are compared."""

import pyarrow as pa
import pyarrow.compute as pc

from spark_kafka_source.records.batch import crc32c

_PARTS = ("key", "value")
# A text that no other row is likely to have, since a null is not an empty value.
_NULL = b"\0null"
# It tells a key from a value, and spreads a checksum of 32 bits over 64.
_ODD = pa.scalar(0x9E3779B97F4A7C15, pa.uint64())
FINGERPRINTS = 1 << 63
"""Fingerprints are whole numbers below this; sums of them, too, by this modulus."""


def size_of(columns: pa.RecordBatch) -> int:
    """Return the bytes of all keys and values, however the rows are divided into batches."""
    return sum(pc.sum(pc.binary_length(column)).as_py() or 0 for column in _parts(columns))


def fingerprint_of(columns: pa.RecordBatch) -> int:
    """Return a checksum of the keys and values of all rows: the sum of a number for each row.

    The order of rows does not matter, since a replay may divide them among its tasks otherwise.
    """
    rows = pa.repeat(pa.scalar(0, pa.uint64()), columns.num_rows)
    for column in _parts(columns):
        texts = pc.fill_null(column.cast(pa.large_binary()), _NULL).to_pylist()
        checksums = pa.array(map(crc32c, texts), pa.uint64())
        rows = pc.bit_wise_xor(pc.multiply(rows, _ODD), checksums)
    return (pc.sum(rows).as_py() or 0) % FINGERPRINTS


def _parts(columns: pa.RecordBatch) -> list[pa.Array]:
    return [columns[name] for name in _PARTS if name in columns.schema.names]
