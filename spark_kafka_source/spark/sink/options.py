"""The options of a writer, parsed before any row is written."""

import logging
import re
from dataclasses import dataclass
from enum import Enum
from typing import Any

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.exactly_once import (
    CHECK_OPTION,
    DOUBT_OPTION,
    PREFIX_OPTION,
    TIMEOUT_OPTION,
    Caution,
    ReplayCheck,
    checked_prefix,
)
from spark_kafka_source.net import TokenProvider
from spark_kafka_source.producer.config import SETTINGS_BY_CLASS, ProducerConfig
from spark_kafka_source.settings import Settings
from spark_kafka_source.spark.declaration import (
    RACK_OPTION,
    Option,
    Use,
    combined,
    of_kafka,
    options_of,
    read_by,
    read_options,
)
from spark_kafka_source.spark.kinds import (
    TOPIC_NAME,
    TOPIC_NAMES,
    Texts,
    if_given,
    like,
    one_of,
    parsed,
)
from spark_kafka_source.spark.without_effect import refuse
from spark_kafka_source.typed import TypedWriteConfig

logger = logging.getLogger(__name__)

_BYTES = "Rows are written as they are, texts in UTF-8: make bytes of them in the query"
_REFUSED = {
    "kafka.key.serializer": _BYTES,
    "kafka.value.serializer": _BYTES,
    "kafka.interceptor.classes": "Java classes cannot be run here: change rows in the query",
    "kafka.transactional.id": "Each task has one of its own, with 'deliveryGuarantee' exactly-once",
}
_PARTITIONER_CLASS = "kafka.partitioner.class"
_OF_TRANSACTIONS = ("kafka.transactional.id", "kafka.transaction.timeout.ms")


def _topic(name: str, text: str) -> str:
    topic = text.strip()
    if not re.fullmatch(TOPIC_NAME, topic):
        raise ConfigurationError(name, "{} cannot be a topic's name", TOPIC_NAMES, topic)
    return topic


_TOPIC = Option(
    "topic",
    if_given(parsed("a topic's name", _topic)),
    "the topic to write to; if not given, the column `topic` names it for each row",
    Use.WRITE,
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
    Use.WRITE,
)
_PREFIX = Option(
    PREFIX_OPTION,
    if_given(parsed("letters, digits, `-`, `_`", lambda _, text: checked_prefix(text))),
    "the first part of an exactly-once query's transactional ids; the default is made of its id",
    Use.WRITE,
)
_TRANSACTION_TIMEOUT = Option(
    TIMEOUT_OPTION,
    if_given(like(60_000, minimum=1)),
    "how long a micro-batch's transactions may be open; the default is 15 minutes, or less",
    Use.WRITE,
)
_REPLAY_CHECK = Option(
    CHECK_OPTION,
    one_of(ReplayCheck.ROWS.value, {each.value: each for each in ReplayCheck}),
    "by what a micro-batch that runs again is compared with what is [written](exactly-once.md)",
    Use.WRITE,
)
_DOUBTFUL_REPLAYS = Option(
    DOUBT_OPTION,
    one_of("warn", {"warn": False, "fail": True}),
    "what is done if nobody can tell whether rows would be missing or doubled",
    Use.WRITE,
)


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """All options of a writer. Secret values are `Secret`s."""

    producer: ProducerConfig
    hidden: frozenset[str]
    """Options, in lower case, whose values no error may show; see `Redaction`."""
    topic: str | None = read_by(_TOPIC.of, _TOPIC)
    typed: TypedWriteConfig = read_by(lambda texts: TypedWriteConfig.from_settings(Settings(texts)))
    guarantee: DeliveryGuarantee = read_by(_GUARANTEE.of, _GUARANTEE)
    prefix: str | None = read_by(_PREFIX.of, _PREFIX)
    transaction_timeout_ms: int | None = read_by(_TRANSACTION_TIMEOUT.of, _TRANSACTION_TIMEOUT)
    caution: Caution = combined(Caution, _REPLAY_CHECK, _DOUBTFUL_REPLAYS)

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
            (_REPLAY_CHECK, self.caution.check is not Caution().check),
            (_DOUBTFUL_REPLAYS, self.caution.fails),
        ):
            if is_given and not is_exact:
                raise ConfigurationError(option.name, found, expected)
        if not is_exact and self.transaction_timeout_ms is not None:
            logger.warning(
                "Option '%s' has no effect here: there are transactions only with '%s' %s",
                TIMEOUT_OPTION,
                _GUARANTEE.name,
                DeliveryGuarantee.EXACTLY_ONCE.value,
            )


OPTIONS: tuple[Option[Any], ...] = options_of(SinkOptions)

OF_KAFKA: tuple[Option[Any], ...] = (
    *(
        each
        for each in of_kafka(ProducerConfig, Use.WRITE)
        if each.name not in (*_OF_TRANSACTIONS, RACK_OPTION)
    ),
    Option(
        _PARTITIONER_CLASS,
        parsed(", ".join(f"`{each}`" for each in SETTINGS_BY_CLASS), lambda _, text: text),
        "replaces `kafka.partitioner.ignore.keys` by the name of one of Java's partitioners",
        Use.WRITE,
    ),
)
"""Kafka's own settings that only a writer has."""


def refuse_unsupported(texts: Texts) -> None:
    """Raise `ConfigurationError` for settings that would change the rows, and cannot be done."""
    refuse(texts, _REFUSED)
    named = texts.get(_PARTITIONER_CLASS, "").strip()
    if named and named not in SETTINGS_BY_CLASS:
        expected = (
            "Java classes cannot be run here: set 'kafka.partitioner', or give the rows a column "
            "'partition'"
        )
        raise ConfigurationError(_PARTITIONER_CLASS, "found {}", expected, named)


def read_sink_options(
    texts: Texts, token_provider: TokenProvider | None, hidden: frozenset[str]
) -> SinkOptions:
    """Return the parsed options of a writer. Raises `ConfigurationError`."""
    producer = ProducerConfig.from_settings(Settings(texts), token_provider)
    return read_options(SinkOptions, texts, producer=producer, hidden=hidden)
