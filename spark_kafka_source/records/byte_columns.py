"""Arrow columns of bytes or text as numpy sees them: where each row's bytes lie, if anywhere."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_kafka_source.records.types import ColumnTypeError
from spark_kafka_source.records.varints import Integers, Octets

NULL_LENGTH = -1
"""Kafka's length of what is null."""

_TYPES = (pa.binary(), pa.large_binary(), pa.string(), pa.large_string(), pa.null())
_LARGE = (pa.large_binary(), pa.large_string())


@dataclass(frozen=True, slots=True)
class ByteColumn:
    """A column of `pa.binary()` or `pa.large_binary()`, with the length of each of its rows."""

    array: pa.Array
    lengths: npt.NDArray[np.int32] | Integers
    """In bytes, or `NULL_LENGTH`."""

    @classmethod
    def of(cls, name: str, array: pa.Array, binary: pa.DataType | None = None) -> "ByteColumn":
        """The column `name`: string or binary, large or not, or nothing but nulls.

        It becomes `binary`, by default the smaller that it fits. Raises `ColumnTypeError`.
        """
        check_bytes(name, array.type)
        kind = binary or (pa.large_binary() if array.type in _LARGE else pa.binary())
        if array.type != kind:
            # Text becomes binary, and that large, without a copy of its bytes.
            if kind == pa.large_binary() and array.type == pa.string():
                array = array.cast(pa.binary())
            array = array.cast(kind)
        bounds = _bounds(array)
        lengths = np.diff(bounds)
        if array.null_count:
            lengths[array.is_null().to_numpy(zero_copy_only=False)] = NULL_LENGTH
        return cls(array, lengths)

    @property
    def data(self) -> Octets:
        """The bytes of all rows, and perhaps of others."""
        return np.frombuffer(self.array.buffers()[2] or b"", np.uint8)

    @property
    def starts(self) -> Integers:
        """Where in `data` each row begins."""
        return _bounds(self.array)[:-1].astype(np.int64)


def check_bytes(name: str, found: pa.DataType) -> None:
    """Raises `ColumnTypeError` where the column `name` is no bytes and no text."""
    if found not in _TYPES:
        raise ColumnTypeError(name, found, "string or binary")


def is_large(found: pa.DataType) -> bool:
    """Whether the bounds of its rows are of 64 bits."""
    return found in _LARGE


def _bounds(array: pa.Array) -> Integers | npt.NDArray[np.int32]:
    if not len(array):
        return np.zeros(1, np.int32)
    width = np.int64 if is_large(array.type) else np.int32
    first = array.offset
    bounds: Integers = np.frombuffer(array.buffers()[1], width)
    return bounds[first : first + len(array) + 1]
