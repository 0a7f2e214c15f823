"""Options without effect: Kafka's settings with the reason, and misspelt names."""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.settings import nearest
from spark_kafka_source.spark.declaration import Option, Use
from spark_kafka_source.spark.kinds import Texts, like

logger = logging.getLogger(__name__)

# These are refused elsewhere, not ignored, except those with a reason.
_SECURITY = ("kafka.sasl.", "kafka.ssl.")
# Options that Spark adds: by `load("a")` and `load(["a", "b"])`, and for a table of its catalog the
# reserved properties, and each option again behind a prefix.
_OF_SPARK = frozenset(
    (
        *("path", "paths"),
        *("collation", "comment", "external", "is_managed_location", "location", "owner"),
        *("provider", "table_type"),
    )
)
_OPTION_OF_A_TABLE = "option."
# `kafka.group` and librdkafka's `fetch.wait.max.ms` are as near as this. The options of other
# sources and sinks are further off, and queries hand such options to all of theirs.
_A_SLIP = 0.75
_OF_DATABRICKS = {
    "databricks.serviceCredential": "Only Databricks' own connector takes it. For Amazon MSK give "
    "'kafka.sasl.mechanism' AWS_MSK_IAM with an instance profile or keys, for Azure Event Hubs "
    "PLAIN with a connection string, or OAUTHBEARER: see docs/databricks.md"
}
# No other source has options of these names. One without effect would change what values mean.
_OF_VALUES = ("key.", "value.")


@dataclass(frozen=True, slots=True)
class WithoutEffect:
    """Settings without effect in one direction, reading or writing."""

    reasons: Mapping[str, str]
    """The reason why a setting of Kafka's clients has no effect, by the name of its option."""
    meant: Mapping[str, str]
    """Options by the names of other clients, if the likeness of names does not lead to ours."""
    of_spark: frozenset[str] = frozenset()
    """Options that Spark itself reads and hands on in this direction only."""


MEANT_IN_FUNCTIONS: Mapping[str, str] = MappingProxyType(
    {"avroschema": "value.schema", "messagename": "value.message", "descfilepath": "value.schema"}
)
"""Options of Spark's own functions for typed values that have other names here."""


class UnknownOptions(Enum):
    """The values of `unknownOptions`: the handling of an option that seems to be misspelt."""

    FAIL = "it is an error"
    WARN = "it is warned of"

    def __str__(self) -> str:
        return self.name.lower()


UNKNOWN_OPTIONS = Option(
    "unknownOptions",
    like(UnknownOptions.FAIL),
    "the handling of an option that seems to be misspelt: an error, or a warning",
    Use.BOTH,
)


def check_options_not_read(
    given: Mapping[str, str],
    options: Collection[Option[Any]],
    use: Use,
    texts: Texts,
    without_effect: Callable[[], WithoutEffect],
) -> None:
    """Warn of `given` options that are not among the `options` for `use`, with the reason.

    `given` maps names in lower case to the names as written; `texts` has the values.
    `without_effect` returns the reasons, and is called if there is such an option. Raises
    `ConfigurationError` for a name that is close to a valid one, and for any unknown name that
    begins with `key.` or `value.`, unless `unknownOptions` is `warn`.
    The user's intent would not be met, and a warning goes to a worker's standard error, which few
    people see.
    """
    unknown = UNKNOWN_OPTIONS.of(texts)
    read = [each.name for each in options if each.use & use]
    others = given.keys() - {each.lower() for each in read} - _OF_SPARK
    if not others:
        return
    known = without_effect()
    for name in sorted(others - known.of_spark):
        if name in known.reasons:
            _warn(given[name], f": {known.reasons[name]}")
        elif not name.startswith((*_SECURITY, _OPTION_OF_A_TABLE)):
            _check_unknown(given[name], known.meant.get(name), read, known.reasons, unknown)


def refuse(texts: Texts, instead: Mapping[str, str]) -> None:
    """Raise `ConfigurationError` for an option that must not be ignored: `instead` says what to do.

    `texts` have lower-case names.
    """
    for name, expected in {**instead, **_OF_DATABRICKS}.items():
        if name.lower() in texts:
            raise ConfigurationError(name, "is not supported", expected)


def _check_unknown(
    name: str,
    elsewhere: str | None,
    read: Collection[str],
    reasons: Iterable[str],
    unknown: UnknownOptions,
) -> None:
    # A name close to an option without effect would have no effect even if it were spelt right.
    known = (*read, *reasons)
    meant = elsewhere or nearest(name, known)
    is_slip = elsewhere or nearest(name, known, _A_SLIP) in read
    if (is_slip or name.lower().startswith(_OF_VALUES)) and unknown is UnknownOptions.FAIL:
        instead = f"Did you mean '{meant}'?" if meant else "See docs/options.md."
        expected = f"{instead} Or set 'unknownOptions' to 'warn' to have it ignored"
        raise ConfigurationError(name, "there is no such option", expected)
    _warn(name, f"; did you mean '{meant}'?" if meant else "")


def _warn(name: str, why: str) -> None:
    logger.warning("Option '%s' has no effect here%s", name, why)
