"""What all formats have in common the other way: a column to the bytes of values."""

from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from spark_kafka_source.records import UnencodableRowError
from spark_kafka_source.values.one_value import array_of_one


class ValueWriter(Protocol):
    """Encodes the values of one column by one schema. It can be pickled."""

    @property
    def arrow_type(self) -> pa.DataType:
        """Of columns that need no cast."""

    def encode(self, array: pa.Array, prefix: bytes) -> pa.BinaryArray:
        """Return each value's bytes, `prefix` before it; none of the values is null.

        Raises `ColumnTypeError` for a column that the schema has no place for, and
        `UnencodableRowError` for such rows.
        """

    def one(self, value: Any) -> bytes:
        """Return the bytes of one value that is not None, as `Array.to_pylist` would have it.

        Raises `UnencodableRowError` for what the schema has no place for, by its path.
        """


def encode_one(writer: ValueWriter, value: Any) -> bytes:
    """Return the bytes of one value, as those of a column of one row. Raises `UnencodableRowError`.

    It is what `ValueWriter.one` is where a format has no other way.
    """
    found: bytes = writer.encode(array_of_one(value, writer.arrow_type), b"")[0].as_py()
    return found


def encode_values(writer: ValueWriter, array: pa.Array, prefix: bytes = b"") -> pa.BinaryArray:
    """Encode what is not null; a null stays one, as Kafka's tombstones are. Raises as `encode`."""
    if not array.null_count:
        return writer.encode(array, prefix)
    there = array.is_valid().to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(there)
    try:
        encoded = writer.encode(array.take(pa.array(rows)), prefix)
    except UnencodableRowError as error:
        raise type(error)(rows[error.rows].tolist(), error.reason) from None
    places = np.cumsum(there) - 1
    return encoded.take(pa.array(places, mask=~there))
