"""JSON as a format of values to write."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_kafka_source.values.json.encode import encode
from spark_kafka_source.values.json.one import text_of_one


class JsonWriter:
    """`ValueWriter` of JSON texts, without a schema. It is pickled as its type."""

    def __init__(self, kind: pa.DataType) -> None:
        """`kind` is the column's type. Raises `ColumnTypeError` if JSON has no place for it."""
        encode(pa.array([], kind))
        self.arrow_type = kind
        self._text_of_one = text_of_one(kind)

    def __reduce__(self) -> tuple[Any, ...]:
        return JsonWriter, (self.arrow_type,)

    def fit(self, kind: pa.DataType) -> None:
        """Raise `ColumnTypeError` if JSON has no place for columns of this type."""
        encode(pa.array([], kind))

    def encode(self, array: pa.Array, prefix: bytes) -> pa.BinaryArray:
        """Encode each row."""
        texts = encode(array)
        return pc.binary_join_element_wise(prefix, texts, b"") if prefix else texts

    def one(self, value: Any) -> bytes:
        """Encode one value."""
        return self._text_of_one(value).encode()
