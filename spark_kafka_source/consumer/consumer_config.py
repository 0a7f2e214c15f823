"""Configuration of a `KafkaConsumer`: Kafka's names with underscores, and a few more."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from spark_kafka_source.client import CLIENT_OPTIONS, ClientConfig
from spark_kafka_source.client.arguments import Vocabulary, numbered
from spark_kafka_source.client.sensor import SensorConfig
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.fetch.config import FetchConfig
from spark_kafka_source.fetch.offset_reset import ResetPolicy, parse_reset
from spark_kafka_source.groups import GroupConfig, GroupProtocol
from spark_kafka_source.groups.assignors import Assignor
from spark_kafka_source.groups.assignors.custom import given_assignors
from spark_kafka_source.net import TokenProvider
from spark_kafka_source.options.declaration import Options, Use, option, options_of
from spark_kafka_source.options.kinds import boolean, int32, string
from spark_kafka_source.options.other_names import other_names
from spark_kafka_source.spelling import Spelling, spelt
from spark_kafka_source.telemetry import TelemetryConfig
from spark_kafka_source.typed import READ_OPTIONS, TypedConfig

_PROTOCOL, _REMOTE = "kafka.group.protocol", "kafka.group.remote.assignor"
_STRATEGY = "kafka.partition.assignment.strategy"


@dataclass(frozen=True, slots=True)
class PollConfig:
    """Settings of polls and subscriptions. Names and defaults are Kafka's, but `max_poll_records`.

    Its default is 500 in Java, where each record is an object. Here a poll returns Arrow, and
    10,000 records are about what fits a cache.
    """

    max_poll_records: int = option("kafka.max.poll.records", int32(10_000, minimum=1))
    auto_offset_reset: str = option("kafka.auto.offset.reset", string("latest"))
    enable_auto_commit: bool = option("kafka.enable.auto.commit", boolean(True))
    auto_commit_interval_ms: int = option("kafka.auto.commit.interval.ms", int32(5_000))
    exclude_internal_topics: bool = option("kafka.exclude.internal.topics", boolean(True))
    allow_auto_create_topics: bool = option("kafka.allow.auto.create.topics", boolean(True))


@dataclass(frozen=True, slots=True)
class ConsumerConfig:
    """Configuration of a consumer. `group` is None for a consumer without a group.

    `spelling` is how the user wrote the names of settings. Errors use the same names.
    """

    client: ClientConfig
    fetch: FetchConfig
    poll: PollConfig
    reset: ResetPolicy
    group: GroupConfig | None = None
    sensors: SensorConfig = field(default_factory=SensorConfig)
    telemetry: TelemetryConfig = field(default_factory=TelemetryConfig)
    typed: TypedConfig = field(default_factory=TypedConfig)
    spelling: Spelling = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def from_arguments(
        cls, arguments: Mapping[str, object], token_provider: TokenProvider | None = None
    ) -> "ConsumerConfig":
        """Read the settings under Kafka's names, with underscores or dots.

        Raises `ConfigurationError` with the name as the user wrote it.
        """
        spelling = VOCABULARY.spelling(arguments)
        with spelt(spelling):
            settings = VOCABULARY.settings(arguments)
            poll = settings.read(PollConfig)
            group_id = settings.text("kafka.group.id")
            client = ClientConfig.from_settings(settings, token_provider)
            typed = TypedConfig.from_settings(settings)
            return cls(
                client=numbered(client, settings, group_id),
                fetch=replace(FetchConfig.from_settings(settings), chunk_bytes=typed.chunk_bytes),
                poll=poll,
                reset=parse_reset(poll.auto_offset_reset),
                group=settings.read(GroupConfig) if group_id else None,
                sensors=settings.read(SensorConfig),
                telemetry=settings.read(TelemetryConfig),
                typed=typed,
                spelling=spelling,
            )

    def own_assignors(self, given: object, arguments: Mapping[str, object]) -> tuple[Assignor, ...]:
        """Return the assignors that a user gave beside these arguments; none if none are.

        Raises `ConfigurationError` for what is no assignor, without a group, for a group whose
        broker divides the partitions, and beside the setting that names assignors.
        """
        if given is None:
            return ()
        if self.group is None:
            expected = "Give it: an assignor divides the partitions of a group"
            raise ConfigurationError("kafka.group.id", "is missing", expected)
        if self.group.group_protocol is GroupProtocol.CONSUMER:
            found = "is {}, with which brokers divide the partitions, and assignors are given"
            expected = f"Leave one of them out; '{_REMOTE}' names an assignor of the brokers"
            raise ConfigurationError(_PROTOCOL, found, expected, str(self.group.group_protocol))
        if any(
            VOCABULARY.option(name) == _STRATEGY and arguments[name] is not None
            for name in arguments
        ):
            expected = "Leave it out: the list of assignors may have names, too"
            raise ConfigurationError(_STRATEGY, "is given, and assignors, too", expected)
        return given_assignors(given, arguments)


CONSUMER_OPTIONS: Options = {
    **CLIENT_OPTIONS,
    **options_of(FetchConfig),
    **options_of(PollConfig),
    **options_of(GroupConfig),
    **options_of(SensorConfig),
    **options_of(TelemetryConfig),
}
"""The options of Kafka's consumer that a `KafkaConsumer` reads."""

VOCABULARY = Vocabulary(
    "consumer", CONSUMER_OPTIONS, partial(other_names, Use.CONSUMER), READ_OPTIONS
)
"""The names of a consumer's options, and what is known of others."""
