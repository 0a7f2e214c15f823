"""Values in a column of bytes, which are decoded as those in a chunk are."""

import numpy as np
import pyarrow as pa

from spark_kafka_source.values.decoding import Decoded
from spark_kafka_source.values.schema_text import SchemaText
from spark_kafka_source.values.value_reader import ValueReader


def decode_column(reader: ValueReader, column: pa.BinaryArray, writer: SchemaText) -> Decoded:
    """Decode a column that was written with one schema, and has nothing before its values.

    Raises `SchemaError` for a schema that cannot be used.
    """
    program = reader.program(writer)
    _, offsets, data = column.buffers()
    first, last = column.offset, column.offset + len(column) + 1
    bounds = np.frombuffer(offsets, np.int32)[first:last].astype(np.int64)
    null = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    return reader.decode([program], data or b"", bounds[:-1], bounds[1:], null=null)
