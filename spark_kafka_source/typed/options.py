"""The names of all options of typed keys and values: of those who read, and of those who write."""

from collections.abc import Mapping
from types import MappingProxyType

from spark_kafka_source.registry import INSTEAD, REGISTRY_OPTIONS
from spark_kafka_source.settings import PREFIX, settings_of
from spark_kafka_source.typed.config import BAD_RECORDS, PARTS, FormatConfig
from spark_kafka_source.typed.subjects import RegistrationConfig, SubjectConfig

_FORMAT = frozenset(name for part in PARTS for name in settings_of(FormatConfig, f"{part}."))
_FIELDS = frozenset(f"{part}.fields" for part in PARTS)
_SUBJECT = frozenset(name for part in PARTS for name in settings_of(SubjectConfig, f"{part}."))

READ_OPTIONS = _FORMAT | {BAD_RECORDS} | REGISTRY_OPTIONS
"""Those that `TypedConfig.from_settings` reads."""

WRITE_OPTIONS = (
    (_FORMAT - _FIELDS)
    | _SUBJECT
    | frozenset(settings_of(RegistrationConfig, ""))
    | REGISTRY_OPTIONS
)
"""Those that `TypedWriteConfig.from_settings` reads."""

MEANT: Mapping[str, str] = MappingProxyType({f"{PREFIX}{name}": INSTEAD[name] for name in INSTEAD})
"""What to use in place of options of other clients for the registry; by names as a client of Kafka
has them that does not know them."""
