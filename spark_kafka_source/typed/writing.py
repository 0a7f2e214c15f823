"""How typed columns are encoded: schemas looked up, or registered, once for a query."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.registry import (
    IncompatibleSchemaError,
    RegisteredSchema,
    RegistryClient,
    SchemaNotFoundError,
)
from spark_kafka_source.typed.config import (
    Format,
    FormatConfig,
    TypedWriteConfig,
)
from spark_kafka_source.typed.plan import asking, check_type, given_schema, json_type, named_schema
from spark_kafka_source.typed.subjects import SubjectConfig
from spark_kafka_source.values import (
    SchemaError,
    SchemaText,
    SchemaType,
    ValueWriter,
    encode_values,
)
from spark_kafka_source.values.avro import AvroWriter, parse_schema, schema_of
from spark_kafka_source.values.json import JsonWriter
from spark_kafka_source.values.protobuf import ProtobufWriter

_AUTO_REGISTER = "auto.register.schemas"
_ID_BYTES = 4
_NO_LETTER = re.compile(r"[^A-Za-z0-9_]")


@dataclass(frozen=True, slots=True)
class TypedWrite:
    """How a column is encoded; it can be pickled."""

    writer: ValueWriter
    prefix: bytes
    """What says which schema it is."""

    def encode(self, array: pa.Array) -> pa.BinaryArray:
        """Return what Kafka gets; raises as `encode_values` does."""
        return encode_values(self.writer, array, self.prefix)

    def one(self, value: Any) -> bytes:
        """The same of one value that is not None, a dict for a struct.

        Raises `UnencodableRowError`.
        """
        return self.prefix + self.writer.one(value)


def plan_writes(
    config: TypedWriteConfig,
    columns: Mapping[str, pa.DataType | None],
    topic: str | None,
    *,
    client: RegistryClient | None = None,
) -> dict[str, TypedWrite]:
    """Look up the schemas to write with, or register them, and return how columns are encoded.

    `columns` are the types of the columns `key` and `value`; a part without one is passed over.
    Where a type is None it is the schema's, which then is by default the latest of its subject.
    `client` is that of the registry, by default one of this call's own. Raises
    `ConfigurationError`, and what a `RegistryClient` does.
    """
    with asking(config.registry, client) as registry:
        planner = _Planner(config, topic, registry)
        return {
            each.part: planner.planned(each, subject, columns[each.part])
            for each, subject in zip(config.parts, config.subjects, strict=True)
            if each.part in columns
        }


class _Planner:
    """Finds the schemas of a query that writes."""

    def __init__(
        self, config: TypedWriteConfig, topic: str | None, client: RegistryClient | None
    ) -> None:
        self._registration, self._topic, self._client = config.registration, topic, client

    def planned(
        self, config: FormatConfig, subject: SubjectConfig, kind: pa.DataType | None
    ) -> TypedWrite:
        named = None if self._client is None else named_schema(config, self._client)
        if kind is None and named is None and not config.schema:
            named = self._latest(config, subject)
        if named is not None:
            check_type(config, named)
        is_framed = self._client is not None and config.is_framed(has_registry=True)
        try:
            schema = named.schema if named else given_schema(config) or self._derived(config, kind)
            writer, name = _writer(config, schema, kind)
        except SchemaError as error:
            option = config.option("schema" if config.schema else "format")
            raise ConfigurationError(option, f"cannot be written with: {error}", "") from error
        if self._client is None or not is_framed:
            return TypedWrite(writer, b"")
        if named is not None:
            return TypedWrite(writer, _prefix(int(named.id), writer))
        if schema is None:
            found = f"is missing, where '{config.option('format')}' is '{config.format}'"
            expected = f"Give it, '{config.option('schema_subject')}', or "
            expected += f"'{config.option('framing')}' 'none'"
            raise ConfigurationError(config.option("schema"), found, expected)
        called = subject.subject_name_strategy.subject(config.part, self._topic, name)
        found_id = self._registered(config, self._client, called, schema)
        return TypedWrite(writer, _prefix(found_id, writer))

    def _latest(self, config: FormatConfig, subject: SubjectConfig) -> RegisteredSchema | None:
        """What the topic's subject has, for values that have no type of their own."""
        if self._client is None:
            return None
        called = subject.subject_name_strategy.subject(config.part, self._topic, None)
        try:
            return self._client.by_subject(called)
        except SchemaNotFoundError as error:
            expected = "Give the schema, or send columns: one is made of their type"
            found = f"is not given, and {error}"
            raise ConfigurationError(config.option("schema"), found, expected) from error

    def _derived(self, config: FormatConfig, kind: pa.DataType | None) -> SchemaText | None:
        """The schema of columns that have none; only Avro needs one to write."""
        if config.format is not Format.AVRO or kind is None:
            return None
        name = _NO_LETTER.sub("_", f"{self._topic or 'row'}_{config.part}")
        named = f"_{name}" if name[0].isdigit() else name
        return SchemaText(SchemaType.AVRO, schema_of(kind, named))

    def _registered(
        self, config: FormatConfig, client: RegistryClient, subject: str, schema: SchemaText
    ) -> int:
        normalize = self._registration.normalize_schemas
        found = client.look_up(subject, schema, normalize=normalize)
        if found is not None:
            return int(found.id)
        if not self._registration.auto_register_schemas:
            raise ConfigurationError(
                _AUTO_REGISTER,
                f"is 'false', and subject {subject!r} does not have the schema of the rows",
                f"Register it, set this to 'true', or give '{config.option('schema_subject')}' to "
                "write with a schema that is there",
            )
        try:
            return client.register(subject, schema, normalize=normalize)
        except IncompatibleSchemaError as error:
            expected = "Change the rows, or what the subject allows"
            raise ConfigurationError(_AUTO_REGISTER, f"is in vain: {error}", expected) from error


def _prefix(schema_id: int, writer: ValueWriter) -> bytes:
    indexes = writer.indexes if isinstance(writer, ProtobufWriter) else b""
    return b"\0" + schema_id.to_bytes(_ID_BYTES) + indexes


def _writer(
    config: FormatConfig, schema: SchemaText | None, kind: pa.DataType | None
) -> tuple[ValueWriter, str | None]:
    """The writer, and the full name of what it writes."""
    if config.format is Format.JSON and kind is not None:
        return JsonWriter(kind), None if schema is None else _title(schema.text)
    if schema is None:
        found = f"is missing, where '{config.option('format')}' is '{config.format}'"
        expected = f"Give it, or '{config.option('schema_subject')}'"
        raise ConfigurationError(config.option("schema"), found, expected)
    if config.format is Format.JSON:
        return JsonWriter(json_type(config, schema)), _title(schema.text)
    if config.format is Format.PROTOBUF:
        writer = ProtobufWriter(schema, config.message or None)
        return writer, writer.message
    parsed = parse_schema(schema.text, [text for _, text in schema.references])
    return AvroWriter(schema), getattr(parsed.type, "name", None)


def _title(text: str) -> str | None:
    """The name of a JSON Schema; the DDL of columns has none."""
    try:
        schema = json.loads(text)
    except ValueError:
        return None
    title = schema.get("title") if isinstance(schema, dict) else None
    return title if isinstance(title, str) else None
