"""The configuration of a `KafkaConsumer`: Kafka's names with underscores, and our own few."""

import itertools
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import Enum
from pathlib import PurePath

from spark_kafka_source.client import CLIENT_OPTIONS, ClientConfig
from spark_kafka_source.consumer.config import FetchConfig
from spark_kafka_source.consumer.offset_reset import ResetPolicy, parse_reset
from spark_kafka_source.consumer.without_effect import reason_without_effect
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.groups import GroupConfig
from spark_kafka_source.net import TokenProvider
from spark_kafka_source.secret import Secret
from spark_kafka_source.settings import Settings, setting, settings_of

logger = logging.getLogger(__name__)

# A slip in these may leave a door open: they are refused where the others of theirs are read.
_SECURITY = ("kafka.sasl.", "kafka.ssl.")
_PREFIX = "kafka."
_CLIENT_ID = "kafka.client.id"
# Broker logs and quotas tell the consumers of one process apart by it, as they do Java's.
_numbers = itertools.count(1)
_OPTION = re.compile(r"'(kafka\.[a-z0-9.]+)'")


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
    """All that a consumer needs to know. `group` is None for a consumer that is in none."""

    client: ClientConfig
    fetch: FetchConfig
    poll: PollConfig
    reset: ResetPolicy
    group: GroupConfig | None = None

    @classmethod
    def from_arguments(
        cls, arguments: Mapping[str, object], token_provider: TokenProvider | None = None
    ) -> "ConsumerConfig":
        """Reads them under Kafka's names, with underscores or dots.

        Raises `ConfigurationError` under the name that was given.
        """
        try:
            return cls._from_settings(Settings(_values(arguments)), token_provider)
        except ConfigurationError as error:
            raise ConfigurationError(
                _name(error.option), _as_arguments(error.found), _as_arguments(error.expected)
            ) from None

    @classmethod
    def _from_settings(
        cls, settings: Settings, token_provider: TokenProvider | None
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
            logger.warning("'%s' has no effect here: %s", _name(option), _as_arguments(reason))
        elif reason is None and not option.startswith(_SECURITY):
            near = get_close_matches(option, known, 1)
            meant = f"Did you mean '{_name(near[0])}'?" if near else "See the README for all"
            raise ConfigurationError(option, "is no configuration of this consumer", meant)


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
    return _PREFIX + name.replace("_", ".").lower()


def _name(option: str) -> str:
    return option.removeprefix(_PREFIX).replace(".", "_")


def _as_arguments(text: str) -> str:
    """With the names of options as those of arguments."""
    return _OPTION.sub(lambda match: f"'{_name(match[1])}'", text)


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
