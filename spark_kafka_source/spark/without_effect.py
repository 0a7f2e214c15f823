"""Options that do nothing here: those of Kafka's with the reason, and those that are misspelt."""

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.settings import nearest
from spark_kafka_source.spark.declaration import Option, Use, reasons_of_others
from spark_kafka_source.spark.kinds import Texts, like

logger = logging.getLogger(__name__)

# Refused, not ignored, but for those with a reason.
_SECURITY = ("kafka.sasl.", "kafka.ssl.")
# What Spark adds: by `load("a")` and `load(["a", "b"])`, and of a table in its catalog the reserved
# properties, and each option once more behind a prefix.
_OF_SPARK = frozenset(
    (
        *("path", "paths"),
        *("collation", "comment", "external", "is_managed_location", "location", "owner"),
        *("provider", "table_type"),
    )
)
_OPTION_OF_A_TABLE = "option."
# So near are `kafka.group` and librdkafka's `fetch.wait.max.ms`; further off are the options of
# other sources and sinks, which queries hand to all of theirs.
_A_SLIP = 0.75


@dataclass(frozen=True, slots=True)
class WithoutEffect:
    """What does nothing in one direction, reading or writing."""

    reasons: Mapping[str, str]
    """Why a setting of Kafka's clients does nothing, by the name of its option."""
    meant: Mapping[str, str]
    """Options by what others call them, where no likeness of the names leads there."""
    of_spark: frozenset[str] = frozenset()
    """What Spark reads itself and hands on, beyond what it hands to both directions."""


class UnknownOptions(Enum):
    """What `unknownOptions` may be: what comes of an option that seems to be misspelt."""

    FAIL = "it is an error"
    WARN = "it is warned of"

    def __str__(self) -> str:
        return self.name.lower()


UNKNOWN_OPTIONS = Option(
    "unknownOptions",
    like(UnknownOptions.FAIL),
    "what comes of an option that seems to be misspelt: an error, or a warning",
    Use.BOTH,
)


def check_options_not_read(
    given: Mapping[str, str],
    options: Collection[Option[Any]],
    use: Use,
    texts: Texts,
    without_effect: WithoutEffect,
) -> None:
    """Warns of what is `given` and none of the `options` for `use`: why, or what was meant.

    `given` has the names as they are written, by those in lower case, and `texts` the values.
    Raises `ConfigurationError` for one that is close to a name that is read, unless
    `unknownOptions` says to warn: what it was to do would not be done, and a warning stands on the
    standard error of a worker, which few see.
    """
    unknown = UNKNOWN_OPTIONS.of(texts)
    read = [each.name for each in options if each.use & use]
    known = {each.lower() for each in read} | _OF_SPARK | without_effect.of_spark
    reasons = {**without_effect.reasons, **reasons_of_others(options, use)}
    for name in sorted(given.keys() - known):
        if name in reasons:
            _warn(given[name], f": {reasons[name]}")
        elif not name.startswith((*_SECURITY, _OPTION_OF_A_TABLE)):
            meant = without_effect.meant.get(name)
            _check_unknown(given[name], meant, read, reasons, unknown)


def _check_unknown(
    name: str,
    elsewhere: str | None,
    read: Collection[str],
    reasons: Iterable[str],
    unknown: UnknownOptions,
) -> None:
    # What is close to an option without effect would have none either, written right.
    known = (*read, *reasons)
    meant = elsewhere or nearest(name, known)
    is_slip = elsewhere or nearest(name, known, _A_SLIP) in read
    if is_slip and unknown is UnknownOptions.FAIL:
        expected = f"Did you mean '{meant}'? Or set 'unknownOptions' to 'warn' to have it ignored"
        raise ConfigurationError(name, "there is no such option", expected)
    _warn(name, f"; did you mean '{meant}'?" if meant else "")


def _warn(name: str, why: str) -> None:
    logger.warning("Option '%s' has no effect here%s", name, why)
