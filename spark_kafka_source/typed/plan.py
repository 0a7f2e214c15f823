"""What typed columns are read with: schemas looked up once, when a query is planned."""

import logging
from collections.abc import Callable, Sequence
from uuid import UUID

import pyarrow as pa

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.registry import (
    ConfluentFraming,
    Framing,
    Indexes,
    NoFraming,
    Part,
    RegisteredSchema,
    RegistryClient,
    SchemaKey,
    SchemaNotFoundError,
)
from spark_kafka_source.typed.columns import NO_ID, TypedColumns, TypedPart
from spark_kafka_source.typed.config import Format, FormatConfig, TypedConfig
from spark_kafka_source.values import (
    SchemaError,
    SchemaText,
    SchemaType,
    TextReader,
    ValueReader,
)
from spark_kafka_source.values.avro import AvroReader

logger = logging.getLogger(__name__)

Topics = Callable[[], Sequence[str]]
"""Gives the topics that are read, for the subjects of their schemas."""

_TYPES = {
    Format.AVRO: SchemaType.AVRO,
    Format.JSON: SchemaType.JSON,
    Format.PROTOBUF: SchemaType.PROTOBUF,
}


def plan_columns(
    config: TypedConfig,
    columns: tuple[str, ...],
    topics: Topics,
    time_type: pa.DataType | None = None,
) -> TypedColumns:
    """Look up the schemas to read with, and return how columns are decoded.

    Raises `ConfigurationError` for a schema that cannot be used, and what a `RegistryClient` does.
    """
    client = None if config.registry is None else RegistryClient(config.registry)
    try:
        parts = {
            each.prefix.rstrip("."): _planned(each, config, client, topics, time_type)
            for each in config.parts
        }
    finally:
        if client is not None:
            client.close()
    return TypedColumns(columns, parts, config.bad_records)


def _planned(
    config: FormatConfig,
    typed: TypedConfig,
    client: RegistryClient | None,
    topics: Topics,
    time_type: pa.DataType | None,
) -> TypedPart:
    if not config.has_schema:
        return TypedPart(TextReader(), _UNFRAMED, {NO_ID: SchemaText(SchemaType.JSON, "")})
    found = _schema(config, client, topics)
    schema = found.schema if isinstance(found, RegisteredSchema) else found
    try:
        reader = _reader(config, schema, time_type)
    except SchemaError as error:
        option = config.option("schema" if config.schema else "schema_subject")
        raise ConfigurationError(option, f"cannot be read with: {error}", "") from error
    known: dict[int | UUID, SchemaText] = {NO_ID: schema}
    if isinstance(found, RegisteredSchema):
        known[found.id] = schema
    framing = _framing(config)
    return TypedPart(reader, framing, known, typed.registry if config.is_framed else None)


_UNFRAMED = NoFraming(SchemaKey(NO_ID))


def _framing(config: FormatConfig) -> Framing:
    if not config.is_framed:
        return _UNFRAMED
    indexes = Indexes.ZIGZAG if config.format is Format.PROTOBUF else Indexes.NONE
    return ConfluentFraming(Part[config.prefix.rstrip(".").upper()], indexes)


def _reader(config: FormatConfig, schema: SchemaText, time_type: pa.DataType | None) -> ValueReader:
    if config.format is Format.AVRO:
        return AvroReader(schema, config.field_names, time_type)
    raise NotImplementedError(config.format)


def _schema(
    config: FormatConfig, client: RegistryClient | None, topics: Topics
) -> SchemaText | RegisteredSchema:
    if config.schema:
        return SchemaText(_TYPES[config.format], config.schema)
    if client is None:
        raise ValueError("without a registry there must be a schema")
    if config.wanted_id is not None:
        found = client.by_id(config.wanted_id)
    elif config.schema_subject:
        found = client.by_subject(config.schema_subject.strip(), config.version)
    else:
        found = _of_topics(config, client, topics())
    if found.schema.type is not _TYPES[config.format]:
        raise ConfigurationError(
            config.option("format"),
            f"is '{config.format}', and the schema {_named(found)} is of {found.schema.type.value}",
            f"Give '{found.schema.type.value.lower()}', or another schema",
        )
    logger.info("%ss are read with the schema %s", config.prefix.rstrip("."), _named(found))
    return found


def _of_topics(
    config: FormatConfig, client: RegistryClient, topics: Sequence[str]
) -> RegisteredSchema:
    """The schema that all topics have, by the subjects named after them."""
    part = config.prefix.rstrip(".")
    option = config.option("schema_subject")
    found: dict[str, RegisteredSchema] = {}
    for topic in topics:
        subject = f"{topic}-{part}"
        try:
            found[subject] = client.by_subject(subject, config.version)
        except SchemaNotFoundError as error:
            expected = f"Name the subject, '{config.option('schema')}' or its id"
            raise ConfigurationError(option, f"is not given, and {error}", expected) from error
    if not found:
        expected = "Name the subject: the topics of the pattern are not there yet"
        raise ConfigurationError(option, "is not given, and there is no topic", expected)
    first = next(iter(found.values()))
    if any(each.schema != first.schema for each in found.values()):
        ids = ", ".join(f"{subject}: {each.id}" for subject, each in found.items())
        expected = "Name the one to read all of them with"
        raise ConfigurationError(option, f"is not given, and subjects differ: {ids}", expected)
    return first


def _named(found: RegisteredSchema) -> str:
    if found.subject is None:
        return f"{found.id}"
    return f"{found.id}, version {found.version} of subject {found.subject!r}"
