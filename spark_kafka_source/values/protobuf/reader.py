"""Protobuf as a format of values to read."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from spark_kafka_source.records.types import Bytes
from spark_kafka_source.records.varints import Integers, Octets
from spark_kafka_source.values.decoding import Decoded, Engines, decode
from spark_kafka_source.values.errors import UnresolvableError
from spark_kafka_source.values.kept import keeping, made_once
from spark_kafka_source.values.outcome import Mask
from spark_kafka_source.values.protobuf import compiled
from spark_kafka_source.values.protobuf.any_json import json_of_any
from spark_kafka_source.values.protobuf.by_row import messages_by_row
from spark_kafka_source.values.protobuf.descriptors import parse_descriptors
from spark_kafka_source.values.protobuf.files import descriptors_of
from spark_kafka_source.values.protobuf.program import Program
from spark_kafka_source.values.protobuf.schema import Message, Schema
from spark_kafka_source.values.protobuf.shape import table_of
from spark_kafka_source.values.protobuf.steps import program_of
from spark_kafka_source.values.protobuf.waves import MessageWaves
from spark_kafka_source.values.schema_text import SchemaText
from spark_kafka_source.values.typing import ProtobufTyping

_ENGINES = Engines(MessageWaves, messages_by_row, compiled)


class ProtobufReader:
    """`ValueReader` of some or all columns of a message. It is pickled as its descriptors."""

    def __init__(
        self,
        schema: SchemaText | bytes,
        message: str | None = None,
        fields: Sequence[str] | None = None,
        typing: ProtobufTyping | None = None,
    ) -> None:
        """Read `message`, a full name, or by default the first message of the file.

        `schema` is the text of a file with the files that it imports, or a serialized
        `FileDescriptorSet` whose last file is the main one. `fields` are paths such as
        `address.city`; by default all fields are read. Raises `SchemaError`, `RecursiveTypeError`
        for a message that contains itself, unless `typing` allows it, and `ConfigurationError` for
        a text, or for JSON of `Any`, if the extra `protobuf` is not installed.
        """
        self.descriptors = descriptors_of(schema)
        self._arguments = message, None if fields is None else tuple(fields), typing
        self._kept = keeping(self._made)
        self.schema = parse_descriptors(self.descriptors)
        self.message: Message = self.schema.chosen(message)
        self.typing = typing or ProtobufTyping()
        show = None
        if self.typing.convert_any_fields_to_json:
            show = json_of_any(self.descriptors, self.typing.enums_as_ints)
        self.table = table_of(self.schema, self.message, fields, self.typing, show)

    def __reduce__(self) -> tuple[Any, ...]:
        return made_once, (ProtobufReader, self.descriptors, *self._arguments)

    @property
    def arrow_type(self) -> pa.DataType:
        """The type of the column."""
        return self.table.layout.column.arrow

    def program(
        self, writer: SchemaText | bytes | None = None, message: Sequence[int] = ()
    ) -> Program:
        """Return the program that reads `message` of `writer`. None is the reader's own schema.

        Without indexes, the message is the one with the reader's name. The result is cached, since
        a text needs a compiler. Raises `SchemaError`, and `UnresolvableError` if the message is
        another.
        """
        found: Program = self._kept(writer, tuple(message))
        return found

    def _made(self, writer: SchemaText | bytes | None, message: tuple[int, ...]) -> Program:
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
            raise UnresolvableError(
                "", f"{found} was written", f"It cannot be read as {self.message}"
            )
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
        """Decode the rows, as `values.decoding` does."""
        return decode(
            self.table.layout, programs, data, starts, ends,
            null=null, program_of=program_of, engines=_ENGINES,
        )  # fmt: skip


def _indexed(schema: Schema, indexes: Sequence[int]) -> Message:
    """Return the message at these indexes, counted as in Java, or else as other clients count."""
    try:
        return schema.indexed(indexes)
    except UnresolvableError:
        with suppress(UnresolvableError):
            return schema.indexed(indexes, entries=True)
        raise
