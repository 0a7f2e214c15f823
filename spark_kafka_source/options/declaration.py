"""The declaration of an option, as a field of a configuration, and the reader of given options.

A field declares an option: `fetch_min_bytes: int = option("kafka.fetch.min.bytes", int32(1))`. Its
value, the errors about its name and its value, and its row in `docs/options.md` come from there.
Names are those of https://kafka.apache.org/documentation/#consumerconfigs and of Spark's own
connector.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Flag, auto
from typing import Any, Generic, TypeVar

from spark_kafka_source.options.kinds import Kind

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_READ, _OPTIONS = "read", "options"


class Use(Flag):
    """The clients that an option is for. The data source's differ by the kind of the query."""

    BATCH_READ = auto()
    STREAM_READ = auto()
    BATCH_WRITE = auto()
    STREAM_WRITE = auto()
    READ = BATCH_READ | STREAM_READ
    WRITE = BATCH_WRITE | STREAM_WRITE
    BOTH = READ | WRITE
    CONSUMER = auto()
    TOPIC_READ = auto()
    PRODUCER = auto()


ANY_USE = Use(0)
"""The use of an option in a configuration that several clients have: each says its own."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The given options: their texts, by their names in lower case.

    Callers give names in their usual spelling. An invalid value raises a `ConfigurationError` that
    names the option.
    """

    # Some of the values are passwords.
    values: Mapping[str, str] = field(repr=False)

    def text(self, name: str, default: str = "") -> str:
        """Return the value as it is written."""
        return self.values.get(name.lower(), default)

    def has(self, name: str) -> bool:
        """Whether the option is given."""
        return name.lower() in self.values

    def read(self, config_type: type[T], prefix: str = "", /, **known: object) -> T:
        """Create a `config_type`. Its options are read in the order of the fields.

        `prefix` is what precedes their declared names. `known` has values for other fields.
        """
        declared: Any = config_type
        values = {
            each.name: each.metadata[_READ](self, prefix)
            for each in fields(declared)
            if _READ in each.metadata
        }
        return config_type(**known, **values)


@dataclass(frozen=True, slots=True)
class Option(Generic[T_co]):
    """The name of an option, its values, and its meaning in a sentence without a full stop.

    Kafka's settings need a meaning only for facts that are not in Kafka's documentation. `instead`
    is the advice to a reader that is given an option for writing.
    """

    name: str
    kind: Kind[T_co]
    meaning: str = ""
    use: Use = ANY_USE
    instead: str = ""

    def of(self, settings: Settings, prefix: str = "") -> T_co:
        """Return the option's value. Raises `ConfigurationError`."""
        name = prefix + self.name
        return self.kind.read(name, settings.values.get(name.lower()))


def option(name: str, kind: Kind[T], meaning: str = "", use: Use = ANY_USE) -> T:
    """Declare a field that holds the value of one option."""
    return held(Option(name, kind, meaning, use))


def held(declared: Option[T]) -> T:
    """Declare a field that holds the value of this option."""
    value: T = field(
        default=declared.kind.value, metadata={_READ: declared.of, _OPTIONS: (declared,)}
    )
    return value


def combined(make: Callable[..., T], *options: Option[Any]) -> T:
    """Declare a field that `make` builds from the values of these options."""
    return read_by(lambda settings: make(*(each.of(settings) for each in options)), *options)


def read_by(read: Callable[[Settings], T], *options: Option[Any]) -> T:
    """Declare a field that `read` builds from the given options. `options` are those it uses."""
    value: T = field(metadata={_READ: lambda settings, _: read(settings), _OPTIONS: options})
    return value


Options = Mapping[str, Option[Any]]
"""Options by their names."""


def options_of(config_type: type[Any], prefix: str = "", use: Use = ANY_USE) -> Options:
    """Return the options that the fields of a dataclass declare, by name, in their order.

    `prefix` is what precedes the declared names. `use` is for those that say none.
    """
    return {
        prefix + each.name: replace(each, name=prefix + each.name, use=each.use or use)
        for declared in fields(config_type)
        for each in declared.metadata.get(_OPTIONS, ())
    }


def named(*options: Option[Any]) -> dict[str, Option[Any]]:
    """Return the options by their names."""
    return {each.name: each for each in options}


def used_by(options: Options, use: Use) -> dict[str, Option[Any]]:
    """Return the options that are for `use`."""
    return {name: each for name, each in options.items() if each.use & use}


def for_use(options: Options, use: Use) -> dict[str, Option[Any]]:
    """Return the options, with this use where they say none."""
    return {name: replace(each, use=each.use or use) for name, each in options.items()}


def reasons_of_others(options: Iterable[Option[Any]], use: Use) -> dict[str, str]:
    """Return why options that are not for `use` have no effect, by their names in lower case."""
    return {
        each.name.lower(): "; ".join(filter(None, (_for_what(each.use), each.instead)))
        for each in options
        if not each.use & use
    }


def _for_what(use: Use) -> str:
    return f"it is for {'reading' if use in Use.READ else 'writing'}"
