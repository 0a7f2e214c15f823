"""Encoder of headers: from a column of lists of key and value to the bytes that end each record.

The layout of a header is https://kafka.apache.org/documentation/#recordheader.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_kafka_source.records.byte_columns import ByteColumn, check_bytes
from spark_kafka_source.records.packing import OFFSET_TYPES, Varints, pack
from spark_kafka_source.records.types import ColumnTypeError, UnencodableRowError
from spark_kafka_source.records.varints import Integers

EXPECTED = "list<struct<key: string or binary, value: string or binary>>"
HEADER_OVERHEAD_BYTES = 10
"""The most bytes that the two lengths of a header take, of its key and of its value."""

_NOTHING = {each: pa.scalar(b"", each) for each in OFFSET_TYPES}


@dataclass(frozen=True, slots=True)
class EncodedHeaders:
    """Encoded headers, one row per record."""

    counts: Integers
    encoded: ByteColumn
    """The headers of each record one after the other, without their count."""


def check_headers(name: str, kind: pa.DataType) -> None:
    """Raise `ColumnTypeError` if the column `name` is not a list of keys and values."""
    if pa.types.is_null(kind):
        return
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    header = kind.value_type if is_list else None
    if header is None or not pa.types.is_struct(header):
        raise ColumnTypeError(name, kind, EXPECTED)
    names = [header.field(index).name for index in range(header.num_fields)]
    if sorted(names) != ["key", "value"]:
        raise ColumnTypeError(name, kind, EXPECTED)
    for part in names:
        check_bytes(f"{name}.{part}", header.field(part).type)


def encode_headers(array: pa.Array, binary: pa.DataType) -> EncodedHeaders | None:
    """Encode the headers of each row. Return None if no row has any.

    Raises `UnencodableRowError`, with row numbers of this `array`, for a null header and for a
    header with a null key. Kafka has neither.
    """
    if pa.types.is_null(array.type):
        return None
    counts = array.value_lengths().fill_null(0).to_numpy().astype(np.int64)
    headers = array.flatten()
    if not len(headers):
        return None
    key, value = headers.field("key"), headers.field("value")
    _refuse_nulls(headers, headers.is_null(), counts, "a header is null")
    _refuse_nulls(headers, key.is_null(), counts, "the key of a header is null")
    keys = ByteColumn.of("headers.key", key, binary)
    values = ByteColumn.of("headers.value", value, binary)
    joined = join(
        pack([Varints.of(keys.lengths)], len(headers), binary),
        keys.part(0, len(headers)),
        pack([Varints.of(values.lengths)], len(headers), binary),
        values.part(0, len(headers)),
    )
    ends = np.frombuffer(joined.buffers()[1], OFFSET_TYPES[binary])
    first = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=first[1:])
    bounds: Integers = ends[first]  # type: ignore[assignment]  # or of 32 bits
    return EncodedHeaders(counts, ByteColumn(binary, bounds, joined.buffers()[2], np.diff(bounds)))


def join(*columns: pa.Array) -> pa.Array:
    """Join the bytes of all `columns` row by row. No value may be null."""
    return pc.binary_join_element_wise(*columns, _NOTHING[columns[0].type])


def _refuse_nulls(headers: pa.Array, null: pa.Array, counts: Integers, reason: str) -> None:
    if null.true_count:
        owner = np.repeat(np.arange(len(counts)), counts)
        rows = np.unique(owner[null.to_numpy(zero_copy_only=False)])
        raise UnencodableRowError(rows.tolist(), f"{reason}; Kafka's headers have a key each")
