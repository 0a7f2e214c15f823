"""The format of one part of a record: `value.format` and its neighbours, or those of the key."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from types import MappingProxyType
from typing import Any, Literal
from uuid import UUID

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.options.declaration import (
    Options,
    Settings,
    Use,
    option,
    options_of,
)
from spark_kafka_source.options.kinds import boolean, choice, string
from spark_kafka_source.values import SchemaText, SchemaType
from spark_kafka_source.values.typing import AvroTyping, JsonTyping, ProtobufTyping

URL = "schema.registry.url"
LATEST = "latest"


class Format(Enum):
    """Format of keys or values."""

    BINARY = "binary"
    STRING = "string"
    AVRO = "avro"
    JSON = "json"
    PROTOBUF = "protobuf"

    def __str__(self) -> str:
        return self.value


class FramingName(Enum):
    """Convention that marks the schema of a record."""

    DEFAULT = "default"
    """Confluent's if a registry is given, else none."""
    CONFLUENT = "confluent"
    APICURIO = "apicurio"
    """An id before the value is a globalId."""
    APICURIO_CONTENT_ID = "apicurio.contentId"
    GLUE = "glue"
    NONE = "none"

    def __str__(self) -> str:
        return self.value


ONLY_READ = frozenset({FramingName.APICURIO, FramingName.APICURIO_CONTENT_ID, FramingName.GLUE})


