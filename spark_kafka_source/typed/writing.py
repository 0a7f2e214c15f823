"""Encoding of typed columns. Schemas are looked up or registered once for a query."""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.records import UnencodableRowError
from spark_kafka_source.registry import (
    IncompatibleSchemaError,
    RegisteredSchema,
    RegistryClient,
    SchemaNotFoundError,
)
from spark_kafka_source.typed.config import TypedWriteConfig
from spark_kafka_source.typed.format_config import Format, FormatConfig
from spark_kafka_source.typed.reading import (
    asking,
    check_type,
    given_schema,
    json_validation,
    named_schema,
)
from spark_kafka_source.typed.subjects import SubjectConfig
from spark_kafka_source.values import (
    SchemaError,
    SchemaText,
    SchemaType,
    ValueWriter,
    encode_values,
)
from spark_kafka_source.values.avro import AvroWriter, parse_schema, schema_of
from spark_kafka_source.values.fitting import UnfitColumnError, of_part
from spark_kafka_source.values.json import JsonWriter
from spark_kafka_source.values.protobuf import ProtobufWriter

_AUTO_REGISTER = "auto.register.schemas"
_ID_BYTES = 4
_NO_LETTER = re.compile(r"[^A-Za-z0-9_]")


@dataclass(frozen=True, slots=True)
class TypedWrite:
    """Encoder of a column. It can be pickled."""

    part: str
    """`key` or `value`."""
    writer: ValueWriter
    prefix: bytes
    """The bytes that identify the schema, before each value."""

    def fit(self, kind: pa.DataType | None) -> None:
        """Raise `UnfitColumnError` if columns of this type do not fit the schema.

        A column of the null type has only tombstones. None stands for values without a type.
        """
        if kind is None or pa.types.is_null(kind):
            return
        try:
            self.writer.fit(kind)
        except UnfitColumnError as error:
            raise error.within(self.part) from None

    def encode(self, array: pa.Array) -> pa.BinaryArray:
        """Encode a column to the bytes that Kafka gets. Raises as `fit` and `encode_values` do."""
        try:
            return encode_values(self.writer, array, self.prefix)
        except UnfitColumnError as error:
            raise error.within(self.part) from None

    def one(self, value: Any) -> bytes:
        """Encode one value that is not None. A dict stands for a struct.

        Raises `UnencodableRowError`.
        """
        try:
            return self.prefix + self.writer.one(value)
        except UnencodableRowError as error:
            raise type(error)(error.rows, of_part(error.reason, self.part)) from None


def plan_writes(
    config: TypedWriteConfig,
    columns: Mapping[str, pa.DataType | None],
    topic: str | None,
    *,
    client: RegistryClient | None = None,
) -> dict[str, TypedWrite]:
    """Look up or register the schemas to write with, and return the encoder of each column.

    `columns` holds the types of the columns `key` and `value`. A part without a column is skipped.
    If a type is None, the schema gives the type; the default schema is then the latest of its
    subject. `client` asks the registry; by default this call makes its own client. Raises
    `ConfigurationError`, `UnfitColumnError` for a column that does not fit its schema, and the
    errors of a `RegistryClient`.
    """
    own = None if config.registry is None else partial(RegistryClient, config.registry)
    with asking(client, own) as registry:
        planner = _Planner(config, topic, registry)
        return {
            part_config.part: planner.planned(part_config, subject, columns[part_config.part])
            for part_config, subject in zip(config.parts, config.subjects, strict=True)
            if part_config.part in columns
        }


