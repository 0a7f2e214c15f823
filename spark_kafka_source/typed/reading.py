"""Decoding of typed columns, as planned for a query that reads: each schema is looked up once."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import TypeVar

import pyarrow as pa

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.logs import logger_of
from spark_kafka_source.registry import (
    ApicurioFraming,
    ConfluentFraming,
    Framing,
    GlueClient,
    GlueFraming,
    Indexes,
    NoFraming,
    Part,
    RegisteredSchema,
    RegistryClient,
    SchemaId,
    SchemaKey,
    SchemaNotFoundError,
    client_of,
)
from spark_kafka_source.typed.config import TypedConfig
from spark_kafka_source.typed.decoding import NO_ID, TypedColumns, TypedPart
from spark_kafka_source.typed.format_config import Format, FormatConfig, FramingName
from spark_kafka_source.values import (
    SchemaError,
    SchemaText,
    TextReader,
    ValueReader,
)
from spark_kafka_source.values.avro import AvroReader
from spark_kafka_source.values.ddl import from_ddl
from spark_kafka_source.values.json import JsonReader, Validation, arrow_type, is_ddl
from spark_kafka_source.values.protobuf import ProtobufReader

Client = RegistryClient | GlueClient
C = TypeVar("C", bound=Client)

logger = logger_of(__name__)

Topics = Callable[[], Sequence[str]]
"""Returns the topics that are read. The default subjects are named after them."""


def plan_columns(
    config: TypedConfig,
    columns: tuple[str, ...],
    topics: Topics,
    time_type: pa.DataType | None = None,
    *,
    client: Client | None = None,
) -> TypedColumns:
    """Look up the schemas to read with, and return how to decode the columns.

    `client` asks the registry; by default this call makes its own client. Raises
    `ConfigurationError` for an unusable schema, and the errors of a `RegistryClient`.
    """
    own = None if config.registry is None else partial(client_of, config.registry)
    with asking(client, own) as registry:
        parts = {
            part_config.part: _planned(part_config, config, registry, topics, time_type)
            for part_config in config.parts
        }
    return TypedColumns(columns, parts, config.bad_records, config.bad_records_topic)


@contextmanager
def asking(client: C | None, own: Callable[[], C] | None) -> Iterator[C | None]:
    """Yield `client`, or one of `own` that is closed at the end. Yield None without a registry."""
    if client is not None or own is None:
        yield client
        return
    with closing(own()) as made:
        yield made


def _planned(
    config: FormatConfig,
    typed: TypedConfig,
    client: Client | None,
    topics: Topics,
    time_type: pa.DataType | None,
) -> TypedPart:
    if not config.has_schema:
        return TypedPart(TextReader(), _UNFRAMED, {}, needs_schemas=False)
    chosen = _schema(config, client, topics)
    schema = chosen.schema if isinstance(chosen, RegisteredSchema) else chosen
    try:
        config.check_rules(schema)
        reader = _reader(config, schema, time_type)
    except SchemaError as error:
        option = config.option("schema" if config.schema else "schema_subject")
        raise ConfigurationError(option, f"cannot be used for reading: {error}", "") from error
    known: dict[SchemaId, SchemaText] = {NO_ID: schema}
    if isinstance(chosen, RegisteredSchema):
        known[chosen.id] = schema
    is_framed = config.is_framed(typed.registry is not None)
    framing = _framing(config) if is_framed else _UNFRAMED
    # JSON values describe themselves: of the writer's schema only the rules count.
    needs_schemas = config.format is not Format.JSON
    has_rules = bool(config.rules_option) and isinstance(framing, ConfluentFraming)
    asked_registry = typed.registry if is_framed and (needs_schemas or has_rules) else None
    return TypedPart(reader, framing, known, asked_registry, needs_schemas, config.rules_option)


_UNFRAMED = NoFraming(SchemaKey(NO_ID))


def _framing(config: FormatConfig) -> Framing:
    part = Part[config.part.upper()]
    match config.framing:
        case FramingName.GLUE:
            return GlueFraming()
        case FramingName.APICURIO:
            return ApicurioFraming(part)
        case FramingName.APICURIO_CONTENT_ID:
            return ApicurioFraming(part, "contentId")
    indexes = Indexes.ZIGZAG if config.format is Format.PROTOBUF else Indexes.NONE
    return ConfluentFraming(part, indexes)


def _reader(config: FormatConfig, schema: SchemaText, time_type: pa.DataType | None) -> ValueReader:
    if config.format is Format.AVRO:
        return AvroReader(schema, config.field_names, time_type, config.avro)
    if config.format is Format.JSON:
        validation = json_validation(config, schema)
        return JsonReader(_json_type(schema), config.field_names, validation, config.json)
    return ProtobufReader(schema, config.message or None, config.field_names, config.protobuf)


def _json_type(schema: SchemaText) -> pa.DataType:
    """Return the type of JSON values. A schema given as an option may be DDL."""
    return from_ddl(schema.text) if is_ddl(schema.text) else arrow_type(schema)


def json_validation(config: FormatConfig, schema: SchemaText | None) -> Validation | None:
    """Return the validation of JSON values, if `value.validate` is true.

    Raises `ConfigurationError` without a JSON Schema or the package for it, and `SchemaError` for a
    schema that is not valid itself.
    """
    if not config.validate:
        return None
    if schema is None or is_ddl(schema.text):
        found = "is 'true', and there is no JSON Schema to validate with"
        expected = f"Give one as '{config.option('schema')}', or leave it out"
        raise ConfigurationError(config.option("validate"), found, expected)
    validation = Validation(schema)
    validation.check()
    return validation


def _schema(
    config: FormatConfig, client: Client | None, topics: Topics
) -> SchemaText | RegisteredSchema:
    given = given_schema(config)
    if given is not None:
        return given
    if client is None:
        raise ValueError("without a registry there must be a schema")
    registered = named_schema(config, client) or _of_topics(config, client, topics())
    check_type(config, registered)
    logger.info("%ss are read with the schema %s", config.part, _named(registered))
    return registered


def given_schema(config: FormatConfig) -> SchemaText | None:
    """Return the schema that is given as an option, or None.

    Raises `ConfigurationError` for a type of Spark's in JSON: no format would say what it is.
    """
    if not config.schema:
        return None
    if _is_of_spark(config.schema):
        is_ddl = config.format is Format.JSON
        expected = "df.schema.simpleString()" if is_ddl else f"a schema of '{config.format}'"
        found = "is a type of Spark in JSON, as df.schema.json() returns it"
        raise ConfigurationError(config.option("schema"), found, f"Give {expected}")
    return SchemaText(config.schema_type, config.schema)


def _is_of_spark(schema: str) -> bool:
    try:
        parsed = json.loads(schema)
    except (ValueError, RecursionError):
        return False
    return isinstance(parsed, dict) and parsed.get("type") == "struct" and "fields" in parsed


def named_schema(config: FormatConfig, client: Client) -> RegisteredSchema | None:
    """Return the schema that the options name by id or subject, or None if they name none."""
    if config.wanted_id is not None:
        return client.by_id(config.wanted_id)
    if config.schema_subject:
        return client.by_subject(config.schema_subject.strip(), config.version)
    return None


def check_type(config: FormatConfig, registered: RegisteredSchema) -> None:
    """Raise `ConfigurationError` for a schema of another format."""
    type = registered.schema.type
    if type is not config.schema_type:
        raise ConfigurationError(
            config.option("format"),
            f"is '{config.format}', and the schema {_named(registered)} is of {type.value}",
            f"Give '{type.value.lower()}', or another schema",
        )


def _of_topics(config: FormatConfig, client: Client, topics: Sequence[str]) -> RegisteredSchema:
    """Return the schema that all topics share, from the subjects named after the topics."""
    part = config.part
    option = config.option("schema_subject")
    registered: dict[str, RegisteredSchema] = {}
    for topic in topics:
        # Glue's serializers name a schema after the topic alone.
        subject = topic if config.framing is FramingName.GLUE else f"{topic}-{part}"
        try:
            registered[subject] = client.by_subject(subject, config.version)
        except SchemaNotFoundError as error:
            expected = f"Name the subject, '{config.option('schema')}' or its id"
            raise ConfigurationError(option, f"is not given, and {error}", expected) from error
    if not registered:
        expected = "Name the subject: the topics of the pattern are not there yet"
        raise ConfigurationError(option, "is not given, and there is no topic", expected)
    first = next(iter(registered.values()))
    if any(other.schema != first.schema for other in registered.values()):
        ids = ", ".join(f"{subject}: {schema.id}" for subject, schema in registered.items())
        expected = "Name the one to read all of them with"
        raise ConfigurationError(option, f"is not given, and subjects differ: {ids}", expected)
    return first


def _named(registered: RegisteredSchema) -> str:
    if registered.subject is None:
        return f"{registered.id}"
    return f"{registered.id}, version {registered.version} of subject {registered.subject!r}"
