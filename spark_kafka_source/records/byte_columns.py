"""Arrow columns of bytes or text as numpy arrays: the position of each row's bytes."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_kafka_source.records.types import ColumnTypeError
from spark_kafka_source.records.varints import Integers, Octets

NULL_LENGTH = -1
"""Kafka's length of a null."""

_TYPES = (pa.binary(), pa.large_binary(), pa.string(), pa.large_string(), pa.null())
_LARGE = (pa.large_binary(), pa.large_string())


@dataclass(frozen=True, slots=True)
class ByteColumn:
    """Column of bytes. Row `row` is `data[bounds[row]:bounds[row + 1]]`, empty for a null."""

    binary: pa.DataType
    """`pa.binary()` or `pa.large_binary()`, matching the width of the bounds."""
    bounds: npt.NDArray[np.int32] | Integers
    buffer: pa.Buffer
    lengths: npt.NDArray[np.int32] | Integers
    """The length of each row in bytes, or `NULL_LENGTH`."""

    @classmethod
    def of(cls, name: str, array: pa.Array, binary: pa.DataType | None = None) -> "ByteColumn":
        """Make a `ByteColumn` of the column `name`: string or binary, large or not, or only nulls.

        The result has the type `binary`, by default the smaller type that fits. Raises
        `ColumnTypeError`.
        """
        check_bytes(name, array.type)
        kind = binary or (pa.large_binary() if is_large(array.type) else pa.binary())
        # Each cast is free of copies: from text to binary, then from binary to large binary.
        if kind == pa.large_binary() and array.type == pa.string():
            array = array.cast(pa.binary())
        if array.type != kind:
            array = array.cast(kind)
        bounds = _bounds(array)
        lengths = bounds[1:] - bounds[:-1]
        if array.null_count:
            null = array.is_null().to_numpy(zero_copy_only=False)
            if lengths[null].any():
                array = array.fill_null(b"")
                bounds = _bounds(array)
            lengths[null] = NULL_LENGTH
        return cls(kind, bounds, _buffer(array), lengths)

    @property
    def data(self) -> Octets:
        """The bytes of all rows. The buffer may hold other bytes too."""
        return np.frombuffer(self.buffer, np.uint8)

    @property
    def starts(self) -> Integers:
        """The start of each row in `data`."""
        return self.bounds[:-1].astype(np.int64)

    def part(self, start: int, stop: int) -> pa.Array:
        """Return the rows from `start` to `stop`, then one empty row."""
        return _with_empty_row(self.binary, self.bounds[start : stop + 1], self.buffer)


@dataclass(frozen=True, slots=True)
class GatheredColumn:
    """Rows of a `ByteColumn` in another order.

    The bytes are gathered one part at a time. Each part is joined while it is still in the cache.
    """

    column: ByteColumn
    rows: Integers
    lengths: npt.NDArray[np.int32] | Integers
    """The length of each row in bytes, or `NULL_LENGTH`."""

    @classmethod
    def of(cls, column: ByteColumn, rows: Integers) -> "GatheredColumn":
        """Gather `rows` of the column. Raises `IndexError` for a row that does not exist."""
        return cls(column, rows, column.lengths[rows])

    def part(self, start: int, stop: int) -> pa.Array:
        """Return the rows from `start` to `stop` of the new order, then one empty row."""
        column = self.column
        buffers = [None, pa.py_buffer(column.bounds), column.buffer]
        every = pa.Array.from_buffers(column.binary, len(column.lengths), buffers)
        taken = every.take(pa.array(self.rows[start:stop]))
        return _with_empty_row(column.binary, _bounds(taken), _buffer(taken))


def check_bytes(name: str, kind: pa.DataType) -> None:
    """Raise `ColumnTypeError` if the column `name` holds neither bytes nor text."""
    if kind not in _TYPES:
        raise ColumnTypeError(name, kind, "string or binary")


def is_large(kind: pa.DataType) -> bool:
    """Whether the bounds of a column of this type have 64 bits."""
    return kind in _LARGE


def _bounds(array: pa.Array) -> Integers | npt.NDArray[np.int32]:
    if not len(array):
        return np.zeros(1, np.int32)
    width = np.int64 if is_large(array.type) else np.int32
    first = array.offset
    bounds: Integers = np.frombuffer(array.buffers()[1], width)
    return bounds[first : first + len(array) + 1]


def _buffer(array: pa.Array) -> pa.Buffer:
    buffer = array.buffers()[2] if len(array) else None
    return pa.py_buffer(b"") if buffer is None else buffer


def _with_empty_row(
    binary: pa.DataType, bounds: Integers | npt.NDArray[np.int32], buffer: pa.Buffer
) -> pa.Array:
    longer = np.empty(len(bounds) + 1, bounds.dtype)
    longer[:-1] = bounds
    longer[-1] = bounds[-1]
    return pa.Array.from_buffers(binary, len(bounds), [None, pa.py_buffer(longer), buffer])
