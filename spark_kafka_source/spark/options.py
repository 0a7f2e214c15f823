"""The options of `format("pykafka")`, read once at `load()`, named as in Spark's own connector."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from spark_kafka_source.client import CLIENT_OPTIONS, ClientConfig
from spark_kafka_source.consumer import FetchConfig
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.groups import GroupConfig
from spark_kafka_source.net import TokenProvider
from spark_kafka_source.records import CHUNK_BYTES, COLUMNS, COLUMNS_WITH_HEADERS
from spark_kafka_source.settings import Settings, settings_of
from spark_kafka_source.spark.bounds import (
    AtTimestamp,
    Committed,
    Given,
    NamedBound,
    ending_bound,
    starting_bound,
)
from spark_kafka_source.spark.data_loss import DataLoss
from spark_kafka_source.spark.planning import ALL_OFFSETS
from spark_kafka_source.spark.redaction import Redaction, hiding
from spark_kafka_source.spark.subscription import (
    Assign,
    OnlyPartitions,
    Subscription,
    parse_subscription,
)
from spark_kafka_source.spark.without_effect import UnknownOptions, check_options_not_read

B = TypeVar("B", int, None)

_GROUP_ID = "kafka.group.id"

_REFUSED = {
    "kafka.auto.offset.reset": "Use 'startingOffsets'",
    "kafka.key.deserializer": "Keys are binary; decode them in the query",
    "kafka.value.deserializer": "Values are binary; decode them in the query",
    "kafka.enable.auto.commit": "With 'kafka.group.id' each finished micro-batch is committed",
    "kafka.interceptor.classes": "Java classes cannot be run here",
}

# `groupIdPrefix` is of no consequence here.
_READ = (
    "assign", "columns", "endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp",
    "failOnDataLoss",
    "fetchOffset.numRetries", "fetchOffset.retryIntervalMs", "groupIdPrefix", "includeHeaders",
    "kafkaConsumer.pollTimeoutMs", "managedGroup", "maxOffsetsPerTrigger", "maxRecordsPerPartition",
    "maxBytesPerTrigger", "maxOffset", "maxRecordBytes", "maxTriggerDelay", "minOffset",
    "minOffsetsPerTrigger", "minPartitions", "minRecordsPerPartition", "partitions",
    "progress", "startingOffsets",
    "startingOffsetsByTimestamp", "startingOffsetsByTimestampStrategy",
    "startingOffsetsCommittedStrategy", "startingTimestamp", "subscribe", "subscribePattern",
    "unknownOptions",
    _GROUP_ID, *CLIENT_OPTIONS, *settings_of(FetchConfig),
)  # fmt: skip

# A batch may take so long before the group gives the partitions to others.
_LONGEST_BATCH_MS = 60 * 60_000
# An Arrow column of one batch is limited to 2 GiB; a record larger than this is rarely meant.
_RECORD_BYTES = 64 << 20
_BYTE_SIZE = re.compile(r"([0-9]{1,18})\s*([kmg]?)b?")
_BYTES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}

_DURATION = re.compile(r"([0-9]{1,18})\s*([a-z]*)")
_UNIT_MS = {
    "": 1, "ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Everything a query's options say; what of it is secret is a `Secret`."""

    client: ClientConfig
    fetch: FetchConfig
    subscription: Subscription
    starting: NamedBound | None = None
    ending: NamedBound | None = None
    data_loss: DataLoss = field(default_factory=DataLoss)
    columns: tuple[str, ...] = COLUMNS
    group_id: str | None = None
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    min_records_per_partition: int | None = None
    only_offsets: range = ALL_OFFSETS
    max_record_bytes: int = _RECORD_BYTES
    progress: bool = True
    managed_group: GroupConfig | None = None
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_bytes_per_trigger: int | None = None
    max_trigger_delay_ms: int = 15 * 60_000
    poll_timeout_ms: int = 120_000
    topic_lookup_timeout_ms: int = 3_000
    hidden: frozenset[str] = frozenset()
    """Options, in lower case, whose values no error is to show; see `Redaction`."""


def parse_options(
    options: Mapping[str, str],
    token_provider: TokenProvider | None = None,
    redaction: Redaction | None = None,
) -> SourceOptions:
    """Raises `ConfigurationError` for what cannot be used, or is misspelt.

    What has no effect is warned of.

    `token_provider` is for OAUTHBEARER where no token endpoint is given. What `redaction` matches,
    by default Spark's, is in no error.
    """
    hidden = (redaction or Redaction()).hidden(options)
    with hiding(hidden):
        return _parsed(options, token_provider, hidden)


def _parsed(
    options: Mapping[str, str], token_provider: TokenProvider | None, hidden: frozenset[str]
) -> SourceOptions:
    names = {name.lower(): name for name in options}
    options = {name.lower(): value for name, value in options.items()}
    _refuse_unsupported(options)
    settings = Settings(options)
    managed = settings.boolean("managedGroup", False)
    read = (*_READ, *settings_of(GroupConfig)) if managed else _READ
    check_options_not_read(names, read, settings.choice("unknownOptions", UnknownOptions.FAIL))
    found = SourceOptions(
        client=ClientConfig.from_settings(settings, token_provider),
        fetch=settings.read(FetchConfig),
        subscription=parse_subscription(options),
        starting=starting_bound(options),
        ending=ending_bound(options),
        data_loss=DataLoss(fails=settings.boolean("failOnDataLoss", True)),
        columns=_columns(settings),
        group_id=_group_id(settings),
        min_partitions=_positive(settings, "minPartitions", example=8),
        max_records_per_partition=_positive(settings, "maxRecordsPerPartition", example=1_000_000),
        min_records_per_partition=_positive(settings, "minRecordsPerPartition", example=10_000),
        only_offsets=_only_offsets(settings),
        max_record_bytes=_byte_size(
            options, "maxRecordBytes", _RECORD_BYTES, range(CHUNK_BYTES, (1 << 30) + 1)
        ),
        progress=settings.boolean("progress", True),
        managed_group=_managed_group(settings),
        max_offsets_per_trigger=_positive(settings, "maxOffsetsPerTrigger", example=10_000),
        min_offsets_per_trigger=_positive(settings, "minOffsetsPerTrigger", example=10_000),
        max_bytes_per_trigger=_byte_size(options, "maxBytesPerTrigger", None, range(1, 2**63)),
        max_trigger_delay_ms=_duration_ms(options, "maxTriggerDelay", "15m"),
        poll_timeout_ms=settings.integer("kafkaConsumer.pollTimeoutMs", 120_000, minimum=1),
        topic_lookup_timeout_ms=_topic_lookup_timeout_ms(settings),
        hidden=hidden,
    )
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
    if found.starting and isinstance(found.starting.bound, Committed) and not found.group_id:
        raise ConfigurationError(
            found.starting.option, "'committed' needs a group", "Give 'kafka.group.id' as well"
        )


