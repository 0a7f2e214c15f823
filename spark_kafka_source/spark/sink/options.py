"""The options of a writer, parsed before any row is written."""

import re
from dataclasses import dataclass, replace
from enum import Enum

from spark_kafka_source.client import CLIENT_OPTIONS
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.exactly_once.checks import MOVED_OPTION, Checkpoint
from spark_kafka_source.exactly_once.errors import DOUBT_OPTION
from spark_kafka_source.exactly_once.names import checked_prefix
from spark_kafka_source.exactly_once.replays import Caution
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net import TokenProvider
from spark_kafka_source.options.declaration import (
    Option,
    Options,
    Settings,
    Use,
    combined,
    for_use,
    held,
    options_of,
    read_by,
)
from spark_kafka_source.options.kinds import (
    TOPIC_NAME,
    TOPIC_NAMES,
    if_given,
    int64,
    one_of,
    parsed,
)
from spark_kafka_source.producer.config import PRODUCER_OPTIONS, SETTINGS_BY_CLASS, ProducerConfig
from spark_kafka_source.typed import TypedWriteConfig

logger = logger_of(__name__)

_PARTITIONER_CLASS = "kafka.partitioner.class"
TIMEOUT_OPTION = "kafka.transaction.timeout.ms"
# The default of the brokers' `transaction.max.timeout.ms`. Readers wait as long for a query that
# was abandoned.
_USUAL_TIMEOUT_MS = 900_000
_OF_TRANSACTIONS = ("kafka.transactional.id", TIMEOUT_OPTION)


def _topic(name: str, text: str) -> str:
    topic = text.strip()
    if not re.fullmatch(TOPIC_NAME, topic):
        raise ConfigurationError(name, "{} cannot be a topic's name", TOPIC_NAMES, topic)
    return topic


_TOPIC = Option(
    "topic",
    if_given(parsed("a topic's name", _topic)),
    "the topic to write to; if not given, the column `topic` names it for each row",
    instead="'subscribe' names the topics to read",
)


class DeliveryGuarantee(Enum):
    """How often a reader sees a row."""

    AT_LEAST_ONCE = "at-least-once"
    EXACTLY_ONCE = "exactly-once"


_GUARANTEE = Option(
    "deliveryGuarantee",
    one_of(DeliveryGuarantee.AT_LEAST_ONCE.value, {each.value: each for each in DeliveryGuarantee}),
    "how often a reader sees a row; `exactly-once` writes in [transactions](exactly-once.md)",
)
_PREFIX = Option(
    "transactionalIdPrefix",
    if_given(parsed("letters, digits, `-`, `_`", lambda _, text: checked_prefix(text))),
    "the first part of an exactly-once query's transactional ids; the default is made of its id",
)
_TRANSACTION_TIMEOUT = Option(
    TIMEOUT_OPTION,
    int64(_USUAL_TIMEOUT_MS, minimum=1),
    "how long a micro-batch's transactions may be open",
)
_DOUBTFUL_REPLAYS = Option(
    DOUBT_OPTION,
    one_of(Caution.WARN.value, {each.value: each for each in Caution}),
    "what is done if rows [may be missing or doubled](exactly-once.md)",
)


def _location(text: str) -> str:
    """Return a checkpoint's location, spelt as all spellings of the same one.

    It gets into decisions and errors, and so without a URL's user, password and query. A name alone
    before `@` may be a container's, as in `abfss://container@account`.
    """
    text = re.sub("://[^/@]*:[^@]*@", "://", text.strip().split("?")[0])
    text = re.sub("(?<![:/])//+", "/", text.removeprefix("file:"))
    return text.rstrip("/") or "/"


_A_LOCATION = if_given(parsed("a location", lambda _, text: _location(text)))
_CHECKPOINT = Option(
    "checkpointLocation",
    _A_LOCATION,
    "Spark's own; an exactly-once query keeps it with its decisions, so that [a copy of it]"
    "(exactly-once.md) is an error",
)
_MOVED_FROM = Option(
    MOVED_OPTION,
    _A_LOCATION,
    "the former `checkpointLocation` of an exactly-once query, if its checkpoint was moved",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """All options of a writer. Secret values are `Secret`s."""

    producer: ProducerConfig
    hidden: frozenset[str]
    """Options, in lower case, whose values no error may show; see `Redaction`."""
    topic: str | None = held(_TOPIC)
    typed: TypedWriteConfig = read_by(TypedWriteConfig.from_settings)
    guarantee: DeliveryGuarantee = held(_GUARANTEE)
    prefix: str | None = held(_PREFIX)
    transaction_timeout_ms: int = held(_TRANSACTION_TIMEOUT)
    caution: Caution = held(_DOUBTFUL_REPLAYS)
    checkpoint: Checkpoint = combined(Checkpoint, _CHECKPOINT, _MOVED_FROM)

    def __post_init__(self) -> None:
        """Raise `ConfigurationError` for options that exclude each other."""
        is_exact = self.guarantee is DeliveryGuarantee.EXACTLY_ONCE
        if is_exact and not self.producer.enable_idempotence:
            found = f"is '{self.guarantee.value}', and 'kafka.enable.idempotence' is 'false'"
            expected = "Leave that out, and 'kafka.acks' and 'kafka.retries', too"
            raise ConfigurationError(_GUARANTEE.name, found, expected)
        found = f"is given, and '{_GUARANTEE.name}' is '{self.guarantee.value}'"
        expected = f"Set that to '{DeliveryGuarantee.EXACTLY_ONCE.value}', or leave this out"
        for option, is_given in (
            (_PREFIX, self.prefix is not None),
            (_DOUBTFUL_REPLAYS, self.caution is not Caution.WARN),
            (_MOVED_FROM, self.checkpoint.moved_from is not None),
        ):
            if is_given and not is_exact:
                raise ConfigurationError(option.name, found, expected)
        if not is_exact and self.transaction_timeout_ms != _USUAL_TIMEOUT_MS:
            logger.warning(
                "Option '%s' has no effect here: there are transactions only with '%s' %s",
                TIMEOUT_OPTION,
                _GUARANTEE.name,
                DeliveryGuarantee.EXACTLY_ONCE.value,
            )


OPTIONS: Options = options_of(SinkOptions, use=Use.WRITE)

OF_KAFKA: Options = {
    name: option
    for name, option in for_use(PRODUCER_OPTIONS, Use.WRITE).items()
    if name not in (*CLIENT_OPTIONS, *_OF_TRANSACTIONS)
}
"""Kafka's settings that a writer has, and not every client."""


def _check_partitioner(settings: Settings) -> None:
    class_name = settings.text(_PARTITIONER_CLASS).strip()
    if class_name and class_name not in SETTINGS_BY_CLASS:
        expected = (
            "Java classes cannot be run here: set 'kafka.partitioner', or give the rows a column "
            "'partition'"
        )
        raise ConfigurationError(_PARTITIONER_CLASS, "found {}", expected, class_name)


def read_sink_options(
    settings: Settings, token_provider: TokenProvider | None, hidden: frozenset[str]
) -> SinkOptions:
    """Return the parsed options of a writer. Raises `ConfigurationError`."""
    _check_partitioner(settings)
    producer = ProducerConfig.from_settings(settings, token_provider)
    # Coordinators that are away are waited for as long as brokers that rows go to.
    timeout_ms = max(producer.client.default_api_timeout_ms, producer.delivery_timeout_ms)
    client = replace(producer.client, default_api_timeout_ms=timeout_ms)
    producer = replace(producer, client=client)
    return settings.read(SinkOptions, producer=producer, hidden=hidden)
