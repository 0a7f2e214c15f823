"""Avro as a format of values to write."""

from typing import Any

import pyarrow as pa

from spark_kafka_source.values.avro.encode import encode
from spark_kafka_source.values.avro.one import writer_of_one
from spark_kafka_source.values.avro.parse import parse_schema
from spark_kafka_source.values.avro.reader import TIME, Reader
from spark_kafka_source.values.kept import made_once
from spark_kafka_source.values.schema_text import SchemaText


class AvroWriter:
    """`ValueWriter` with one schema. It is pickled as the schema's text."""

    def __init__(self, schema: SchemaText) -> None:
        """Raises as `Reader.of` does."""
        self._schema = schema
        parsed = parse_schema(schema.text, [text for _, text in schema.references])
        self._reader = Reader.of(parsed, time_type=TIME)
        self._write_one = writer_of_one(self._reader)

    def __reduce__(self) -> tuple[Any, ...]:
        return made_once, (AvroWriter, self._schema)

    @property
    def arrow_type(self) -> pa.DataType:
        """The type of columns that need no cast."""
        return self._reader.arrow_type

    def encode(self, array: pa.Array, prefix: bytes) -> pa.BinaryArray:
        """Encode each row."""
        return encode(self._reader, array, prefix)

    def one(self, value: Any) -> bytes:
        """Encode one value."""
        out = bytearray()
        self._write_one(value, out)
        return bytes(out)
