"""The options of a reader, with the names of Spark's own connector."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from spark_kafka_source.client import ClientConfig
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.fetch import FetchConfig
from spark_kafka_source.groups import GroupConfig
from spark_kafka_source.net import (
    TokenProvider,
)
from spark_kafka_source.options.declaration import (
    Option,
    Options,
    Settings,
    Use,
    combined,
    named,
    option,
    options_of,
    read_by,
)
from spark_kafka_source.options.kinds import (
    boolean,
    byte_size,
    choice,
    duration_ms,
    if_given,
    int32,
    int64,
    parsed,
    string,
)
from spark_kafka_source.records import CHUNK_BYTES, COLUMNS, COLUMNS_WITH_HEADERS
from spark_kafka_source.spark.conditions import DataLoss
from spark_kafka_source.spark.source.admission import LimitsWithAvailableNow
from spark_kafka_source.spark.source.bounds import (
    ENDING,
    STARTING,
    AtTimestamp,
    Committed,
    Given,
    NamedBound,
    ending_bound,
    starting_bound,
)
from spark_kafka_source.spark.source.offset_arithmetic import ALL_OFFSETS
from spark_kafka_source.spark.source.subscription import (
    SUBSCRIPTION,
    Assign,
    OnlyPartitions,
    Subscription,
    parse_subscription,
)
from spark_kafka_source.typed import TypedConfig, letters_are_read

if TYPE_CHECKING:
    from spark_kafka_source.typed import TypedColumns

# A query that is a member of a group has other defaults. Partitions move between micro-batches, and
# one micro-batch may take an hour before the group gives the partitions to others.
_OF_GROUPS = options_of(GroupConfig, use=Use.STREAM_READ)
_MAX_POLL_INTERVAL = replace(
    _OF_GROUPS["kafka.max.poll.interval.ms"], kind=int32(60 * 60_000, minimum=1)
)
_ASSIGNORS = replace(
    _OF_GROUPS["kafka.partition.assignment.strategy"], kind=string("cooperative-sticky")
)


def _columns(include_headers: bool, named: tuple[str, ...] | None) -> tuple[str, ...]:
    return named or (COLUMNS_WITH_HEADERS if include_headers else COLUMNS)


def _named_columns(name: str, text: str) -> tuple[str, ...]:
    """Return the named columns, in the order of Kafka's rows."""
    known = {column.lower(): column for column in COLUMNS_WITH_HEADERS}
    wanted = [column.strip().lower() for column in text.split(",") if column.strip()]
    for column in wanted:
        if column not in known:
            expected = f"There are {', '.join(COLUMNS_WITH_HEADERS)}"
            raise ConfigurationError(name, "there is no column {}", expected, column)
    if not wanted:
        raise ConfigurationError(
            name, "names none", "Give some separated by commas, as in 'key,value'"
        )
    return tuple(column for lower, column in known.items() if lower in wanted)


def _only_offsets(first: int, last: int | None) -> range:
    """Return the range from `minOffset` to `maxOffset`, both included, as in a WHERE clause."""
    last = ALL_OFFSETS[-1] if last is None else last
    if first > last:
        raise ConfigurationError(
            "minOffset", "{} is more than maxOffset, {}", "Give at most as much", first, last
        )
    return range(first, last + 1)


def _not_blank(name: str, text: str) -> str:
    if not text.strip():
        raise ConfigurationError(name, "is empty", "Give a name, or leave it out")
    return text


_MANAGED_GROUP = Option(
    "managedGroup",
    boolean(False),
    "the query is a member of `kafka.group.id`, and reads what the group assigns to it",
    Use.STREAM_READ,
)


