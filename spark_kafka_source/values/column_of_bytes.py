"""Decoding of values in a column of bytes."""

import numpy as np
import pyarrow as pa

from spark_kafka_source.values.decoding import Decoded
from spark_kafka_source.values.schema_text import SchemaText
from spark_kafka_source.values.value_reader import ValueReader


def decode_column(reader: ValueReader, column: pa.BinaryArray, writer: SchemaText) -> Decoded:
    """Decode a column whose values were written with one schema, without framing.

    Raises `SchemaError` for an unusable schema.
    """
    program = reader.program(writer)
    _, offsets, data = column.buffers()
    first, last = column.offset, column.offset + len(column) + 1
    bounds = np.frombuffer(offsets, np.int32)[first:last].astype(np.int64)
    null = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    return reader.decode([program], data or b"", bounds[:-1], bounds[1:], null=null)
