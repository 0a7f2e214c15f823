"""The configuration of a `KafkaConsumer`: Kafka's names with underscores, and our own few."""

import itertools
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import PurePath

from spark_kafka_source.client import CLIENT_OPTIONS, ClientConfig
from spark_kafka_source.consumer.config import FetchConfig
from spark_kafka_source.consumer.offset_reset import ResetPolicy, parse_reset
from spark_kafka_source.consumer.without_effect import (
    LISTENER,
    MEANT_BY_OTHERS,
    OF_A_CONSUMER,
    REFUSED,
    reason_without_effect,
)
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.groups import GroupConfig
from spark_kafka_source.net import TokenProvider
from spark_kafka_source.secret import Secret
from spark_kafka_source.settings import PREFIX, Settings, nearest, setting, settings_of
from spark_kafka_source.spelling import Spelling, as_written, spelt

logger = logging.getLogger(__name__)

# A slip in these may leave a door open: they are refused where the others of theirs are read.
_SECURITY = ("kafka.sasl.", "kafka.ssl.")
_CLIENT_ID = "kafka.client.id"
# Broker logs and quotas tell the consumers of one process apart by it, as they do Java's.
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class PollConfig:
    """What a poll does; names and, but for `max_poll_records`, defaults are Kafka's.

    `max_poll_records` is 500 in Java, where each is an object. Here a poll hands out Arrow, and
    10,000 are about what fits a cache.
    """

    max_poll_records: int = setting(10_000, minimum=1)
    auto_offset_reset: str = setting("latest")
    enable_auto_commit: bool = setting(True)
    auto_commit_interval_ms: int = setting(5_000)
    exclude_internal_topics: bool = setting(True)


@dataclass(frozen=True, slots=True)
class ConsumerConfig:
    """All that a consumer needs to know. `group` is None for a consumer that is in none.

    `spelling` is how its user writes the names of settings, for errors to name them so.
    """

    client: ClientConfig
    fetch: FetchConfig
    poll: PollConfig
    reset: ResetPolicy
    group: GroupConfig | None = None
    spelling: Spelling = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def from_arguments(
        cls, arguments: Mapping[str, object], token_provider: TokenProvider | None = None
    ) -> "ConsumerConfig":
        """Reads them under Kafka's names, with underscores or dots.

        Raises `ConfigurationError` under the name that was given.
        """
        spelling = _spelling(arguments)
        with spelt(spelling):
            return cls._from_settings(Settings(_values(arguments)), token_provider, spelling)

    @classmethod
    def _from_settings(
        cls, settings: Settings, token_provider: TokenProvider | None, spelling: Spelling
    ) -> "ConsumerConfig":
        _check_names(settings)
        poll = settings.read(PollConfig)
        group_id = settings.text("kafka.group.id", "")
        client = ClientConfig.from_settings(settings, token_provider)
        return cls(
            client=client if settings.text(_CLIENT_ID, "") else _numbered(client, group_id),
            fetch=settings.read(FetchConfig),
            poll=poll,
            reset=parse_reset(poll.auto_offset_reset),
            group=settings.read(GroupConfig) if group_id else None,
            spelling=spelling,
        )


KNOWN = frozenset(
    {
        *CLIENT_OPTIONS,
        *settings_of(FetchConfig),
        *settings_of(PollConfig),
        *settings_of(GroupConfig),
    }
)
"""Every configuration there is, as an option."""

# The last is how texts say all of them.
_NAMED_IN_TEXTS = (*KNOWN, *OF_A_CONSUMER, *REFUSED, "kafka.sasl.*")


def _numbered(client: ClientConfig, group_id: str) -> ClientConfig:
    """Gives each consumer of a process a `client.id` of its own: a name, its group, a number."""
    parts = [client.connection.client_id, group_id, str(next(_numbers))]
    client_id = "-".join(filter(None, parts))
    return replace(client, connection=replace(client.connection, client_id=client_id))


def _check_names(settings: Settings) -> None:
    """Warns of what is Kafka's and without effect here; what is nobody's is refused."""
    known = {name.lower(): name for name in KNOWN}
    for option, value in settings.values.items():
        if option in known:
            continue
        reason = reason_without_effect(option, value)
        if reason:
            logger.warning("%s", as_written(f"'{option}' has no effect here: {reason}"))
        elif reason is None and not option.startswith(_SECURITY):
            raise ConfigurationError(
                option, "is no configuration of this consumer", _what_to_use(option)
            )


def _what_to_use(option: str) -> str:
    if option in LISTENER:
        return LISTENER[option]
    meant = MEANT_BY_OTHERS.get(option) or nearest(option, KNOWN)
    return f"Did you mean '{meant}'?" if meant else "See the README for all"


def _values(arguments: Mapping[str, object]) -> dict[str, str]:
    """What is None is as if it were not given."""
    values: dict[str, str] = {}
    for name, value in arguments.items():
        option = _option(name)
        if option in values:
            raise ConfigurationError(option, "is given twice", "Give it once")
        if value is not None:
            values[option] = _text(option, value)
    return values


def _option(name: str) -> str:
    return PREFIX + name.replace("_", ".").lower()


def _spelling(arguments: Iterable[str]) -> Spelling:
    """Those given, as they are written; the others with dots, if any of those has some."""
    given: dict[str, str] = {}
    for name in arguments:
        given.setdefault(_option(name), name)
    dotted = any("." in name for name in given.values())
    return spelling_of_settings("." if dotted else "_") | given


def spelling_of_settings(separator: str) -> dict[str, str]:
    """Kafka's own names of all settings, with dots between their words or what is given."""
    return {each: each.removeprefix(PREFIX).replace(".", separator) for each in _NAMED_IN_TEXTS}


def _text(option: str, value: object) -> str:
    if isinstance(value, Secret):
        return value.reveal()
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, list | tuple):
        return ",".join(_text(option, each) for each in value)
    if isinstance(value, str | int | float | PurePath):
        return str(value)
    found = f"found a value of type {type(value).__name__}"
    raise ConfigurationError(option, found, "Give a text, a number, a truth value or a list")
