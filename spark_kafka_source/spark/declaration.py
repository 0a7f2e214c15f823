"""Declarations of the options of `format("pykafka")`: each is one field of a dataclass.

The declaration gives the parsing, hints at misspelt names, the warnings of options without effect,
and the tables of `docs/options.md` (`python -m tests.spark.options_table`).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import Flag, auto
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from spark_kafka_source.settings import MAXIMUM, MEANING, MINIMUM, PREFIX, settings_of
from spark_kafka_source.spark.kinds import Kind, Texts, like

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_READ, _OPTIONS = "read", "options"


class Use(Flag):
    """The kinds of queries that an option is for."""

    BATCH_READ = auto()
    STREAM_READ = auto()
    BATCH_WRITE = auto()
    STREAM_WRITE = auto()
    READ = BATCH_READ | STREAM_READ
    WRITE = BATCH_WRITE | STREAM_WRITE
    BOTH = READ | WRITE


@dataclass(frozen=True, slots=True)
class Option(Generic[T_co]):
    """The name of an option, its values, and its meaning in a sentence without a full stop.

    `instead` is the advice to a reader that is given an option for writing.
    """

    name: str
    kind: Kind[T_co]
    meaning: str
    use: Use = Use.READ
    instead: str = ""

    def of(self, texts: Texts) -> T_co:
        """Return the option's value from the given texts. Raises `ConfigurationError`."""
        return self.kind.read(self.name, texts)


def option(name: str, kind: Kind[T], meaning: str, use: Use = Use.READ) -> T:
    """Declare a field that holds the value of one option."""
    declared = Option(name, kind, meaning, use)
    return read_by(declared.of, declared)


def combined(make: Callable[..., T], *options: Option[Any]) -> T:
    """Declare a field that `make` builds from the values of these options."""
    return read_by(lambda texts: make(*(each.of(texts) for each in options)), *options)


def read_by(read: Callable[[Texts], T], *options: Option[Any]) -> T:
    """Declare a field that `read` builds from the given texts. `options` are those that it uses."""
    found: T = field(metadata={_READ: read, _OPTIONS: options})
    return found


def options_of(config_type: type[Any]) -> tuple[Option[Any], ...]:
    """Return the options that the fields of a dataclass declare, in their order."""
    return tuple(each for one in fields(config_type) for each in one.metadata.get(_OPTIONS, ()))


def read_options(config_type: type[T], texts: Texts, **known: object) -> T:
    """Return a dataclass: its declared fields are read in their order, the others are `known`."""
    declared: Any = config_type
    found = {
        each.name: each.metadata[_READ](texts)
        for each in fields(declared)
        if _READ in each.metadata
    }
    return config_type(**known, **found)


RACK_OPTION = "kafka.client.rack"
"""A setting of readers and of writers, whose two configurations each declare it."""


def of_kafka(
    config_type: type[Any],
    use: Use,
    defaults: Mapping[str, Any] = MappingProxyType({}),
    prefix: str = PREFIX,
) -> tuple[Option[Any], ...]:
    """Return the settings that a dataclass declares as options; by default Kafka's settings.

    `defaults` are the defaults that differ here. `prefix` is the first part of the names.
    """
    return tuple(
        Option(
            name,
            like(
                defaults.get(each.name, each.default),
                minimum=each.metadata[MINIMUM],
                maximum=each.metadata[MAXIMUM],
            ),
            each.metadata[MEANING],
            use,
        )
        for name, each in settings_of(config_type, prefix).items()
    )


def reasons_of_others(options: Iterable[Option[Any]], use: Use) -> dict[str, str]:
    """Return why options that are not for `use` have no effect, by their names in lower case."""
    return {
        each.name.lower(): "; ".join(filter(None, (_for_what(each.use), each.instead)))
        for each in options
        if not each.use & use
    }


def _for_what(use: Use) -> str:
    return f"it is for {'reading' if use in Use.READ else 'writing'}"
