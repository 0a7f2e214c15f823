"""An option of `format("pykafka")`, declared once, as the field of a dataclass that it gives.

From the declaration come parsing, hints at misspelt names, the warning of what has no effect, and
the tables of the README and of `docs/options.md` (`python -m tests.spark.options_table`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
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
    """What an option is for."""

    BATCH_READ = auto()
    STREAM_READ = auto()
    BATCH_WRITE = auto()
    STREAM_WRITE = auto()
    READ = BATCH_READ | STREAM_READ
    WRITE = BATCH_WRITE | STREAM_WRITE
    BOTH = READ | WRITE


@dataclass(frozen=True, slots=True)
class Option(Generic[T_co]):
    """Its name, the values that it takes, and, in a sentence without a full stop, its meaning.

    `since` is the first version of Spark that has what it takes, where that is not the oldest.
    `instead` says what to give where it has no effect, to a reader of an option for writing.
    """

    name: str
    kind: Kind[T_co]
    meaning: str
    use: Use = Use.READ
    since: str = ""
    instead: str = ""

    def of(self, texts: Texts) -> T_co:
        """Its value, of the options that are given; raises `ConfigurationError`."""
        return self.kind.read(self.name, texts)


def option(name: str, kind: Kind[T], meaning: str, use: Use = Use.READ, *, since: str = "") -> T:
    """Declares a field that is the value of one option."""
    declared = Option(name, kind, meaning, use, since)
    return read_by(declared.of, declared)


def combined(make: Callable[..., T], *options: Option[Any]) -> T:
    """Declares a field that `make` makes of the values of these options."""
    return read_by(lambda texts: make(*(each.of(texts) for each in options)), *options)


def read_by(read: Callable[[Texts], T], *options: Option[Any]) -> T:
    """Declares a field that `read` finds among what is given, where it may be in these options."""
    found: T = field(metadata={_READ: read, _OPTIONS: options})
    return found


def options_of(config_type: type[Any]) -> tuple[Option[Any], ...]:
    """The options that the fields of a dataclass declare, in their order."""
    return tuple(each for one in fields(config_type) for each in one.metadata.get(_OPTIONS, ()))


def read_options(config_type: type[T], texts: Texts, **known: object) -> T:
    """A dataclass whose declared fields are read, in their order; the others are `known`."""
    declared: Any = config_type
    found = {
        each.name: each.metadata[_READ](texts)
        for each in fields(declared)
        if _READ in each.metadata
    }
    return config_type(**known, **found)


def given_since(found: Any, version: str) -> Iterator[str]:
    """The names of the options that are given and that this version of Spark brought."""
    for each in fields(found):
        if getattr(found, each.name) is not None:
            options = each.metadata.get(_OPTIONS, ())
            yield from (one.name for one in options if one.since == version)


def of_kafka(
    config_type: type[Any],
    use: Use,
    defaults: Mapping[str, Any] = MappingProxyType({}),
    prefix: str = PREFIX,
) -> tuple[Option[Any], ...]:
    """The settings that a dataclass declares, Kafka's by default.

    `defaults` are those that differ here, `prefix` is what the names begin with.
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
    """Why options that are not for `use` have no effect there, by their names in lower case."""
    return {
        each.name.lower(): "; ".join(filter(None, (_for_what(each.use), each.instead)))
        for each in options
        if not each.use & use
    }


def _for_what(use: Use) -> str:
    return f"it is for {'reading' if use in Use.READ else 'writing'}"
