"""JSON as one of the formats that values are written in."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_kafka_source.values.json.encode import encode
from spark_kafka_source.values.value_writer import encode_one


class JsonWriter:
    """A `ValueWriter` of texts, which no schema has to do with."""

    def __init__(self, kind: pa.DataType) -> None:
        """`kind` is the column's. Raises `ColumnTypeError` where JSON has no place for it."""
        encode(pa.array([], kind))
        self.arrow_type = kind

    def encode(self, array: pa.Array, prefix: bytes) -> pa.BinaryArray:
        """Encode each row."""
        texts = encode(array)
        return pc.binary_join_element_wise(prefix, texts, b"") if prefix else texts

    def one(self, value: Any) -> bytes:
        """Encode one value."""
        return encode_one(self, value)
