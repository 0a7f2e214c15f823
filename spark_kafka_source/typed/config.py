"""Options for the format of keys and values: `value.format` and its neighbours."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from types import MappingProxyType
from typing import Any, Literal

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.options.declaration import (
    Option,
    Options,
    Settings,
    Use,
    named,
    option,
    options_of,
)
from spark_kafka_source.options.kinds import boolean, choice, string
from spark_kafka_source.registry import REGISTRY_OPTIONS, RegistryConfig
from spark_kafka_source.typed.subjects import RegistrationConfig, SubjectConfig
from spark_kafka_source.values import SchemaType
from spark_kafka_source.values.typing import AvroTyping, JsonTyping, ProtobufTyping

PARTS = ("key", "value")
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
    NONE = "none"

    def __str__(self) -> str:
        return self.value


class BadRecords(Enum):
    """Treatment of a record whose key or value cannot be decoded."""

    FAIL = "fail"
    NULL = "null"
    SKIP = "skip"
    TOPIC = "topic"

    def __str__(self) -> str:
        return self.value


_BAD_RECORDS = Option(
    "badRecords",
    choice(BadRecords.FAIL),
    "the handling of a record whose key or value cannot be decoded: an error, null with its "
    "bytes in `value_error`, the record is left out, or it goes to `badRecords.topic`",
    Use.READ,
)
_BAD_RECORDS_TOPIC = Option(
    "badRecords.topic",
    string(takes="a topic's name"),
    "the topic of dead letters, for the records that cannot be decoded; it must exist",
    Use.READ,
)
BAD_RECORDS_OPTIONS: Options = named(_BAD_RECORDS, _BAD_RECORDS_TOPIC)
BAD_RECORDS, BAD_RECORDS_TOPIC = BAD_RECORDS_OPTIONS


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
        " before the value; by default `confluent` if a registry is given, else `none`",
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

    def is_framed(self, has_registry: bool) -> bool:
        """Whether records are marked with the schema that wrote them."""
        if self.framing is FramingName.DEFAULT:
            return self.has_schema and has_registry
        return self.framing is FramingName.CONFLUENT

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
    def wanted_id(self) -> int | None:
        """The configured id, or None."""
        text = self.schema_id.strip()
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


def _names(text: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in text.split(",") if each.strip())


@dataclass(frozen=True, slots=True)
class TypedConfig:
    """All read options for typed keys and values."""

    parts: tuple[FormatConfig, ...] = ()
    """The parts that are decoded."""
    bad_records: BadRecords = BadRecords.FAIL
    registry: RegistryConfig | None = None
    bad_records_topic: str = ""
    """The topic of dead letters, if bad records go to one."""

    @classmethod
    def from_settings(cls, settings: Settings) -> "TypedConfig":
        """Read the options. Raises `ConfigurationError`, also for an option without effect."""
        every = [FormatConfig.from_settings(settings, part) for part in PARTS]
        parts = tuple(each for each in every if each.is_typed)
        bad_records = _BAD_RECORDS.of(settings)
        for name in BAD_RECORDS_OPTIONS:
            if not parts and settings.has(name):
                raise without_format(name)
        is_given = any(name in REGISTRY_OPTIONS for name in settings.values)
        if is_given and not any(each.has_schema for each in parts):
            raise without_format(min(settings.values.keys() & REGISTRY_OPTIONS.keys()))
        registry = RegistryConfig.from_settings(settings) if is_given else None
        for each in parts:
            each.check_registry(registry is not None)
        return cls(parts, bad_records, registry, _topic_of_letters(settings, bad_records))


def _topic_of_letters(settings: Settings, bad_records: BadRecords) -> str:
    """Return the topic of dead letters. Raises `ConfigurationError` unless both options fit."""
    is_given = settings.has(BAD_RECORDS_TOPIC)
    if bad_records is not BadRecords.TOPIC:
        if is_given:
            found = f"has no effect where '{BAD_RECORDS}' is '{bad_records}'"
            expected = f"Set that to '{BadRecords.TOPIC}', or leave this out"
            raise ConfigurationError(BAD_RECORDS_TOPIC, found, expected)
        return ""
    topic = settings.text(BAD_RECORDS_TOPIC).strip()
    if not topic:
        found = "is empty" if is_given else f"is missing, where '{BAD_RECORDS}' is '{bad_records}'"
        raise ConfigurationError(BAD_RECORDS_TOPIC, found, "Name the topic for bad records")
    return topic


@dataclass(frozen=True, slots=True)
class TypedWriteConfig:
    """All write options for typed keys and values."""

    parts: tuple[FormatConfig, ...] = ()
    """The parts that are encoded."""
    subjects: tuple[SubjectConfig, ...] = ()
    """One for each of `parts`, in the same order."""
    registration: RegistrationConfig = field(default_factory=RegistrationConfig)
    registry: RegistryConfig | None = None
    texts: tuple[str, ...] = ()
    """The parts, of `key` and `value`, with the format `string`."""

    @classmethod
    def from_settings(cls, settings: Settings) -> "TypedWriteConfig":
        """Read the options. Raises `ConfigurationError`."""
        every = [FormatConfig.from_settings(settings, part) for part in PARTS]
        parts = tuple(each for each in every if each.has_schema)
        given = settings.values.keys() & REGISTRY_OPTIONS.keys()
        if given and not parts:
            raise without_format(min(given))
        registry = RegistryConfig.from_settings(settings) if given else None
        for each in parts:
            named = each.schema_subject or each.schema_id or each.schema_version
            needs = each.framing is FramingName.CONFLUENT or named
            if needs and registry is None:
                found = f"is missing, where '{each.option('format')}' is '{each.format}'"
                raise ConfigurationError(URL, found, "Give the registry's address")
        subjects = tuple(settings.read(SubjectConfig, each.prefix) for each in parts)
        registration = settings.read(RegistrationConfig)
        texts = tuple(each.part for each in every if each.format is Format.STRING)
        return cls(parts, subjects, registration, registry, texts)


def error_column(part: str) -> str:
    """Return the name of the column that describes the bad values of a part."""
    return f"{part}_error"


def without_format(option: str) -> ConfigurationError:
    """Return the error for an option that needs a typed key or value when there is none."""
    expected = "Give 'value.format' or 'key.format', or leave it out"
    return ConfigurationError(option, "has no effect, since keys and values are bytes", expected)


def letters_are_read(topic: str) -> ConfigurationError:
    """Return the error for a topic of dead letters that is read, too: no letter would be the last.

    A letter is a bad record.
    """
    expected = "Name a topic that is not read: there a letter would become a letter again"
    return ConfigurationError(BAD_RECORDS_TOPIC, "{} is also read from", expected, topic)
