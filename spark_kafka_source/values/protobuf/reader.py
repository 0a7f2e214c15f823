"""Protobuf as a format of values to read."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from spark_kafka_source.values.compiled import interpreted
from spark_kafka_source.values.decoding import Decoded, Engines
from spark_kafka_source.values.errors import UnresolvableError
from spark_kafka_source.values.kept import keeping, made_once
from spark_kafka_source.values.protobuf import compiled
from spark_kafka_source.values.protobuf.any_json import json_of_any
from spark_kafka_source.values.protobuf.descriptors import parse_descriptors
from spark_kafka_source.values.protobuf.files import descriptors_of
from spark_kafka_source.values.protobuf.kernels import FRAME, MAX_DEPTH, run
from spark_kafka_source.values.protobuf.program import MessageProgram, program_of, tables_of
from spark_kafka_source.values.protobuf.schema import Message, Schema
from spark_kafka_source.values.protobuf.shape import table_of
from spark_kafka_source.values.protobuf.waves import MessageWaves
from spark_kafka_source.values.rows import Encoded
from spark_kafka_source.values.schema_text import SchemaText
from spark_kafka_source.values.typing import ProtobufTyping

_ENGINES: Engines[MessageProgram] = Engines(
    MessageWaves, tables_of, (MAX_DEPTH, FRAME), compiled, interpreted(run)
)


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
    ) -> MessageProgram:
        """Return the program that reads `message` of `writer`. None is the reader's own schema.

        Without indexes, the message is the one with the reader's name. The result is cached, since
        a text needs a compiler. Raises `SchemaError`, and `UnresolvableError` if the message is
        another.
        """
        made: MessageProgram = self._kept(writer, tuple(message))
        return made

    def _made(self, writer: SchemaText | bytes | None, message: tuple[int, ...]) -> MessageProgram:
        own = self.schema, self.message
        if writer is None:
            return program_of(self.table, *own, *own)
        schema = parse_descriptors(descriptors_of(writer))
        return program_of(self.table, *own, schema, self._written(schema, message))

    def _written(self, schema: Schema, indexes: Sequence[int]) -> Message:
        name = self.message.name
        if not indexes and name in schema.messages:
            return schema.messages[name]
        by_index = _indexed(schema, indexes)
        if by_index.name != name:
            raise UnresolvableError(
                "", f"{by_index} was written", f"It cannot be read as {self.message}"
            )
        return by_index

    def decode(self, programs: Sequence[MessageProgram], encoded: Encoded) -> Decoded:
        """Decode the values, as `values.decoding` does."""
        return _ENGINES.decode(self.table.layout, programs, encoded)


def _indexed(schema: Schema, indexes: Sequence[int]) -> Message:
    """Return the message at these indexes, counted as in Java, or else as other clients count."""
    try:
        return schema.indexed(indexes)
    except UnresolvableError:
        with suppress(UnresolvableError):
            return schema.indexed(indexes, entries=True)
        raise
