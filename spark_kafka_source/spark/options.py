"""Parsing of the options of `format("pykafka")`, for a reader and for a writer.

Neither imports the options of the other, except to say why one of them has no effect.
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

from spark_kafka_source.client import CLIENT_OPTIONS
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net import TokenProvider
from spark_kafka_source.options.declaration import (
    Option,
    Options,
    Settings,
    Use,
    for_use,
    named,
    used_by,
)
from spark_kafka_source.options.judgement import OtherNames, Verdict, judged
from spark_kafka_source.options.kinds import choice
from spark_kafka_source.spark.redaction import Redaction, hiding
from spark_kafka_source.typed import TYPED_OPTIONS

if TYPE_CHECKING:
    from spark_kafka_source.spark.sink.options import SinkOptions
    from spark_kafka_source.spark.source.options import SourceOptions

logger = logger_of(__name__)

# Options that Spark adds: by `load("a")` and `load(["a", "b"])`; for a table of its catalog the
# reserved properties, and each option again behind a prefix; the name of a stream that is written.
_OF_SPARK = frozenset(
    (
        *("path", "paths"),
        *("collation", "comment", "external", "is_managed_location", "location", "owner"),
        *("provider", "table_type"),
    )
)
_OPTION_OF_A_TABLE = "option."
_OF_WRITTEN_STREAMS = frozenset(("queryname",))
# No other source has options of these names. One without effect would change what values mean.
_OF_VALUES = ("key.", "value.")


class UnknownOptions(Enum):
    """The values of `unknownOptions`: the handling of an option that seems to be misspelt."""

    FAIL = "it is an error"
    WARN = "it is warned of"

    def __str__(self) -> str:
        return self.name.lower()


_UNKNOWN_OPTIONS = Option(
    "unknownOptions",
    choice(UnknownOptions.FAIL),
    "the handling of an option that seems to be misspelt: an error, or a warning",
    Use.BOTH,
)
OF_BOTH: Options = {
    **for_use(CLIENT_OPTIONS, Use.BOTH),
    **TYPED_OPTIONS,
    **named(_UNKNOWN_OPTIONS),
}
"""The options that readers and writers share. Some of the typed ones are for one of them only."""


def parse_source_options(
    options: Mapping[str, str],
    token_provider: TokenProvider | None = None,
    redaction: Redaction | None = None,
) -> "SourceOptions":
    """Return a reader's options. Raises `ConfigurationError` for a bad or misspelt option.

    Warns of options without effect.

    `token_provider` is for OAUTHBEARER without a token endpoint. No error shows a value that
    `redaction` matches; its default is Spark's default.
    """
    # Only a reader needs these.
    from spark_kafka_source.spark.source import options as of_sources  # noqa: PLC0415

    settings = _settings(options)
    hidden = (redaction or Redaction()).hidden(options)
    with hiding(hidden):
        of_members = of_sources.of_a_member(settings)
        own = {**of_sources.OPTIONS, **of_sources.OF_KAFKA, **of_members, **OF_BOTH}
        _judge_other_names(options, settings, own, Use.READ)
        return of_sources.read_source_options(settings, token_provider, hidden)


def parse_sink_options(
    options: Mapping[str, str],
    token_provider: TokenProvider | None = None,
    redaction: Redaction | None = None,
) -> "SinkOptions":
    """Return a writer's options, as `parse_source_options` does for a reader."""
    # Only a writer needs these.
    from spark_kafka_source.spark.sink import options as of_sinks  # noqa: PLC0415

    settings = _settings(options)
    hidden = (redaction or Redaction()).hidden(options)
    with hiding(hidden):
        own = {**of_sinks.OPTIONS, **of_sinks.OF_KAFKA, **OF_BOTH}
        _judge_other_names(options, settings, own, Use.WRITE)
        return of_sinks.read_sink_options(settings, token_provider, hidden)


def _judge_other_names(options: Iterable[str], settings: Settings, own: Options, use: Use) -> None:
    """Warn of given options that are not among our `own` for `use`, with the reason.

    Raises `ConfigurationError` for a name that must not be ignored. That is also, unless
    `unknownOptions` is `warn`, a name that is close to a valid one, and any unknown name that
    begins with `key.` or `value.`. The user's intent would not be met, and a warning goes to a
    worker's standard error, which few people see.
    """
    unknown_may_pass = _UNKNOWN_OPTIONS.of(settings) is UnknownOptions.WARN
    written = {name.lower(): name for name in options}
    of_spark = _OF_SPARK | _OF_WRITTEN_STREAMS if use is Use.WRITE else _OF_SPARK
    given = {
        name: value
        for name, value in settings.values.items()
        if name not in of_spark and not name.startswith(_OPTION_OF_A_TABLE)
    }
    for each in judged(Settings(given), used_by(own, use), partial(_others, use)):
        name = written[each.name]
        if each.verdict is Verdict.REFUSED:
            raise ConfigurationError(name, "is not supported", each.text)
        if each.verdict is Verdict.WITHOUT_EFFECT:
            _warn(name, f": {each.text}")
        elif (each.near or each.name.startswith(_OF_VALUES)) and not unknown_may_pass:
            hint = each.hint or f"{each.text or 'See docs/options.md'}."
            expected = f"{hint} Or set 'unknownOptions' to 'warn' to have it ignored"
            raise ConfigurationError(name, "there is no such option", expected)
        elif each.text:
            _warn(name, f": {each.text}")
        else:
            _warn(name, f"; {each.hint[0].lower()}{each.hint[1:]}" if each.hint else "")


def _warn(name: str, why: str) -> None:
    logger.warning("Option '%s' has no effect here%s", name, why)


def _others(use: Use) -> OtherNames:
    from spark_kafka_source.spark.all_options import names_of_others  # noqa: PLC0415

    return names_of_others(use)


def _settings(options: Mapping[str, str]) -> Settings:
    return Settings({name.lower(): value for name, value in options.items()})
