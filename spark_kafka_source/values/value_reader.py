"""Interface of all formats for reading: values in the bytes of a chunk become a column."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from spark_kafka_source.values.decoding import Decoded
from spark_kafka_source.values.rows import Encoded
from spark_kafka_source.values.schema_text import SchemaText


class ValueReader(Protocol):
    """Decoder from values of one format to one column, for any schemas that wrote the values.

    A reader can be pickled, and stays the same while a query lives. A program says how to read the
    values of one writer's schema. Each format has its own type of program, and only its reader
    looks into it.
    """

    @property
    def arrow_type(self) -> pa.DataType:
        """The type of the column. Everything in it is nullable."""

    def program(self, writer: SchemaText, message: Sequence[int] = ()) -> Any:
        """Return the program that reads the values written with `writer`.

        `message` is Protobuf's message indexes: the number of a message in the schema, then the
        number of a message nested in it, and so on. Raises `SchemaError` for an unusable schema,
        and `UnresolvableError` if no value of that schema can be read.
        """

    def decode(self, programs: Sequence[Any], encoded: Encoded) -> Decoded:
        """Decode the values, each with its program. Never raises because of the bytes."""


def decode_column(reader: ValueReader, column: pa.BinaryArray, writer: SchemaText) -> Decoded:
    """Decode a column whose values were written with one schema, without framing.

    Raises `SchemaError` for an unusable schema.
    """
    program = reader.program(writer)
    _, offsets, data = column.buffers()
    first, last = column.offset, column.offset + len(column) + 1
    bounds = np.frombuffer(offsets, np.int32)[first:last].astype(np.int64)
    null = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    return reader.decode([program], Encoded(data or b"", bounds[:-1], bounds[1:], null=null))
