"""The options of `format("pykafka")`, read once at `load()`, named as in Spark's own connector."""

import difflib
import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from spark_kafka_source.client import CLIENT_SETTINGS, ClientConfig, Settings
from spark_kafka_source.consumer import FETCH_SETTINGS, FetchConfig
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.records import COLUMNS, COLUMNS_WITH_HEADERS
from spark_kafka_source.spark.bounds import Committed, NamedBound, ending_bound, starting_bound
from spark_kafka_source.spark.data_loss import DataLoss
from spark_kafka_source.spark.offsets import shown
from spark_kafka_source.spark.subscription import Subscription, parse_subscription

logger = logging.getLogger(__name__)


_GROUP_ID = "group.id"

_REFUSED = {
    "auto.offset.reset": "Use 'startingOffsets'",
    "key.deserializer": "Keys are binary; decode them in the query",
    "value.deserializer": "Values are binary; decode them in the query",
    "enable.auto.commit": "With 'kafka.group.id' each finished micro-batch is committed",
    "interceptor.classes": "Java classes cannot be run here",
}

# `path` is set by Spark itself; `groupIdPrefix` is of no consequence here.
_READ = (
    "assign", "columns", "endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp",
    "failOnDataLoss",
    "fetchOffset.numRetries", "fetchOffset.retryIntervalMs", "groupIdPrefix", "includeHeaders",
    "kafkaConsumer.pollTimeoutMs", "maxOffsetsPerTrigger", "maxRecordsPerPartition",
    "maxTriggerDelay", "minOffsetsPerTrigger", "minPartitions", "path", "startingOffsets",
    "startingOffsetsByTimestamp", "startingOffsetsByTimestampStrategy",
    "startingOffsetsCommittedStrategy", "startingTimestamp", "subscribe", "subscribePattern",
)  # fmt: skip