def _managed_group(settings: Settings) -> GroupConfig | None:
    if not _MANAGED_GROUP.of(settings):
        return None
    return replace(
        settings.read(GroupConfig),
        max_poll_interval_ms=_MAX_POLL_INTERVAL.of(settings),
        partition_assignment_strategy=_ASSIGNORS.of(settings),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """A query's options. Secret values are `Secret`s.

    A field declares the options that it comes from. They are read in this order.
    """

    client: ClientConfig
    hidden: frozenset[str]
    """Options, in lower case, whose values errors must not show; see `Redaction`."""
    fetch: FetchConfig = read_by(FetchConfig.from_settings)
    subscription: Subscription = read_by(parse_subscription, *SUBSCRIPTION)
    starting: NamedBound | None = read_by(starting_bound, *STARTING)
    ending: NamedBound | None = read_by(ending_bound, *ENDING)
    data_loss: DataLoss = combined(
        DataLoss,
        Option(
            "failOnDataLoss",
            boolean(True),
            "`true`: lost records are an error; `false`: they are only logged",
        ),
    )
    moved_to_cluster: str | None = option(
        "movedToCluster",
        if_given(parsed("a cluster's id", _not_blank)),
        "the topics moved, with their offsets, to the cluster with this id: go on there at the "
        "same offsets",
        Use.STREAM_READ,
    )
    columns: tuple[str, ...] = combined(
        _columns,
        Option("includeHeaders", boolean(False), "adds the column `headers`"),
        Option(
            "columns",
            if_given(parsed("names separated by commas, `key,value`", _named_columns)),
            "read only these columns; the others are neither copied nor sent to the JVM",
        ),
    )
    group_id: str | None = option(
        "kafka.group.id",
        if_given(parsed("a name", _not_blank)),
        "the group that each finished micro-batch is committed to",
    )
    min_partitions: int | None = option(
        "minPartitions",
        if_given(int64(8, minimum=1)),
        "cut large ranges, in proportion, until there are this many tasks",
    )
    max_records_per_partition: int | None = option(
        "maxRecordsPerPartition",
        if_given(int64(1_000_000, minimum=1)),
        "cut a range with more offsets into several tasks; applied before `minPartitions`",
    )
    min_records_per_partition: int | None = option(
        "minRecordsPerPartition",
        if_given(int64(10_000, minimum=1)),
        "let small topic-partitions share a task until the task has this many offsets",
    )
    only_offsets: range = combined(
        _only_offsets,
        Option("minOffset", int64(0), "read no offset below this one, in any partition"),
        Option(
            "maxOffset",
            if_given(int64(ALL_OFFSETS[-1])),
            "read no offset above this one, in any partition",
        ),
    )
    max_record_bytes: int = option(
        "maxRecordBytes",
        byte_size("64m", range(CHUNK_BYTES, (1 << 30) + 1)),
        "a larger record, decompressed, is an error; with `failOnDataLoss=false` it is left out",
    )
    typed: TypedConfig = read_by(TypedConfig.from_settings)
    progress: bool = option(
        "progress",
        boolean(True),
        "a task of more than five seconds says on standard error how far it is",
        Use.BATCH_READ,
    )
    managed_group: GroupConfig | None = read_by(_managed_group, _MANAGED_GROUP)
    max_offsets_per_trigger: int | None = option(
        "maxOffsetsPerTrigger",
        if_given(int64(10_000, minimum=1)),
        "read about this many offsets in a micro-batch; each partition gets a share by its lag",
        Use.STREAM_READ,
    )
    min_offsets_per_trigger: int | None = option(
        "minOffsetsPerTrigger",
        if_given(int64(10_000, minimum=1)),
        "wait for this many offsets before a micro-batch, but no longer than `maxTriggerDelay`",
        Use.STREAM_READ,
    )
    max_bytes_per_trigger: int | None = option(
        "maxBytesPerTrigger",
        if_given(byte_size("64m", range(1, 2**63))),
        "read about this many bytes in a micro-batch, compressed as in the log",
        Use.STREAM_READ,
    )
    max_trigger_delay_ms: int = option(
        "maxTriggerDelay",
        duration_ms("15m"),
        "how long to wait for `minOffsetsPerTrigger`",
        Use.STREAM_READ,
    )
    limits_with_available_now: LimitsWithAvailableNow = option(
        "limitsWithAvailableNow",
        choice(LimitsWithAvailableNow.WARN),
        "on Spark 4.0 and 4.1 a run with `AvailableNow` ends after one limited micro-batch: warn "
        "of it at the next start, or accept it",
        Use.STREAM_READ,
    )
    poll_timeout_ms: int = option(
        "kafkaConsumer.pollTimeoutMs",
        int64(120_000, minimum=1),
        "how long a task waits for the next records of its range, in ms",
    )
    fetch_offset_num_retries: int = option(
        "fetchOffset.numRetries",
        int64(3),
        "how often the driver waits for `kafka.default.api.timeout.ms` in an "
        "[outage](moving.md#an-outage), and for `fetchOffset.retryIntervalMs`, also for a topic "
        "that a broker does not know",
    )
    fetch_offset_retry_interval_ms: int = option(
        "fetchOffset.retryIntervalMs",
        int64(1_000),
        "in ms; `fetchOffset.numRetries` multiplies it",
    )
    typed_columns: "TypedColumns | None" = None
    """The plan to decode columns. None before it is made, or if all columns are bytes."""

    @property
    def topic_lookup_timeout_ms(self) -> int:
        """How long to look for a topic that a broker does not know."""
        return self.fetch_offset_num_retries * self.fetch_offset_retry_interval_ms

    @property
    def of_driver(self) -> ClientConfig:
        """The driver's client: its calls last as long as all tries of Spark's own connector."""
        once_ms = self.client.default_api_timeout_ms + self.fetch_offset_retry_interval_ms
        # A call gives up before the last pause, with its jitter.
        last_ms = 2 * self.client.retry_backoff_max_ms
        timeout_ms = max(1, self.fetch_offset_num_retries) * once_ms + last_ms
        return replace(self.client, default_api_timeout_ms=timeout_ms)


OPTIONS: Options = {
    **options_of(SourceOptions, use=Use.READ),
    **named(Option("groupIdPrefix", string(), "accepted, without effect", Use.READ)),
}

OF_KAFKA: Options = options_of(FetchConfig, use=Use.READ)
"""Kafka's settings that a reader has, and not every client."""

OF_A_MEMBER: Options = {**_OF_GROUPS, **named(_MAX_POLL_INTERVAL, _ASSIGNORS)}
"""Kafka's settings that have an effect only with `managedGroup`."""


def of_a_member(settings: Settings) -> Options:
    """Return `OF_A_MEMBER` if the query is a member of a group; else no option."""
    return OF_A_MEMBER if _MANAGED_GROUP.of(settings) else {}


def read_source_options(
    settings: Settings, token_provider: TokenProvider | None, hidden: frozenset[str]
) -> SourceOptions:
    """Read the options. Raises `ConfigurationError`."""
    client = ClientConfig.from_settings(settings, token_provider)
    found = settings.read(SourceOptions, client=client, hidden=hidden)
    _check_together(found)
    return found


def _check_together(found: SourceOptions) -> None:
    least, most = found.min_offsets_per_trigger, found.max_offsets_per_trigger
    if least is not None and most is not None and least > most:
        raise ConfigurationError(
            "minOffsetsPerTrigger",
            "{} is more than maxOffsetsPerTrigger, {}",
            "Give at most as much",
            least,
            most,
        )
    if found.managed_group is not None:
        _check_managed(found)
    letters = found.typed.bad_records_topic
    if letters and found.subscription.names(letters):
        raise letters_are_read(letters)
    if found.starting and isinstance(found.starting.bound, Committed) and not found.group_id:
        raise ConfigurationError(
            found.starting.option, "'committed' needs a group", "Give 'kafka.group.id' as well"
        )


def _check_managed(found: SourceOptions) -> None:
    """Refuse options that name partitions: the group assigns them."""
    bound = found.starting.bound if found.starting else None
    named = isinstance(bound, Given) or (
        isinstance(bound, AtTimestamp) and not isinstance(bound.timestamps, int)
    )
    if found.starting and named:
        raise ConfigurationError(
            found.starting.option,
            "names partitions or topics, and with 'managedGroup' the group assigns them",
            "Give 'earliest', 'latest', 'committed', or one timestamp for all",
        )
    if isinstance(found.subscription, Assign | OnlyPartitions):
        raise ConfigurationError(
            "managedGroup",
            f"is given, and '{found.subscription.option}' names partitions",
            "Give 'subscribe' or 'subscribePattern', without 'partitions': the group assigns them",
        )
