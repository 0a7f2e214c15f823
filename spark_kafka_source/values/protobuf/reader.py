"""Protobuf as one of the formats of values."""

import base64
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from spark_kafka_source.records.types import Bytes
from spark_kafka_source.records.varints import Integers, Octets
from spark_kafka_source.values.decoding import Decoded, Engines, decode
from spark_kafka_source.values.errors import SchemaError, UnresolvableError
from spark_kafka_source.values.outcome import Mask
from spark_kafka_source.values.protobuf.by_row import messages_by_row
from spark_kafka_source.values.protobuf.descriptors import parse_descriptors
from spark_kafka_source.values.protobuf.program import Program
from spark_kafka_source.values.protobuf.schema import Message, Schema
from spark_kafka_source.values.protobuf.shape import Typing, table_of
from spark_kafka_source.values.protobuf.steps import program_of
from spark_kafka_source.values.protobuf.text import compiled
from spark_kafka_source.values.protobuf.waves import MessageWaves
from spark_kafka_source.values.schema_text import SchemaText, SchemaType

_ENGINES = Engines(MessageWaves, messages_by_row)


class ProtobufReader:
    """A `ValueReader` of the columns of a message, or of some; pickled as its descriptors."""

    def __init__(
        self,
        schema: SchemaText | bytes,
        message: str | None = None,
        fields: Sequence[str] | None = None,
        typing: Typing | None = None,
    ) -> None:
        """Read `message`, a full name, or the first of the file where none is given.

        `schema` is the text of a file and of those that it imports, or a `FileDescriptorSet` that
        was serialized, whose last file is meant. `fields` are paths such as `address.city`; all
        by default. Raises `SchemaError`, `RecursiveTypeError` for a message that holds itself, and
        `ConfigurationError` for a text where the extra `protobuf` is not installed.
        """
        self.descriptors = descriptors_of(schema)
        self._arguments = message, fields, typing
        self.schema = parse_descriptors(self.descriptors)
        self.message: Message = self.schema.message(message) if message else self.schema.indexed(())
        self.typing = typing or Typing()
        self.table = table_of(self.schema, self.message, fields, self.typing)

    def __reduce__(self) -> tuple[Any, ...]:
        return ProtobufReader, (self.descriptors, *self._arguments)

    @property
    def arrow_type(self) -> pa.DataType:
        """Of the column."""
        return self.table.layout.column.arrow

    def program(
        self, writer: SchemaText | bytes | None = None, message: Sequence[int] = ()
    ) -> Program:
        """How to read what `writer` wrote, by its `message`; None for the reader's own.

        Without indexes it is the message of the reader's name. Raises `SchemaError`, and
        `UnresolvableError` where the message is another.
        """
        if writer is None:
            return program_of(self.table, self.schema, self.message)
        schema = parse_descriptors(descriptors_of(writer))
        return program_of(self.table, schema, self._written(schema, message))

    def _written(self, schema: Schema, indexes: Sequence[int]) -> Message:
        name = self.message.name
        if not indexes and name in schema.messages:
            return schema.messages[name]
        found = _indexed(schema, indexes)
        if found.name != name:
            raise UnresolvableError("", f"{found} was written", f"What is read is {self.message}")
        return found

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
        """Decode the rows as `values.decoding` does."""
        return decode(
            self.table.layout, programs, data, starts, ends,
            null=null, program_of=program_of, engines=_ENGINES,
        )  # fmt: skip


def _indexed(schema: Schema, indexes: Sequence[int]) -> Message:
    """As Java counts messages, or where that leads nowhere as others do."""
    try:
        return schema.indexed(indexes)
    except UnresolvableError:
        with suppress(UnresolvableError):
            return schema.indexed(indexes, entries=True)
        raise


def descriptors_of(schema: SchemaText | bytes) -> bytes:
    """Those of a text, or what are descriptors already."""
    if isinstance(schema, bytes):
        return schema
    if schema.type is not SchemaType.PROTOBUF:
        raise SchemaError("", f"a schema of {schema.type.value}", "It must be one of PROTOBUF")
    return _from_base64(schema.text) or compiled(schema)


def _from_base64(text: str) -> bytes | None:
    """A descriptor set, as registries write it; a file of .proto is no base64."""
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return None
