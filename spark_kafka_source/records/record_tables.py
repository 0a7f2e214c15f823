"""Tables of records to encode: tables joined to one, and rows as a table, and back."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_kafka_source.records.record_columns import COLUMN_NAMES, timestamps
from spark_kafka_source.records.row_encoder import Headers, Row

_BYTES = pa.large_binary()
_HEADERS = pa.list_(pa.struct([("key", _BYTES), ("value", _BYTES)]))
_PAIRS = pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())]))


def join_columns(pieces: Sequence[pa.RecordBatch], timestamp_ms: int) -> pa.RecordBatch:
    """Return the rows of all pieces, in their order, as a table for `encode_columns`.

    `encode_columns` takes each piece alone. Different types are converted to one type. A column
    that a piece lacks is null there. `timestamp_ms` is the timestamp of rows without one.
    """
    first = pieces[0].schema
    if not all(piece.schema.equals(first) for piece in pieces):
        present = {name for piece in pieces for name in piece.schema.names}
        names = [name for name in COLUMN_NAMES if name in present] or ["value"]
        pieces = [_alike(piece, names, timestamp_ms) for piece in pieces]
    return pa.Table.from_batches(pieces).combine_chunks().to_batches()[0]


def columns_of(
    keys: Sequence[bytes | None],
    values: Sequence[bytes | None],
    headers: Sequence[Headers],
    timestamps_ms: Sequence[int],
) -> pa.RecordBatch:
    """Return single records as a table for `encode_columns`: the other way of `as_rows`."""
    columns = {
        "key": pa.array(keys, pa.binary()),
        "value": pa.array(values, pa.binary()),
        "timestamp": pa.array(timestamps_ms, pa.int64()),
    }
    if any(headers):
        columns["headers"] = pa.array(map(list, headers), _PAIRS)
    return pa.RecordBatch.from_pydict(columns)


def as_rows(columns: pa.RecordBatch, timestamp_ms: int) -> list[Row]:
    """Return the rows of a table for `encode_rows`. `timestamp_ms` is that of rows without one.

    The table is one that `encode_columns` takes.
    """
    names, count = columns.schema.names, columns.num_rows
    keys, values = (
        _octets(columns[name]) if name in names else [None] * count for name in ("key", "value")
    )
    headers: list[Headers] = [()] * count
    if "headers" in names:
        headers = list(map(_pairs, _headers(columns["headers"]).to_pylist()))
    given = columns["timestamp"] if "timestamp" in names else None
    times = timestamps(given, count, timestamp_ms).tolist()
    return list(zip(keys, values, headers, times, strict=True))


def _octets(array: pa.Array) -> list[bytes | None]:
    is_text = pa.types.is_string(array.type) or pa.types.is_large_string(array.type)
    octets: list[bytes | None] = (_bytes(array) if is_text else array).to_pylist()
    return octets


def _pairs(headers: list[dict[str, bytes]] | None) -> Headers:
    return [(header["key"], header["value"]) for header in headers] if headers else ()


def _alike(piece: pa.RecordBatch, names: Sequence[str], timestamp_ms: int) -> pa.RecordBatch:
    arrays = []
    for name in names:
        array = piece[name] if name in piece.schema.names else pa.nulls(piece.num_rows)
        if name == "timestamp":
            arrays.append(pa.array(timestamps(array, piece.num_rows, timestamp_ms)))
        else:
            arrays.append(_headers(array) if name == "headers" else _bytes(array))
    return pa.RecordBatch.from_arrays(arrays, names)


def _bytes(array: pa.Array) -> pa.Array:
    if array.type == pa.string():  # Arrow has no direct cast from string to large binary.
        array = array.cast(pa.binary())
    return array.cast(_BYTES)


def _headers(array: pa.Array) -> pa.Array:
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), _HEADERS)
    bounds = np.zeros(len(array) + 1, np.int32)
    np.cumsum(pc.fill_null(pc.list_value_length(array), 0).to_numpy(), out=bounds[1:])
    headers = array.flatten()
    pairs = [_bytes(headers.field(name)) for name in ("key", "value")]
    structs = pa.StructArray.from_arrays(pairs, fields=list(_HEADERS.value_type))
    return pa.ListArray.from_arrays(pa.array(bounds), structs)
