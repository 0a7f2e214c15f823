"""The options of `format("pykafka")`, read once at `load()`, named as in Spark's own connector."""

import difflib
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from spark_kafka_source.client import CLIENT_SETTINGS, ClientConfig, Settings
from spark_kafka_source.consumer import FETCH_SETTINGS, FetchConfig
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.spark.offsets import OFFSETS_EXAMPLE, Offsets, parse_offsets_option, shown
from spark_kafka_source.spark.subscription import Subscription, parse_subscription

logger = logging.getLogger(__name__)


class Extreme(Enum):
    """An end of the log, as a word and as the number that stands for it in JSON."""

    EARLIEST = -2
    LATEST = -1


Bound = Extreme | Offsets
"""Where to start or end: one end of all partitions, or an offset (or -1, -2) for each."""

_GROUP_ID = "group.id"

_REFUSED = {
    "auto.offset.reset": "Use 'startingOffsets'",
    "key.deserializer": "Keys are binary; decode them in the query",
    "value.deserializer": "Values are binary; decode them in the query",
    "enable.auto.commit": "With 'kafka.group.id' each finished micro-batch is committed",
    "interceptor.classes": "Java classes cannot be run here",
}

_NOT_YET = (
    "endingOffsetsByTimestamp", "endingTimestamp", "maxRecordsPerPartition", "maxTriggerDelay",
    "minOffsetsPerTrigger", "minPartitions", "startingOffsetsByTimestamp", "startingTimestamp",
)  # fmt: skip

# `path` is set by Spark itself; `groupIdPrefix` is of no consequence here.
_READ = (
    "assign", "endingOffsets", "failOnDataLoss", "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs", "groupIdPrefix", "includeHeaders",
    "kafkaConsumer.pollTimeoutMs", "maxOffsetsPerTrigger", "path", "startingOffsets", "subscribe",
    "subscribePattern",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Everything a query's options say. None of it is secret as yet."""

    client: ClientConfig
    fetch: FetchConfig
    subscription: Subscription
    starting_offsets: Bound | None = None
    ending_offsets: Bound | None = None
    include_headers: bool = False
    group_id: str | None = None
    max_offsets_per_trigger: int | None = None
    poll_timeout_ms: int = 120_000
    topic_lookup_timeout_ms: int = 3_000


def parse_options(options: Mapping[str, str]) -> SourceOptions:
    """Raises `ConfigurationError` for an option that cannot be used; warns of unknown ones."""
    options = {name.lower(): value for name, value in options.items()}
    _refuse_unsupported(options)
    settings = _kafka_settings(options)
    return SourceOptions(
        client=ClientConfig.from_settings(settings),
        fetch=FetchConfig.from_settings(settings),
        subscription=parse_subscription(options),
        starting_offsets=_bound(options, "startingOffsets", least=Extreme.EARLIEST),
        ending_offsets=_bound(options, "endingOffsets", least=Extreme.LATEST),
        include_headers=_boolean(options, "includeHeaders", default=False),
        group_id=_group_id(settings),
        max_offsets_per_trigger=_max_offsets_per_trigger(options),
        poll_timeout_ms=_whole_number(options, "kafkaConsumer.pollTimeoutMs", 120_000, least=1),
        topic_lookup_timeout_ms=_topic_lookup_timeout_ms(options),
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


def _refuse_unsupported(options: Mapping[str, str]) -> None:
    for name in _NOT_YET:
        if name.lower() in options:
            raise ConfigurationError(name, "is not supported yet", "Leave it out")
    if not _boolean(options, "failOnDataLoss", default=True):
        raise ConfigurationError("failOnDataLoss", "'false' is not supported yet", "Leave it out")
    for name in sorted(options.keys() - {each.lower() for each in _READ}):
        if not name.startswith("kafka."):
            _warn_unknown(name, _READ)


def _bound(options: Mapping[str, str], name: str, *, least: Extreme) -> Bound | None:
    text = options.get(name.lower())
    if text is None:
        return None
    words = {bound.name.lower(): bound for bound in Extreme if bound.value >= least.value}
    if text.strip().lower() in words:
        return words[text.strip().lower()]
    if not text.strip().startswith("{"):
        expected = f"Give {' or '.join(words)}, or JSON as in {OFFSETS_EXAMPLE}"
        raise ConfigurationError(name, f"found {shown(text)}", expected)
    return parse_offsets_option(name, text, least=least.value)


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


def _max_offsets_per_trigger(options: Mapping[str, str]) -> int | None:
    name = "maxOffsetsPerTrigger"
    given = name.lower() in options
    return _whole_number(options, name, 10_000, least=1) if given else None


def _topic_lookup_timeout_ms(options: Mapping[str, str]) -> int:
    """How long a topic may be unknown: all brokers must first hear of a new one."""
    tries = _whole_number(options, "fetchOffset.numRetries", 3, least=0)
    return tries * _whole_number(options, "fetchOffset.retryIntervalMs", 1_000, least=0)


def _group_id(settings: Settings) -> str | None:
    group_id = settings.values.get(_GROUP_ID)
    if group_id is not None and not group_id.strip():
        raise ConfigurationError("kafka.group.id", "is empty", "Give a name, or leave it out")
    return group_id
