"""Avro as a format of values to write."""

from dataclasses import replace
from typing import Any

import pyarrow as pa

from spark_kafka_source.records.plain_types import as_plain, plain
from spark_kafka_source.values.avro.encode import encode
from spark_kafka_source.values.avro.fit import Node, fit
from spark_kafka_source.values.avro.one import writer_of_one
from spark_kafka_source.values.avro.parse import parse_schema
from spark_kafka_source.values.avro.shape import TIME, ReaderSchema
from spark_kafka_source.values.kept import keeping_last, made_once
from spark_kafka_source.values.one_value import refuse
from spark_kafka_source.values.schema_text import SchemaText
from spark_kafka_source.values.typing import MOST_AVRO_DEPTH, AvroTyping
from spark_kafka_source.values.value_writer import deepest


class AvroWriter:
    """`ValueWriter` with one schema. It is pickled as the schema's text."""

    def __init__(
        self,
        schema: SchemaText,
        ignored: tuple[str, ...] = (),
        typing: AvroTyping | None = None,
    ) -> None:
        """`ignored` are the paths of fields that may be left out. Raises `SchemaError`."""
        self._ignored, self._typing = ignored, typing or AvroTyping()
        self._arguments = schema, self._ignored, self._typing
        self._parsed = parse_schema(schema.text, [text for _, text in schema.references])
        self._write_one = writer_of_one(self._parsed, self._ignored, self._typing)
        self._plan = keeping_last(self._planned)

    def __reduce__(self) -> tuple[Any, ...]:
        return made_once, (AvroWriter, *self._arguments)

    @property
    def arrow_type(self) -> pa.DataType:
        """The type of the column that a source reads. Raises as `ReaderSchema.of` does."""
        return self._type(self._typing)

    @property
    def deepest_type(self) -> pa.DataType:
        """The `arrow_type`, or for a type that contains itself one that ends at some depth."""

        def type_at(depth: int) -> pa.DataType:
            return self._type(replace(self._typing, recursive_field_max_depth=depth))

        return deepest(lambda: self.arrow_type, type_at, MOST_AVRO_DEPTH)

    def fit(self, kind: pa.DataType) -> None:
        """Raise `UnfitColumnError` if columns of this type do not fit the schema."""
        self._plan(kind)

    def encode(self, array: pa.Array, prefix: bytes) -> pa.BinaryArray:
        """Encode each row."""
        plan, kind = self._plan(array.type)
        return encode(plan, as_plain(array, kind), prefix)

    def one(self, value: Any) -> bytes:
        """Encode one value."""
        out = bytearray()
        try:
            self._write_one(value, out)
        except RecursionError:
            refuse("", "values are nested too deeply")
        return bytes(out)

    def _type(self, typing: AvroTyping) -> pa.DataType:
        return ReaderSchema.of(self._parsed, time_type=TIME, typing=typing).arrow_type

    def _planned(self, kind: pa.DataType) -> tuple[Node, pa.DataType]:
        """Return the plan for columns of this type, and the type in which it takes them."""
        return fit(self._parsed, kind, self._ignored, self._typing), plain(kind)