class SchemaRules(Enum):
    """Treatment of a schema with rules."""

    REFUSE = "refuse"
    IGNORE = "ignore"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class FormatConfig:
    """Format of one part of a record. The names of its settings begin with `prefix`."""

    prefix: str
    """`value.` or `key.`."""
    format: Format = option(
        "format",
        choice(Format.BINARY),
        "the format to decode from; by default the column stays bytes",
    )
    framing: FramingName = option(
        "framing",
        choice(FramingName.DEFAULT),
        "where to find the id of a record's schema: `confluent` looks into a header, else"
        " before the value; `apicurio` and `glue` read what the serializers of Apicurio and AWS"
        " Glue write; by default `confluent` if a registry is given, else `none`",
    )
    schema: str = option(
        "schema",
        string(),
        "the schema to read with: for Avro as JSON, for JSON as DDL or a JSON Schema,"
        " for Protobuf as the text of a `.proto` file or as descriptors in base64",
    )
    schema_subject: str = option(
        "schema.subject",
        string(),
        "the registry's subject of the schema; by default `<topic>-value` or `<topic>-key`",
    )
    schema_version: str = option(
        "schema.version", string(), "which version of the subject; the latest by default"
    )
    schema_id: str = option("schema.id", string(), "the id of the schema, in place of a subject")
    schema_rules: SchemaRules = option(
        "schema.rules",
        choice(SchemaRules.REFUSE),
        "what becomes of a schema whose rules, such as encryption, Confluent's clients would obey:"
        " an error, or the values stay as they are",
    )
    message: str = option("message", string(), "the full name of a Protobuf message")
    fields: str = option(
        "fields",
        string(),
        "read only these fields, separated by commas: `id,address.city`",
        Use.READ,
    )
    ignore_fields: str = option(
        "ignore.fields",
        string(),
        "fields that are left out if the schema to write with does not have them,"
        " separated by commas: `note,address.zip`; any other such field is an error",
        Use.WRITE,
    )
    validate: bool = option(
        "validate",
        boolean(False),
        "whether each JSON value is validated by the JSON Schema, with all its keywords: a"
        " record that is not valid is bad, and such a row is not written",
    )
    avro: AvroTyping = field(default_factory=AvroTyping)
    json: JsonTyping = field(default_factory=JsonTyping)
    protobuf: ProtobufTyping = field(default_factory=ProtobufTyping)

    @classmethod
    def from_settings(cls, settings: Settings, part: str) -> "FormatConfig":
        """Read the settings of `part`, `key` or `value`. Raises `ConfigurationError`."""
        prefix = f"{part}."
        _refuse_azure(settings, f"{prefix}framing")
        typings = {each.value: settings.read(typing, prefix) for each, typing in TYPINGS.items()}
        found = settings.read(cls, prefix, prefix=prefix, **typings)
        found._check(settings)
        return found

    @property
    def part(self) -> str:
        """`value` or `key`."""
        return self.prefix.rstrip(".")

    @property
    def schema_type(self) -> SchemaType:
        """The language of its schemas. Raises `ValueError` for a format without schemas."""
        return SchemaType(self.format.value.upper())

    @property
    def is_typed(self) -> bool:
        """Whether the part is decoded at all."""
        return self.format is not Format.BINARY

    @property
    def has_schema(self) -> bool:
        """Whether a schema gives the type of the values."""
        return self.format in (Format.AVRO, Format.JSON, Format.PROTOBUF)

    @property
    def is_by_topic(self) -> bool:
        """Whether the schema comes from a subject named after the topic."""
        return self.has_schema and not (self.schema or self.schema_subject or self.schema_id)

    @property
    def field_names(self) -> tuple[str, ...] | None:
        """The fields to decode, or None for all."""
        return _names(self.fields) or None

    @property
    def ignored_names(self) -> tuple[str, ...]:
        """The fields that a writer may leave out."""
        return _names(self.ignore_fields)

    @property
    def rules_option(self) -> str:
        """The option that lets schemas have rules, or "" if it is set."""
        return "" if self.schema_rules is SchemaRules.IGNORE else self.option("schema_rules")

    def check_rules(self, schema: SchemaText | None, *, writing: bool = False) -> None:
        """Raise `ConfigurationError` for a schema with a rule, unless rules are ignored."""
        rule = None if schema is None else schema.unobeyed_rule(writing=writing)
        if rule and self.rules_option:
            found = f"is '{SchemaRules.REFUSE}', and the schema has the rule {rule}"
            expected = "Set it to 'ignore' if the values may stay as they are: no rule is obeyed"
            raise ConfigurationError(self.rules_option, found, expected)

    def is_framed(self, has_registry: bool) -> bool:
        """Whether records are marked with the schema that wrote them."""
        if self.framing is FramingName.DEFAULT:
            return self.has_schema and has_registry
        return self.framing is not FramingName.NONE

    def check_registry(self, has_registry: bool) -> None:
        """Raise `ConfigurationError` if a registry is needed and not given."""
        if has_registry or not self.has_schema:
            return
        format_option = self.option("format")
        if not self.schema:
            found = f"is missing, where '{format_option}' is '{self.format}'"
            expected = f"Give the registry's address, or the schema as '{self.option('schema')}'"
            raise ConfigurationError(URL, found, expected)
        if self.is_framed(has_registry):
            found = f"is missing, where '{self.option('framing')}' is '{self.framing}'"
            raise ConfigurationError(URL, found, "Give the registry's address")

    def option(self, name: str) -> str:
        """Return the option name of a field, such as `value.schema.id`."""
        return self.prefix + name.replace("_", ".")

    def _check(self, settings: Settings) -> None:
        given = [name for name in format_options(self.part) if settings.has(name)]
        format_option = self.option("format")
        if not self.has_schema:
            useless = [name for name in given if name != format_option]
            if useless:
                found = f"has no effect where '{format_option}' is '{self.format}'"
                expected = f"Leave it out, or set '{format_option}' to avro, json or protobuf"
                raise ConfigurationError(useless[0], found, expected)
            return
        ways = [name for name in ("schema", "schema_subject", "schema_id") if getattr(self, name)]
        if len(ways) > 1:
            found = f"is given as well as '{self.option(ways[0])}'"
            raise ConfigurationError(self.option(ways[1]), found, "Give one of them")
        if self.option("schema_version") in given and ways not in ([], ["schema_subject"]):
            found = f"has no effect beside '{self.option(ways[0])}'"
            raise ConfigurationError(self.option("schema_version"), found, "Leave it out")
        if self.framing in ONLY_READ and self.format is Format.PROTOBUF:
            found = f"is '{self.framing}', whose form of Protobuf is not read"
            expected = f"Set '{format_option}' to 'binary', and decode it in a function of your own"
            raise ConfigurationError(self.option("framing"), found, expected)
        if self.message and self.format is not Format.PROTOBUF:
            found = f"is only for Protobuf, and '{format_option}' is '{self.format}'"
            raise ConfigurationError(self.option("message"), found, "Leave it out")
        if self.validate and self.format is not Format.JSON:
            found = f"is only for JSON, and '{format_option}' is '{self.format}'"
            raise ConfigurationError(self.option("validate"), found, "Leave it out")
        own = _typing_options(self.format, self.part)
        for format in TYPINGS:
            useless = [name for name in _typing_options(format, self.part) if name in given]
            if useless and useless[0] not in own:
                found = f"has no effect where '{format_option}' is '{self.format}'"
                raise ConfigurationError(useless[0], found, "Leave it out")
        _ = self.version, self.wanted_id

    @property
    def version(self) -> int | Literal["latest"]:
        """The version of the subject: a number from 1 on, or `LATEST`."""
        text = self.schema_version.strip().lower()
        if text in ("", LATEST):
            return "latest"
        return self._number("schema_version", text, f"'{LATEST}', or a version from 1 on")

    @property
    def wanted_id(self) -> int | UUID | None:
        """The configured id, or None. Glue's ids are UUIDs."""
        text = self.schema_id.strip()
        if text and self.framing is FramingName.GLUE:
            try:
                return UUID(text)
            except ValueError:
                expected = "Give the UUID of a schema's version"
                raise ConfigurationError(
                    self.option("schema_id"), "found {}", expected, text
                ) from None
        return self._number("schema_id", text, "an id of the registry") if text else None

    def _number(self, name: str, text: str, expected: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 11 and int(text) > 0):
            raise ConfigurationError(self.option(name), "found {}", f"Give {expected}", text)
        return int(text)


TYPINGS: Mapping[Format, type[Any]] = MappingProxyType(
    {Format.AVRO: AvroTyping, Format.JSON: JsonTyping, Format.PROTOBUF: ProtobufTyping}
)
"""The options of Spark's functions, by format."""


@cache
def _typing_options(format: Format, part: str) -> Options:
    """Return the options of Spark's functions for this format."""
    return options_of(TYPINGS[format], f"{part}.", Use.BOTH) if format in TYPINGS else {}


@cache
def format_options(part: str) -> Options:
    """Return the options of the format of `part`."""
    options = dict(options_of(FormatConfig, f"{part}.", Use.BOTH))
    for format in TYPINGS:
        options |= _typing_options(format, part)
    return options


def _refuse_azure(settings: Settings, option: str) -> None:
    if settings.text(option).strip().lower() == "azure":
        found = "is 'azure', whose registry is not asked. Its values are plain Avro"
        expected = f"Give 'none', and the schema as '{option.replace('framing', 'schema')}'"
        raise ConfigurationError(option, found, expected)


def _names(text: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in text.split(",") if each.strip())
