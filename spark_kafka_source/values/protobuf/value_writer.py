"""Protobuf as a format of values to write."""

from typing import Any

import pyarrow as pa

from spark_kafka_source.values.kept import made_once
from spark_kafka_source.values.protobuf.encode import encode
from spark_kafka_source.values.protobuf.indexes import message_indexes
from spark_kafka_source.values.protobuf.reader import ProtobufReader
from spark_kafka_source.values.schema_text import SchemaText
from spark_kafka_source.values.value_writer import encode_one


class ProtobufWriter:
    """`ValueWriter` of one message of a schema. It is pickled as its descriptors."""

    def __init__(self, schema: SchemaText | bytes, message: str | None = None) -> None:
        """`message` is as in `ProtobufReader`. Raises as it does."""
        self._reader = ProtobufReader(schema, message)

    def __reduce__(self) -> tuple[Any, ...]:
        return made_once, (ProtobufWriter, self._reader.descriptors, self.message)

    @property
    def arrow_type(self) -> pa.DataType:
        """The type of columns that need no cast."""
        return self._reader.arrow_type

    @property
    def message(self) -> str:
        """The full name of the message."""
        return self._reader.message.name

    @property
    def indexes(self) -> bytes:
        """The bytes that say which message of the schema it is."""
        return message_indexes(self._reader.schema, self.message)

    def fit(self, kind: pa.DataType) -> None:
        """Raise `ColumnTypeError` if columns of this type do not fit the message."""
        encode(self._reader, pa.array([], kind))

    def encode(self, array: pa.Array, prefix: bytes) -> pa.BinaryArray:
        """Encode each row."""
        return encode(self._reader, array, prefix)

    def one(self, value: Any) -> bytes:
        """Encode one value."""
        return encode_one(self, value)
