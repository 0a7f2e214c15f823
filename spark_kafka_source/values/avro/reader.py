"""Avro as a format of values to read."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from spark_kafka_source.values.avro import compiled
from spark_kafka_source.values.avro.kernels import FRAME, run
from spark_kafka_source.values.avro.parse import parse_schema
from spark_kafka_source.values.avro.program import MAX_NESTING, Program, tables_of
from spark_kafka_source.values.avro.resolve import resolve
from spark_kafka_source.values.avro.shape import ReaderSchema
from spark_kafka_source.values.avro.waves import Waves
from spark_kafka_source.values.compiled import interpreted
from spark_kafka_source.values.decoding import Decoded, Engines
from spark_kafka_source.values.errors import UnresolvableError
from spark_kafka_source.values.kept import keeping, made_once
from spark_kafka_source.values.rows import Encoded
from spark_kafka_source.values.schema_text import SchemaText, SchemaType
from spark_kafka_source.values.typing import AvroTyping

_ENGINES: Engines[Program] = Engines(
    Waves, tables_of, (MAX_NESTING, FRAME), compiled, interpreted(run)
)

decode = _ENGINES.decode
"""Decodes values with the programs of `resolve`, as `values.decoding` does."""


class AvroReader:
    """`ValueReader` of some or all columns of a schema. It is pickled as the schema's text."""

    def __init__(
        self,
        schema: SchemaText,
        fields: Sequence[str] | None = None,
        time_type: pa.DataType | None = None,
        typing: AvroTyping | None = None,
    ) -> None:
        """`fields`, `time_type` and `typing` are as in `ReaderSchema.of`, and so are the errors."""
        parsed = parse_schema(schema.text, [text for _, text in schema.references])
        typing = typing or AvroTyping()
        self._arguments = schema, None if fields is None else tuple(fields), time_type, typing
        self._kept = keeping(self._resolved)
        self.reader = ReaderSchema.of(parsed, fields, time_type, typing)

    def __reduce__(self) -> tuple[Any, ...]:
        return made_once, (AvroReader, *self._arguments)

    @property
    def arrow_type(self) -> pa.DataType:
        """The type of the column."""
        return self.reader.arrow_type

    def program(self, writer: SchemaText, message: Sequence[int] = ()) -> Program:
        """Resolve the writer's schema to the reader's. The result is cached."""
        resolved: Program = self._kept(writer)
        return resolved

    def _resolved(self, writer: SchemaText) -> Program:
        if writer.type is not SchemaType.AVRO:
            found, expected = f"a schema of {writer.type.value}", "Records of this column are Avro"
            raise UnresolvableError("", found, expected)
        references = [text for _, text in writer.references]
        return resolve(parse_schema(writer.text, references), self.reader)

    def decode(self, programs: Sequence[Program], encoded: Encoded) -> Decoded:
        """Decode the values, as `values.decoding` does."""
        return _ENGINES.decode(self.reader.layout, programs, encoded)
