"""A client's configuration as keyword arguments: Kafka's names, with underscores or dots.

Options that are none of Kafka's settings, such as `value.format`, have the names of Spark's.
"""

import itertools
import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache
from pathlib import PurePath
from types import MappingProxyType

from spark_kafka_source.client.config import ClientConfig
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.secret import Secret
from spark_kafka_source.settings import PREFIX, Settings, nearest
from spark_kafka_source.spelling import Spelling, as_written

logger = logging.getLogger(__name__)

# A slip in these may leave a door open: they are refused where the others of theirs are read.
_SECURITY = ("kafka.sasl.", "kafka.ssl.")
# How texts say all of them.
_ALL_OF_SASL = "kafka.sasl.*"
# Broker logs and quotas tell the clients of one process apart by it, as they do Java's.
_numbers = itertools.count(1)


def _nothing() -> Mapping[str, str]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What one `kind` of client can be told, and what it says of the rest, each by its option.

    Of settings of Kafka's it has a reason for those `without_effect`, and what to use in place of
    those that are `refused`; with the value that is `done_anyway` it says nothing of either. Of
    names that are none of Kafka's it says which is `meant`, or, in words of its own, what to do
    `instead`. Of those that are `own`, which Kafka has not, all are known.
    """

    kind: str
    known: frozenset[str]
    without_effect: Mapping[str, str]
    refused: Mapping[str, str]
    done_anyway: Mapping[str, str]
    meant: Mapping[str, str]
    instead: Mapping[str, str] = field(default_factory=_nothing)
    own: frozenset[str] = frozenset()

    def settings(self, arguments: Mapping[str, object]) -> Settings:
        """The settings of these arguments, of which None is as if it were not given.

        Warns of what is Kafka's and without effect. Raises `ConfigurationError` for a name of
        nobody's, a name that is given twice, or a value that cannot be written as text.
        """
        settings = Settings(self._values(arguments))
        known = {name.lower() for name in self.known | self.own}
        for option, value in settings.values.items():
            if option not in known:
                self._say_of(option, value)
        return settings

    def spelling(self, arguments: Iterable[str]) -> Spelling:
        """Those given, as they are written; the others with dots, if any of those has some."""
        given: dict[str, str] = {}
        for name in arguments:
            given.setdefault(self.option(name), name)
        dotted = any("." in name for name in given.values())
        named = {name: given[name.lower()] for name in self.own if name.lower() in given}
        return self.names("." if dotted else "_") | given | named

    def names(self, separator: str) -> dict[str, str]:
        """Kafka's own names of all settings, with dots between their words or what is given."""
        named = (*self.known, *self.without_effect, *self.refused, _ALL_OF_SASL)
        found = {each: each.removeprefix(PREFIX).replace(".", separator) for each in named}
        # With dots they are as they are: `badRecords` has none.
        own = {each: each if separator == "." else _words(each, separator) for each in self.own}
        return found | own

    def option(self, name: str) -> str:
        """Return the option, in lower case, that an argument of this name gives."""
        dotted = name.replace("_", ".").lower()
        of_own = _by_words(self.own)
        if dotted in of_own:
            return of_own[dotted]
        return dotted if dotted in of_own.values() else PREFIX + dotted

    def knows(self, name: str) -> bool:
        """Whether an argument of this name gives an option that is known."""
        return self.option(name) in {each.lower() for each in self.known | self.own}

    def is_own(self, name: str) -> bool:
        """Whether an argument of this name gives an option that Kafka has not."""
        return self.option(name) in {each.lower() for each in self.own}

    def _values(self, arguments: Mapping[str, object]) -> dict[str, str]:
        values: dict[str, str] = {}
        for name, value in arguments.items():
            option = self.option(name)
            if option in values:
                raise ConfigurationError(option, "is given twice", "Give it once")
            if value is not None:
                values[option] = _text(option, value)
        return values

    def _say_of(self, option: str, value: str) -> None:
        if self.done_anyway.get(option) == value.strip().lower():
            return
        if option in self.refused:
            raise ConfigurationError(option, "is not supported", self.refused[option])
        reason = self.without_effect.get(option)
        if reason:
            logger.warning("%s", as_written(f"'{option}' has no effect here: {reason}"))
        elif not option.startswith(_SECURITY):
            found = f"is no configuration of this {self.kind}"
            raise ConfigurationError(option, found, self._what_to_use(option))

    def _what_to_use(self, option: str) -> str:
        if option in self.instead:
            return self.instead[option]
        meant = self.meant.get(option) or nearest(option, self.known | self.own)
        return f"Did you mean '{meant}'?" if meant else "See docs/options.md for all"


def numbered(client: ClientConfig, settings: Settings, name: str) -> ClientConfig:
    """With a `client.id` of its own, unless one is given: the usual one, `name`, and a number."""
    if settings.text("kafka.client.id", ""):
        return client
    parts = [client.connection.client_id, name, str(next(_numbers))]
    client_id = "-".join(filter(None, parts))
    return replace(client, connection=replace(client.connection, client_id=client_id))


@cache
def _by_words(own: frozenset[str]) -> Mapping[str, str]:
    """The options in lower case, by their words with dots: `bad.records` is `badrecords`."""
    return {_words(each, "."): each.lower() for each in own}


def _words(option: str, separator: str) -> str:
    """The words of an option's name, in lower case, those of `badRecords` too."""
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
