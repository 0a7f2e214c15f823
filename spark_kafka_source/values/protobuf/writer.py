"""Protobuf as a format of values to write."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pyarrow as pa

from spark_kafka_source.records.plain_types import as_plain, plain
from spark_kafka_source.values.kept import keeping_last, made_once
from spark_kafka_source.values.protobuf.descriptors import parse_descriptors
from spark_kafka_source.values.protobuf.encode import encode
from spark_kafka_source.values.protobuf.files import descriptors_of
from spark_kafka_source.values.protobuf.fit import Nothing, Struct, fit
from spark_kafka_source.values.protobuf.indexes import message_indexes
from spark_kafka_source.values.protobuf.one import writer_of_one
from spark_kafka_source.values.protobuf.reader import ProtobufReader
from spark_kafka_source.values.schema_text import SchemaText
from spark_kafka_source.values.typing import MOST_PROTOBUF_DEPTH, ProtobufTyping
from spark_kafka_source.values.value_writer import deepest


class ProtobufWriter:
    """`ValueWriter` of one message of a schema. It is pickled as its descriptors."""

    def __init__(
        self,
        schema: SchemaText | bytes,
        message: str | None = None,
        ignored: Collection[str] = (),
        typing: ProtobufTyping | None = None,
    ) -> None:
        """`schema` and `message` are as in `ProtobufReader`.

        `ignored` are paths of given fields, such as `address.zip`, that are left out if the message
        does not have them. `typing` only gives the `arrow_type`: columns may have the types of all
        options. Raises `SchemaError`, and `ConfigurationError` as `ProtobufReader` does.
        """
        self._descriptors = descriptors_of(schema)
        self._arguments = message, tuple(ignored), typing
        self._schema = parse_descriptors(self._descriptors)
        self._message = self._schema.chosen(message)
        self._plan = keeping_last(self._planned)
        self._one = writer_of_one(self._schema, self._message, ignored)

    def __reduce__(self) -> tuple[Any, ...]:
        return made_once, (ProtobufWriter, self._descriptors, *self._arguments)

    @property
    def arrow_type(self) -> pa.DataType:
        """The type in which the source reads the values.

        Raises `RecursiveTypeError` for a message that contains itself.
        """
        return self._type(self._arguments[2])

    @property
    def deepest_type(self) -> pa.DataType:
        """The `arrow_type`, or for a message that contains itself one that ends at some depth."""

        def type_at(depth: int) -> pa.DataType:
            typing = self._arguments[2] or ProtobufTyping()
            return self._type(replace(typing, recursive_fields_max_depth=depth))

        return deepest(lambda: self.arrow_type, type_at, MOST_PROTOBUF_DEPTH)

    @property
    def message(self) -> str:
        """The full name of the message."""
        return self._message.name

    @property
    def indexes(self) -> bytes:
        """The bytes that say which message of the schema it is."""
        return message_indexes(self._schema, self.message)

    def fit(self, kind: pa.DataType) -> None:
        """Raise `UnfitColumnError` if columns of this type do not fit the message."""
        self._plan(kind)

    def encode(self, array: pa.Array, prefix: bytes) -> pa.BinaryArray:
        """Encode each row."""
        plan, kind = self._plan(array.type)
        return encode(plan, as_plain(array, kind), prefix)

    def one(self, value: Any) -> bytes:
        """Encode one value."""
        return self._one(value)

    def _type(self, typing: ProtobufTyping | None) -> pa.DataType:
        return ProtobufReader(self._descriptors, self._arguments[0], None, typing).arrow_type

    def _planned(self, kind: pa.DataType) -> tuple[Struct | Nothing, pa.DataType]:
        """Return the plan for columns of this type, and the type in which it takes them."""
        taken = plain(kind)
        return fit(self._schema, self._message, taken, self._arguments[1]), taken
