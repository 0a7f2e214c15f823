"""Avro as a format of values to read."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from spark_kafka_source.records.types import Bytes
from spark_kafka_source.records.varints import Integers, Octets
from spark_kafka_source.values.avro.parse import parse_schema
from spark_kafka_source.values.avro.reader import Reader
from spark_kafka_source.values.avro.resolve import resolve
from spark_kafka_source.values.decoding import Decoded, decode
from spark_kafka_source.values.errors import UnresolvableError
from spark_kafka_source.values.kept import keeping, made_once
from spark_kafka_source.values.outcome import Mask
from spark_kafka_source.values.program import Program
from spark_kafka_source.values.schema_text import SchemaText, SchemaType
from spark_kafka_source.values.typing import AvroTyping


class AvroReader:
    """`ValueReader` of some or all columns of a schema. It is pickled as the schema's text."""

    def __init__(
        self,
        schema: SchemaText,
        fields: Sequence[str] | None = None,
        time_type: pa.DataType | None = None,
        typing: AvroTyping | None = None,
    ) -> None:
        """`fields`, `time_type` and `typing` are as in `Reader.of`. Raises as `Reader.of` does."""
        parsed = parse_schema(schema.text, [text for _, text in schema.references])
        typing = typing or AvroTyping()
        self._arguments = schema, None if fields is None else tuple(fields), time_type, typing
        self._kept = keeping(self._resolved)
        self.reader = Reader.of(parsed, fields, time_type, typing)

    def __reduce__(self) -> tuple[Any, ...]:
        return made_once, (AvroReader, *self._arguments)

    @property
    def arrow_type(self) -> pa.DataType:
        """The type of the column."""
        return self.reader.arrow_type

    def program(self, writer: SchemaText, message: Sequence[int] = ()) -> Program:
        """Resolve the writer's schema to the reader's. The result is cached."""
        found: Program = self._kept(writer)
        return found

    def _resolved(self, writer: SchemaText) -> Program:
        if writer.type is not SchemaType.AVRO:
            found, expected = f"a schema of {writer.type.value}", "Records of this column are Avro"
            raise UnresolvableError("", found, expected)
        references = [text for _, text in writer.references]
        return resolve(parse_schema(writer.text, references), self.reader)

    def decode(
        self,
        programs: Sequence[Program],
        data: Bytes | Octets,
        starts: Integers,
        ends: Integers,
        *,
        null: Mask | None = None,
        program_of: Integers | None = None,
    ) -> Decoded:
        """Decode the rows, as `values.decoding` does."""
        layout = self.reader.layout
        return decode(layout, programs, data, starts, ends, null=null, program_of=program_of)