class _Planner:
    """Finder of the schemas of a query that writes."""

    def __init__(
        self, config: TypedWriteConfig, topic: str | None, client: RegistryClient | None
    ) -> None:
        self._registration, self._topic, self._client = config.registration, topic, client

    def planned(
        self, config: FormatConfig, subject: SubjectConfig, kind: pa.DataType | None
    ) -> TypedWrite:
        named = None if self._client is None else named_schema(config, self._client)
        if named is None and not config.schema and (kind is None or config.schema_version):
            named = self._of_topic(config, subject)
        if named is not None:
            check_type(config, named)
        is_framed = self._client is not None and config.is_framed(has_registry=True)
        try:
            schema = named.schema if named else given_schema(config) or self._derived(config, kind)
            config.check_rules(schema, writing=True)
            writer, name = _writer(config, schema, kind)
        except SchemaError as error:
            option = config.option("schema" if config.schema else "format")
            raise ConfigurationError(option, f"cannot be used for writing: {error}", "") from error
        write = TypedWrite(config.part, writer, b"")
        write.fit(kind)
        if self._client is None or not is_framed:
            return write
        if named is not None:
            return replace(write, prefix=_prefix(int(named.id), writer))
        if schema is None:
            found = f"is missing, where '{config.option('format')}' is '{config.format}'"
            expected = f"Give it, '{config.option('schema_subject')}', or "
            expected += f"'{config.option('framing')}' 'none'"
            raise ConfigurationError(config.option("schema"), found, expected)
        subject_name = subject.subject_name_strategy.subject(config.part, self._topic, name)
        found_id = self._registered(config, self._client, subject_name, schema)
        return replace(write, prefix=_prefix(found_id, writer))

    def _of_topic(self, config: FormatConfig, subject: SubjectConfig) -> RegisteredSchema | None:
        """Return the configured version of the topic's subject, by default the latest.

        This is for values without a type of their own, and for a version option given alone.
        """
        if self._client is None:
            return None
        subject_name = subject.subject_name_strategy.subject(config.part, self._topic, None)
        try:
            return self._client.by_subject(subject_name, config.version)
        except SchemaNotFoundError as error:
            expected = "Give the schema, or send columns: one is made of their type"
            found = f"is not given, and {error}"
            raise ConfigurationError(config.option("schema"), found, expected) from error

    def _derived(self, config: FormatConfig, kind: pa.DataType | None) -> SchemaText | None:
        """Derive a schema from the columns' type. Only Avro needs a schema to write."""
        if config.format is not Format.AVRO or kind is None:
            return None
        name = _NO_LETTER.sub("_", f"{self._topic or 'row'}_{config.part}")
        named = f"_{name}" if name[0].isdigit() else name
        of_record = config.avro.record_name or named, config.avro.record_namespace
        return SchemaText(SchemaType.AVRO, schema_of(kind, *of_record))

    def _registered(
        self, config: FormatConfig, client: RegistryClient, subject: str, schema: SchemaText
    ) -> int:
        normalize = self._registration.normalize_schemas
        registered = client.look_up(subject, schema, normalize=normalize)
        if registered is not None:
            config.check_rules(registered.schema, writing=True)
            return int(registered.id)
        if not self._registration.auto_register_schemas:
            raise ConfigurationError(
                _AUTO_REGISTER,
                f"is 'false', and subject {subject!r} does not have the schema of the rows",
                f"Register it, set this to 'true', or give '{config.option('schema_subject')}' to "
                "write with a schema that is there",
            )
        with suppress(SchemaNotFoundError):
            # A new version has the rules of the one before it.
            config.check_rules(client.by_subject(subject).schema, writing=True)
        try:
            return client.register(subject, schema, normalize=normalize)
        except IncompatibleSchemaError as error:
            expected = "Change the rows, or what the subject allows"
            raise ConfigurationError(
                _AUTO_REGISTER, f"is 'true', and registration failed: {error}", expected
            ) from error


def _prefix(schema_id: int, writer: ValueWriter) -> bytes:
    indexes = writer.indexes if isinstance(writer, ProtobufWriter) else b""
    return b"\0" + schema_id.to_bytes(_ID_BYTES) + indexes


def _writer(
    config: FormatConfig, schema: SchemaText | None, kind: pa.DataType | None
) -> tuple[ValueWriter, str | None]:
    """Return the writer, and the full name of the record or message that it writes."""
    if config.format is Format.JSON and (schema or kind):
        title = None if schema is None else _title(schema.text)
        validation = json_validation(config, schema)
        ignored = config.ignored_names
        return JsonWriter(schema, kind, ignored, validation, config.json), title
    if schema is None:
        found = f"is missing, where '{config.option('format')}' is '{config.format}'"
        expected = f"Give it, or '{config.option('schema_subject')}'"
        raise ConfigurationError(config.option("schema"), found, expected)
    if config.format is Format.PROTOBUF:
        ignored, typing = config.ignored_names, config.protobuf
        writer = ProtobufWriter(schema, config.message or None, ignored, typing)
        return writer, writer.message
    parsed = parse_schema(schema.text, [text for _, text in schema.references])
    return AvroWriter(schema, config.ignored_names, config.avro), getattr(parsed.type, "name", None)


def _title(text: str) -> str | None:
    """Return the title of a JSON Schema. A DDL schema has none."""
    try:
        schema = json.loads(text)
    except ValueError:
        return None
    title = schema.get("title") if isinstance(schema, dict) else None
    return title if isinstance(title, str) else None