def _check_managed(found: SourceOptions) -> None:
    """The group says which partitions to read, so the options cannot name some."""
    bound = found.starting.bound if found.starting else None
    named = isinstance(bound, Given) or (
        isinstance(bound, AtTimestamp) and not isinstance(bound.timestamps, int)
    )
    if found.starting and named:
        raise ConfigurationError(
            found.starting.option,
            "names partitions, and with 'managedGroup' the group assigns them",
            "Give 'earliest', 'latest', 'committed', or one timestamp for all",
        )
    if isinstance(found.subscription, Assign | OnlyPartitions):
        raise ConfigurationError(
            "managedGroup",
            f"is given, and '{found.subscription.option}' names partitions",
            "Give 'subscribe' or 'subscribePattern', without 'partitions': the group assigns them",
        )


def _managed_group(settings: Settings) -> GroupConfig | None:
    """As a member of a group a query is patient: partitions come and go between micro-batches."""
    if not settings.boolean("managedGroup", False):
        return None
    config = settings.read(GroupConfig)
    if "kafka.max.poll.interval.ms" not in settings.values:
        config = replace(config, max_poll_interval_ms=_LONGEST_BATCH_MS)
    if "kafka.partition.assignment.strategy" not in settings.values:
        config = replace(config, partition_assignment_strategy="cooperative-sticky")
    return config


def _refuse_unsupported(options: Mapping[str, str]) -> None:
    for name, instead in _REFUSED.items():
        if name in options:
            raise ConfigurationError(name, "is not supported", instead)


def _columns(settings: Settings) -> tuple[str, ...]:
    """Those that `columns` names, in the order of Kafka's rows; all, where it is not given."""
    include_headers = settings.boolean("includeHeaders", False)
    text = settings.values.get("columns")
    if text is None:
        return COLUMNS_WITH_HEADERS if include_headers else COLUMNS
    known = {name.lower(): name for name in COLUMNS_WITH_HEADERS}
    wanted = [name.strip().lower() for name in text.split(",") if name.strip()]
    for name in wanted:
        if name not in known:
            expected = f"There are {', '.join(COLUMNS_WITH_HEADERS)}"
            raise ConfigurationError("columns", "there is no column {}", expected, name)
    if not wanted:
        raise ConfigurationError("columns", "names none", "Give some by comma, as in 'key,value'")
    return tuple(name for lower, name in known.items() if lower in wanted)


def _positive(settings: Settings, name: str, *, example: int) -> int | None:
    """A number from 1 on, or None where the option is not given."""
    given = name.lower() in settings.values
    return settings.integer(name, example, minimum=1) if given else None


def _only_offsets(settings: Settings) -> range:
    """From `minOffset` to `maxOffset`, both of them included, as in a WHERE clause."""
    first = settings.integer("minOffset", 0)
    last = settings.integer("maxOffset", ALL_OFFSETS[-1])
    if first > last:
        raise ConfigurationError(
            "minOffset", "{} is more than maxOffset, {}", "Give at most as much", first, last
        )
    return range(first, last + 1)


def _byte_size(options: Mapping[str, str], name: str, default: B, allowed: range) -> int | B:
    text = options.get(name.lower())
    if text is None:
        return default
    match = _BYTE_SIZE.fullmatch(text.strip().lower())
    size = int(match[1]) * _BYTES[match[2]] if match else 0
    if size not in allowed:
        expected = (
            f"Give {allowed[0]} to {allowed[-1]} bytes, or a number with k, m or g, as in '64m'"
        )
        raise ConfigurationError(name, "found {}", expected, text)
    return size


def _duration_ms(options: Mapping[str, str], name: str, default: str) -> int:
    text = options.get(name.lower(), default).strip().lower()
    match = _DURATION.fullmatch(text)
    if not match or match[2] not in _UNIT_MS:
        expected = (
            f"Give a number and a unit ({', '.join(filter(None, _UNIT_MS))}), as in {default!r}"
        )
        raise ConfigurationError(name, "found {}", expected, text)
    return int(match[1]) * _UNIT_MS[match[2]]


def _topic_lookup_timeout_ms(settings: Settings) -> int:
    """How long a topic may be unknown: all brokers must first hear of a new one."""
    tries = settings.integer("fetchOffset.numRetries", 3)
    return tries * settings.integer("fetchOffset.retryIntervalMs", 1_000)


def _group_id(settings: Settings) -> str | None:
    group_id = settings.values.get(_GROUP_ID)
    if group_id is not None and not group_id.strip():
        raise ConfigurationError(_GROUP_ID, "is empty", "Give a name, or leave it out")
    return group_id
