"""Options for the formats of keys and values, to read and to write, and bad records."""

from dataclasses import dataclass, field
from enum import Enum

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.options.declaration import (
    Option,
    Options,
    Settings,
    Use,
    named,
)
from spark_kafka_source.options.kinds import choice, string
from spark_kafka_source.records import CHUNK_BYTES
from spark_kafka_source.registry import (
    REGISTRY_OPTIONS,
    GlueConfig,
    RegistryConfig,
)
from spark_kafka_source.typed.format_config import ONLY_READ, URL, Format, FormatConfig, FramingName
from spark_kafka_source.typed.subjects import RegistrationConfig, SubjectConfig

PARTS = ("key", "value")
PACKED_CHUNK_BYTES = 256 << 10
"""The size of chunks whose values may be in zlib's format, which packs up to 1,032 bytes into one.

All values of a chunk then have at most 258 MiB, besides the ones of its last record.
https://zlib.net/zlib_tech.html (maximum compression factor)
"""


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
class TypedConfig:
    """All read options for typed keys and values."""

    parts: tuple[FormatConfig, ...] = ()
    """The parts that are decoded."""
    bad_records: BadRecords = BadRecords.FAIL
    registry: RegistryConfig | GlueConfig | None = None
    bad_records_topic: str = ""
    """The topic of dead letters, if bad records go to one."""

    @property
    def chunk_bytes(self) -> int:
        """The size of the chunks to decode: smaller for a framing whose values may be packed."""
        return PACKED_CHUNK_BYTES if isinstance(self.registry, GlueConfig) else CHUNK_BYTES

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
        registry = _registry(settings, parts, is_given)
        for each in parts:
            each.check_registry(registry is not None)
        return cls(parts, bad_records, registry, _topic_of_letters(settings, bad_records))


def _registry(
    settings: Settings, parts: tuple[FormatConfig, ...], is_given: bool
) -> RegistryConfig | GlueConfig | None:
    """Read the configuration of the one registry, which all parts share."""
    glue = next((each for each in parts if each.framing is FramingName.GLUE), None)
    if glue is None:
        return RegistryConfig.from_settings(settings) if is_given else None
    for each in parts:
        if each.has_schema and each.framing not in (FramingName.GLUE, FramingName.NONE):
            found = f"is '{each.framing}', where '{glue.option('framing')}' is 'glue'"
            expected = "Give 'glue' or 'none': a query asks one registry"
            raise ConfigurationError(each.option("framing"), found, expected)
    return GlueConfig.from_settings(settings)


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
        for each in parts:
            if each.framing in ONLY_READ:
                expected = "Give 'confluent', or 'none' for values without an id"
                found = f"is '{each.framing}', which is only read"
                raise ConfigurationError(each.option("framing"), found, expected)
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
