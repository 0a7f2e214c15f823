"""Columns of bytes that encoders combine into values."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_kafka_source.records.packing import Varints, pack
from spark_kafka_source.records.varints import Integers

Mask = npt.NDArray[np.bool_]


def valid(array: pa.Array) -> Mask:
    """Return which elements are not null."""
    mask: Mask = array.is_valid().to_numpy(zero_copy_only=False)
    return mask


def joined(count: int, *parts: "pa.BinaryArray | bytes") -> pa.BinaryArray:
    """Join all parts row by row."""
    if not parts:
        return pa.array([b""], pa.binary()).take(pa.array(np.zeros(count, np.int64)))
    whole = [pa.scalar(part, pa.binary()) if isinstance(part, bytes) else part for part in parts]
    return pc.binary_join_element_wise(*whole, pa.scalar(b"", pa.binary()))


def spread(encoded: pa.BinaryArray, there: Mask) -> pa.BinaryArray:
    """Spread the values over all rows. A row without a value gets empty bytes."""
    if there.all():
        return encoded
    places = pa.array(np.cumsum(there) - 1, mask=~there)
    return pc.fill_null(encoded.take(places), b"") if len(encoded) else joined(len(there))


def integers(values: Integers) -> pa.BinaryArray:
    """Encode integers as zigzag varints."""
    return pack([Varints.of(wide(values))], len(values), pa.binary()).slice(0, len(values))


def wide(values: npt.NDArray[np.generic]) -> Integers:
    """Convert numbers to 64 bits."""
    return values.astype(np.int64, copy=False)


def numbers(array: pa.Array, kind: pa.DataType) -> Integers:
    """Return the numbers that Arrow stores for the array, as this type."""
    return wide(array.view(kind).to_numpy())


def fixed_width(values: npt.NDArray[np.generic]) -> pa.BinaryArray:
    """Return each number's own bytes."""
    bounds = np.arange(len(values) + 1, dtype=np.int32) * np.int32(values.itemsize)
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(pa.binary(), len(values), buffers)


def owners(array: pa.Array, rows: Integers) -> Integers:
    """Return the row of each item."""
    return np.repeat(rows, np.diff(array.offsets.to_numpy()))


def put_together(array: pa.Array, items: pa.BinaryArray) -> pa.BinaryArray:
    """Join the items of each list or map. `items` has the items of all lists."""
    if not len(items):
        return joined(len(array))
    offsets = array.offsets.to_numpy()
    start = items.offset
    _, bounds, data = items.buffers()
    ends = np.frombuffer(bounds, np.int32)[start : start + len(items) + 1]
    laid = pa.py_buffer(ends[offsets - offsets[0]])
    return pa.Array.from_buffers(pa.binary(), len(array), [None, laid, data])
