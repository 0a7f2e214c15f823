"""Protobuf as one of the formats that values are written in."""

from typing import Any

import pyarrow as pa

from spark_kafka_source.values.kept import made_once
from spark_kafka_source.values.protobuf.encode import encode
from spark_kafka_source.values.protobuf.indexes import message_indexes
from spark_kafka_source.values.protobuf.reader import ProtobufReader
from spark_kafka_source.values.schema_text import SchemaText
from spark_kafka_source.values.value_writer import encode_one


class ProtobufWriter:
    """A `ValueWriter` of one message of a schema; pickled as its descriptors."""

    def __init__(self, schema: SchemaText | bytes, message: str | None = None) -> None:
        """`message` and what is raised are as in `ProtobufReader`."""
        self._reader = ProtobufReader(schema, message)

    def __reduce__(self) -> tuple[Any, ...]:
        return made_once, (ProtobufWriter, self._reader.descriptors, self.message)

    @property
    def arrow_type(self) -> pa.DataType:
        """Of columns that need no cast."""
        return self._reader.arrow_type

    @property
    def message(self) -> str:
        """The full name of the message."""
        return self._reader.message.name

    @property
    def indexes(self) -> bytes:
        """What says which message of the schema it is."""
        return message_indexes(self._reader.schema, self.message)

    def encode(self, array: pa.Array, prefix: bytes) -> pa.BinaryArray:
        """Encode each row."""
        return encode(self._reader, array, prefix)

    def one(self, value: Any) -> bytes:
        """Encode one value."""
        return encode_one(self, value)
