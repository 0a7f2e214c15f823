"""Checked columns of records to write, with Arrow's many types reduced to a few.

The columns are key, value, headers and timestamp. Each may be missing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from spark_kafka_source.records.byte_columns import (
    ByteColumn,
    GatheredColumn,
    check_bytes,
    is_large,
)
from spark_kafka_source.records.encode import NO_TIMESTAMP
from spark_kafka_source.records.encode_headers import (
    HEADER_OVERHEAD_BYTES,
    EncodedHeaders,
    check_headers,
    encode_headers,
)
from spark_kafka_source.records.types import ColumnTypeError, UnencodableRowError
from spark_kafka_source.records.varints import Integers

COLUMN_NAMES = ("key", "value", "headers", "timestamp")
"""The columns that become a part of a record. Other columns are ignored."""

UNITS_IN_MS: Mapping[str, int] = MappingProxyType({"ms": 1, "us": 1_000, "ns": 1_000_000})
MAX_SMALL_BYTES = (1 << 31) - 1
"""The largest bound in 32 bits."""


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """Columns with a row per record. Key and value have the type `binary`, None if missing."""

    count: int
    binary: pa.DataType
    key: ByteColumn | GatheredColumn | None
    value: ByteColumn | GatheredColumn | None
    headers: EncodedHeaders | None
    """None also if no row has headers."""
    timestamp_ms: Integers


def check_columns(schema: pa.Schema) -> None:
    """Raise `ColumnTypeError` if a column has a type that cannot be encoded."""
    for name in ("key", "value"):
        if name in schema.names:
            check_bytes(name, schema.field(name).type)
    if "headers" in schema.names:
        check_headers("headers", schema.field("headers").type)
    if "timestamp" in schema.names:
        _check_timestamp(schema.field("timestamp").type)


def record_columns(
    columns: pa.RecordBatch, rows: Integers | None, timestamp_ms: int
) -> RecordColumns:
    """Return the records of these `rows`, in their order. None means all rows.

    `timestamp_ms` is the timestamp of rows without one. Raises `ColumnTypeError`, `IndexError` for
    a row that does not exist, and `UnencodableRowError`.
    """
    check_columns(columns.schema)
    known = [name for name in COLUMN_NAMES if name in columns.schema.names]
    chosen = {name: columns[name] for name in known}
    if rows is not None:
        _check_rows(rows, columns.num_rows)
        # Keys and values are most of the bytes. They are gathered only when they are joined.
        picked = pa.array(rows)
        for name in ("headers", "timestamp"):
            if name in chosen:
                chosen[name] = chosen[name].take(picked)
    count = columns.num_rows if rows is None else len(rows)
    binary = _binary(chosen)
    try:
        headers = encode_headers(chosen["headers"], binary) if "headers" in chosen else None
        times = timestamps(chosen.get("timestamp"), count, timestamp_ms)
    except UnencodableRowError as error:
        raise UnencodableRowError(given_rows(error.rows, rows), error.reason) from None
    key, value = (
        _byte_column(name, chosen[name], binary, rows) if name in chosen else None
        for name in ("key", "value")
    )
    return RecordColumns(count, binary, key, value, headers, times)


def _check_rows(rows: Integers, count: int) -> None:
    if len(rows) and not 0 <= rows.min() <= rows.max() < count:
        raise IndexError(f"rows {rows.min()} to {rows.max()} of a table of {count}")


def _byte_column(
    name: str, array: pa.Array, binary: pa.DataType, rows: Integers | None
) -> ByteColumn | GatheredColumn:
    column = ByteColumn.of(name, array, binary)
    return column if rows is None else GatheredColumn.of(column, rows)


def given_rows(places: Integers | tuple[int, ...], rows: Integers | None) -> list[int]:
    """Return the table's rows at these places of the order."""
    given: list[int] = (np.asarray(places) if rows is None else rows[np.asarray(places)]).tolist()
    return given


def _binary(chosen: Mapping[str, pa.Array]) -> pa.DataType:
    """Return the type of bytes whose bounds can address all joined bytes."""
    large = any(is_large(chosen[name].type) for name in ("key", "value") if name in chosen)
    headers = chosen.get("headers")
    if headers is not None and not pa.types.is_null(headers.type):
        kinds = [field.type for field in headers.type.value_type]
        bound = headers.nbytes + HEADER_OVERHEAD_BYTES * len(headers.values)
        large = large or bound > MAX_SMALL_BYTES or any(map(is_large, kinds))
    return pa.large_binary() if large else pa.binary()


def _check_timestamp(kind: pa.DataType) -> None:
    known = pa.types.is_int64(kind) or pa.types.is_null(kind)
    if not known and not (pa.types.is_timestamp(kind) and kind.unit in UNITS_IN_MS):
        expected = "timestamp[ms], timestamp[us], timestamp[ns] or int64, of milliseconds"
        raise ColumnTypeError("timestamp", kind, expected)


def timestamps(array: pa.Array | None, count: int, missing_ms: int) -> Integers:
    """Return the milliseconds of each row of a column, `missing_ms` for a row without a timestamp.

    Raises `UnencodableRowError`.
    """
    if array is None or pa.types.is_null(array.type):
        return np.full(count, missing_ms, np.int64)
    null = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    unit = array.type.unit if pa.types.is_timestamp(array.type) else "ms"
    buffer, first = array.buffers()[1], array.offset
    held: Integers = np.frombuffer(buffer or b"", np.int64)[first : first + count]
    times = held if UNITS_IN_MS[unit] == 1 else held // UNITS_IN_MS[unit]
    if null is not None:
        times = np.where(null, missing_ms, times)
    if times.min(initial=0) < NO_TIMESTAMP:
        reason = "its timestamp is before 1970, which Kafka's records have no place for"
        raise UnencodableRowError(np.flatnonzero(times < NO_TIMESTAMP).tolist(), reason)
    return times
