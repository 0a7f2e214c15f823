"""A client's configuration as keyword arguments: Kafka's names, with underscores or dots.

Options that Kafka does not have, such as `value.format`, have the names of Spark's options.
"""

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache
from pathlib import PurePath

from spark_kafka_source.client.config import ClientConfig
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.logs import logger_of
from spark_kafka_source.options.declaration import Options, Settings
from spark_kafka_source.options.judgement import OtherNames, Verdict, judged
from spark_kafka_source.options.unknown import PREFIX
from spark_kafka_source.secret import Secret
from spark_kafka_source.spelling import Spelling, as_written

logger = logger_of(__name__)

_UNSUPPORTED = "is not supported"
# The name in texts of all SASL settings.
_ALL_OF_SASL = "kafka.sasl.*"
# Broker logs and quotas tell the clients of one process apart by the number, as with Java's.
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The options that one `kind` of client takes, and its texts about other options.

    `own` are options that Kafka does not have; the client takes all of them. `others` returns what
    is known of all other names.
    """

    kind: str
    known: Options
    others: Callable[[], OtherNames]
    own: Options = field(default_factory=dict)

    def settings(self, arguments: Mapping[str, object]) -> Settings:
        """Return the settings of these arguments. An argument of None counts as not given.

        Logs a warning for a setting of Kafka without effect. Raises `ConfigurationError` for an
        unknown or a refused name, a name given twice, or a value that cannot be written as text.
        """
        settings = Settings(self._values(arguments))
        for each in judged(settings, (*self.known, *self.own), self.others):
            if each.verdict is Verdict.REFUSED:
                raise ConfigurationError(each.name, _UNSUPPORTED, each.text)
            if each.verdict is Verdict.UNKNOWN:
                found = f"is no configuration of this {self.kind}"
                expected = each.text or each.hint or "See docs/options.md for all"
                raise ConfigurationError(each.name, found, expected)
            logger.warning("%s", as_written(f"'{each.name}' has no effect here: {each.text}"))
        return settings

    def spelling(self, arguments: Iterable[str]) -> Spelling:
        """Return given names as written, and others with dots if a given name has dots."""
        given: dict[str, str] = {}
        for name in arguments:
            given.setdefault(self.option(name), name)
        dotted = any("." in name for name in given.values())
        named = {name: given[name.lower()] for name in self.own if name.lower() in given}
        return self.names("." if dotted else "_") | given | named

    def names(self, separator: str) -> dict[str, str]:
        """Return the name of each option without `kafka.`, with `separator` between its words."""
        others = self.others()
        named = (*self.known, *others.reasons, *others.refused, _ALL_OF_SASL)
        found = {each: each.removeprefix(PREFIX).replace(".", separator) for each in named}
        # With dots, names stay as they are: `badRecords` has no dot.
        own = {each: each if separator == "." else _words(each, separator) for each in self.own}
        return found | own

    def option(self, name: str) -> str:
        """Return the option, in lower case, that an argument of this name sets."""
        dotted = name.replace("_", ".").lower()
        of_own = _by_words(tuple(self.own))
        if dotted in of_own:
            return of_own[dotted]
        return dotted if dotted in of_own.values() else PREFIX + dotted

    def knows(self, name: str) -> bool:
        """Whether an argument of this name sets a known option."""
        return self.option(name) in self._options()

    def _options(self) -> set[str]:
        return {each.lower() for each in (*self.known, *self.own)}

    def is_own(self, name: str) -> bool:
        """Whether an argument of this name sets an option that Kafka does not have."""
        return self.option(name) in {each.lower() for each in self.own}

    def _values(self, arguments: Mapping[str, object]) -> dict[str, str]:
        values: dict[str, str] = {}
        for name, value in arguments.items():
            option = self.option(name)
            if option in values:
                raise ConfigurationError(option, "is given twice", "Give it once")
            if value is not None:
                values[option] = self._text_of(option, value)
        return values

    def _text_of(self, option: str, value: object) -> str:
        try:
            return _text(option, value)
        except ConfigurationError:
            if option in self._options():
                raise
            # An object, such as an interceptor: a text would not help either. The name is judged.
            return type(value).__name__


def refuse_positional(client: str, given: Sequence[object]) -> None:
    """Raise `ConfigurationError` for a dict of settings, or for topics, as other clients take them.

    No value is shown: it may be a password.
    """
    if not given:
        return
    option, found = "configuration", f"is given by position, as a {type(given[0]).__name__}"
    expected = f"Give settings by name: {client}(bootstrap_servers='localhost:9092')"
    if isinstance(given[0], Mapping):
        expected = f"Write two stars before the dict: {client}(**configuration)"
    elif client.endswith("Consumer"):
        expected += ". Give topics to the method `subscribe`"
    raise ConfigurationError(option, found, expected)


def numbered(client: ClientConfig, settings: Settings, name: str) -> ClientConfig:
    """Return the configuration with its own `client.id`, unless the settings give one.

    It is made of the default, `name`, and a number.
    """
    if settings.text("kafka.client.id"):
        return client
    parts = [client.connection.client_id, name, str(next(_numbers))]
    client_id = "-".join(filter(None, parts))
    return replace(client, connection=replace(client.connection, client_id=client_id))


@cache
def _by_words(own: tuple[str, ...]) -> Mapping[str, str]:
    """Return the options in lower case, by their words with dots: `bad.records`: `badrecords`."""
    return {_words(each, "."): each.lower() for each in own}


def _words(option: str, separator: str) -> str:
    """Return the words of an option's name in lower case. `badRecords` has two words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", ".", option).lower().replace(".", separator)


def _text(option: str, value: object) -> str:
    if isinstance(value, Secret):
        return value.reveal()
    if isinstance(value, Enum):
        return str(value)
    if isinstance(value, list | tuple):
        return ",".join(_text(option, each) for each in value)
    if isinstance(value, str | int | float | PurePath):
        return str(value)
    found = f"found a value of type {type(value).__name__}"
    raise ConfigurationError(option, found, "Give a text, a number, a truth value or a list")