_DURATION = re.compile(r"([0-9]{1,18})\s*([a-z]*)")
_UNIT_MS = {
    "": 1, "ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Everything a query's options say. None of it is secret as yet."""

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
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = 15 * 60_000
    poll_timeout_ms: int = 120_000
    topic_lookup_timeout_ms: int = 3_000


def parse_options(options: Mapping[str, str]) -> SourceOptions:
    """Raises `ConfigurationError` for an option that cannot be used; warns of unknown ones."""
    options = {name.lower(): value for name, value in options.items()}
    _warn_of_unknown(options)
    settings = _kafka_settings(options)
    found = SourceOptions(
        client=ClientConfig.from_settings(settings),
        fetch=FetchConfig.from_settings(settings),
        subscription=parse_subscription(options),
        starting=starting_bound(options),
        ending=ending_bound(options),
        data_loss=DataLoss(fails=_boolean(options, "failOnDataLoss", default=True)),
        columns=_columns(options),
        group_id=_group_id(settings),
        min_partitions=_positive(options, "minPartitions", example=8),
        max_records_per_partition=_positive(options, "maxRecordsPerPartition", example=1_000_000),
        max_offsets_per_trigger=_positive(options, "maxOffsetsPerTrigger", example=10_000),
        min_offsets_per_trigger=_positive(options, "minOffsetsPerTrigger", example=10_000),
        max_trigger_delay_ms=_duration_ms(options, "maxTriggerDelay", "15m"),
        poll_timeout_ms=_whole_number(options, "kafkaConsumer.pollTimeoutMs", 120_000, least=1),
        topic_lookup_timeout_ms=_topic_lookup_timeout_ms(options),
    )
    _check_together(found)
    return found


def _check_together(found: SourceOptions) -> None:
    least, most = found.min_offsets_per_trigger, found.max_offsets_per_trigger
    if least is not None and most is not None and least > most:
        raise ConfigurationError(
            "minOffsetsPerTrigger",
            f"{least} is more than maxOffsetsPerTrigger, {most}",
            "Give at most as much",
        )
    if found.starting and isinstance(found.starting.bound, Committed) and not found.group_id:
        raise ConfigurationError(
            found.starting.option, "'committed' needs a group", "Give 'kafka.group.id' as well"
        )


def _kafka_settings(options: Mapping[str, str]) -> Settings:
    found = {
        name.removeprefix("kafka."): value
        for name, value in options.items()
        if name.startswith("kafka.")
    }
    for name, instead in _REFUSED.items():
        if name in found:
            raise ConfigurationError(f"kafka.{name}", "is not supported", instead)
    known = CLIENT_SETTINGS | FETCH_SETTINGS | {_GROUP_ID}
    for name in sorted(found.keys() - known):
        if not name.startswith(("ssl.", "sasl.")):
            _warn_unknown(name, known, prefix="kafka.")
    return Settings(found)


def _warn_unknown(name: str, known: Iterable[str], *, prefix: str = "") -> None:
    by_lower_case = {each.lower(): each for each in known}
    nearest = difflib.get_close_matches(name, by_lower_case, n=1)
    hint = f"; did you mean '{prefix}{by_lower_case[nearest[0]]}'?" if nearest else ""
    logger.warning("Option '%s%s' has no effect here%s", prefix, name, hint)


def _warn_of_unknown(options: Mapping[str, str]) -> None:
    for name in sorted(options.keys() - {each.lower() for each in _READ}):
        if not name.startswith("kafka."):
            _warn_unknown(name, _READ)


def _boolean(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = options.get(name.lower(), str(default)).strip().lower()
    if text not in ("true", "false"):
        raise ConfigurationError(name, f"found {shown(text)}", "Give 'true' or 'false'")
    return text == "true"


def _whole_number(options: Mapping[str, str], name: str, default: int, *, least: int) -> int:
    text = options.get(name.lower(), str(default)).strip()
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
    if not least <= number < 2**63:
        expected = f"Give a whole number from {least} on, as in '{default}'"
        raise ConfigurationError(name, f"found {shown(text)}", expected)
    return number


def _columns(options: Mapping[str, str]) -> tuple[str, ...]:
    """Those that `columns` names, in the order of Kafka's rows; all, where it is not given."""
    include_headers = _boolean(options, "includeHeaders", default=False)
    text = options.get("columns")
    if text is None:
        return COLUMNS_WITH_HEADERS if include_headers else COLUMNS
    known = {name.lower(): name for name in COLUMNS_WITH_HEADERS}
    wanted = [name.strip().lower() for name in text.split(",") if name.strip()]
    for name in wanted:
        if name not in known:
            expected = f"There are {', '.join(COLUMNS_WITH_HEADERS)}"
            raise ConfigurationError("columns", f"there is no column {shown(name)}", expected)
    if not wanted:
        raise ConfigurationError("columns", "names none", "Give some by comma, as in 'key,value'")
    return tuple(name for lower, name in known.items() if lower in wanted)


def _positive(options: Mapping[str, str], name: str, *, example: int) -> int | None:
    """A number from 1 on, or None where the option is not given."""
    given = name.lower() in options
    return _whole_number(options, name, example, least=1) if given else None


def _duration_ms(options: Mapping[str, str], name: str, default: str) -> int:
    text = options.get(name.lower(), default).strip().lower()
    match = _DURATION.fullmatch(text)
    if not match or match[2] not in _UNIT_MS:
        expected = (
            f"Give a number and a unit ({', '.join(filter(None, _UNIT_MS))}), as in {default!r}"
        )
        raise ConfigurationError(name, f"found {shown(text)}", expected)
    return int(match[1]) * _UNIT_MS[match[2]]


def _topic_lookup_timeout_ms(options: Mapping[str, str]) -> int:
    """How long a topic may be unknown: all brokers must first hear of a new one."""
    tries = _whole_number(options, "fetchOffset.numRetries", 3, least=0)
    return tries * _whole_number(options, "fetchOffset.retryIntervalMs", 1_000, least=0)


def _group_id(settings: Settings) -> str | None:
    group_id = settings.values.get(_GROUP_ID)
    if group_id is not None and not group_id.strip():
        raise ConfigurationError("kafka.group.id", "is empty", "Give a name, or leave it out")
    return group_id
