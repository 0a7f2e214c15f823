"""The configuration of a `KafkaConsumer`: Kafka's names with underscores, and our own few."""

from collections.abc import Mapping
from dataclasses import dataclass

from spark_kafka_source.client import CLIENT_OPTIONS, ClientConfig
from spark_kafka_source.consumer.config import FetchConfig
from spark_kafka_source.consumer.offset_reset import ResetPolicy, parse_reset
from spark_kafka_source.consumer.without_effect import argument_name, check_names
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.groups import GroupConfig
from spark_kafka_source.net import TokenProvider
from spark_kafka_source.secret import Secret
from spark_kafka_source.settings import Settings, setting, settings_of

_PREFIX = "kafka."


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
        values = {_option(name): _text(value) for name, value in arguments.items()}
        try:
            return cls._from_settings(Settings(values), token_provider)
        except ConfigurationError as error:
            name = argument_name(error.option)
            raise ConfigurationError(name, error.found, error.expected) from None

    @classmethod
    def _from_settings(
        cls, settings: Settings, token_provider: TokenProvider | None
    ) -> "ConsumerConfig":
        check_names(settings.values, KNOWN)
        poll = settings.read(PollConfig)
        grouped = bool(settings.text("kafka.group.id", ""))
        return cls(
            client=ClientConfig.from_settings(settings, token_provider),
            fetch=settings.read(FetchConfig),
            poll=poll,
            reset=parse_reset(poll.auto_offset_reset),
            group=settings.read(GroupConfig) if grouped else None,
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


def _option(name: str) -> str:
    return _PREFIX + name.replace("_", ".").lower()


def _text(value: object) -> str:
    if isinstance(value, Secret):
        return value.reveal()
    if isinstance(value, list | tuple):
        return ",".join(map(_text, value))
    return str(value)
