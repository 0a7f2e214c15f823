"""Names of all options for typed keys and values, for readers and for writers."""

from collections.abc import Mapping
from types import MappingProxyType

from spark_kafka_source.registry import INSTEAD, REGISTRY_OPTIONS
from spark_kafka_source.settings import PREFIX, settings_of
from spark_kafka_source.typed.config import (
    BAD_RECORDS,
    BAD_RECORDS_TOPIC,
    PARTS,
    format_settings,
)
from spark_kafka_source.typed.subjects import RegistrationConfig, SubjectConfig

_FORMAT = frozenset(name for part in PARTS for name in format_settings(part))
_FIELDS = frozenset(f"{part}.fields" for part in PARTS)
_IGNORED = frozenset(f"{part}.ignore.fields" for part in PARTS)
_SUBJECT = frozenset(name for part in PARTS for name in settings_of(SubjectConfig, f"{part}."))

READ_OPTIONS = (_FORMAT - _IGNORED) | {BAD_RECORDS, BAD_RECORDS_TOPIC} | REGISTRY_OPTIONS
"""The options that `TypedConfig.from_settings` reads."""

WRITE_OPTIONS = (
    (_FORMAT - _FIELDS)
    | _SUBJECT
    | frozenset(settings_of(RegistrationConfig, ""))
    | REGISTRY_OPTIONS
)
"""The options that `TypedWriteConfig.from_settings` reads."""

MEANT: Mapping[str, str] = MappingProxyType({f"{PREFIX}{name}": INSTEAD[name] for name in INSTEAD})
"""Advice for registry options that only other clients have. The names begin with `kafka.`: a Kafka
client reads such an option as an unknown Kafka setting."""
