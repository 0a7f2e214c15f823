"""Interface of all formats for writing: a column becomes the bytes of values."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from spark_kafka_source.records import UnencodableRowError
from spark_kafka_source.records.plain_types import as_plain
from spark_kafka_source.values.errors import RecursiveTypeError, SchemaError


class ValueWriter(Protocol):
    """Encoder of the values of one column with one schema. It can be pickled."""

    @property
    def arrow_type(self) -> pa.DataType:
        """The type of the column that a source reads from what is written.

        Raises `RecursiveTypeError` for a type that contains itself.
        """

    @property
    def deepest_type(self) -> pa.DataType:
        """The `arrow_type`, or for a type that contains itself one that ends at some depth.

        JSON, whose values may have no type as columns, then has the null type.
        """

    def fit(self, kind: pa.DataType) -> None:
        """Raise `UnfitColumnError` if columns of this type do not fit the schema."""

    def encode(self, array: pa.Array, prefix: bytes) -> pa.BinaryArray:
        """Return each value's bytes, with `prefix` before them. No value may be null.

        Raises `UnfitColumnError` for a column that does not `fit`, and `UnencodableRowError` for
        rows that the schema has no place for.
        """

    def one(self, value: Any) -> bytes:
        """Return the bytes of one value that is not None, in the form of `Array.to_pylist`.

        Raises `UnencodableRowError` with the path of a value that the schema has no place for.
        """


def deepest(
    whole: Callable[[], pa.DataType], type_at: Callable[[int], pa.DataType], most: int
) -> pa.DataType:
    """Return the whole type, or for one that contains itself the type at some depth.

    It is the greatest depth up to `most` at which the type has not too many columns.
    """
    with suppress(RecursiveTypeError):
        return whole()
    for depth in range(most, 1, -1):
        with suppress(SchemaError):
            return type_at(depth)
    return type_at(1)


def encode_values(writer: ValueWriter, array: pa.Array, prefix: bytes = b"") -> pa.BinaryArray:
    """Encode a column. A null stays null, as Kafka's tombstones are. Raises as `encode` does."""
    # A dictionary and run-end encoding hide nulls, and Arrow cannot take rows of views.
    array = as_plain(array)
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
