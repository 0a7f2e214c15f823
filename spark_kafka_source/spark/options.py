"""Parsing of the options of `format("pykafka")`, for a reader and for a writer.

Neither imports the options of the other, except to say why one of them has no effect.
"""

from collections.abc import Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from spark_kafka_source.client import ClientConfig
from spark_kafka_source.net import (
    ConnectionSettings,
    SecurityProtocol,
    TlsSettings,
    TokenProvider,
)
from spark_kafka_source.spark import sasl_options, typed
from spark_kafka_source.spark.declaration import RACK_OPTION, Option, Use, of_kafka
from spark_kafka_source.spark.kinds import Texts, as_written, like
from spark_kafka_source.spark.redaction import Redaction, hiding
from spark_kafka_source.spark.without_effect import (
    UNKNOWN_OPTIONS,
    WithoutEffect,
    check_options_not_read,
)

if TYPE_CHECKING:
    from spark_kafka_source.spark.sink.options import SinkOptions
    from spark_kafka_source.spark.source.options import SourceOptions

Options = Collection[Option[Any]]

KAFKAS_OF_BOTH: Options = (
    *of_kafka(ClientConfig, Use.BOTH),
    *of_kafka(ConnectionSettings, Use.BOTH),
    Option("kafka.security.protocol", like(SecurityProtocol.PLAINTEXT), "", Use.BOTH),
    *of_kafka(TlsSettings, Use.BOTH),
    *sasl_options.OPTIONS,
    *typed.OF_TLS,
    Option(
        RACK_OPTION,
        like(""),
        "where this runs, in the words of the brokers' `broker.rack`: reads come from a replica"
        " in the same rack (KIP-392); for writes see `kafka.partitioner.rack.aware`",
        Use.BOTH,
    ),
)
"""Kafka's own settings of readers and writers, as `ClientConfig` and others declare them.

It includes the settings of the registry's TLS: Kafka's names behind the registry's prefix.
"""


def with_those_of_both(own: Options) -> Options:
    """Return the options of a side, or of both, among those that readers and writers share."""
    return (
        Option(
            "kafka.bootstrap.servers",
            as_written("`host:port`, or several separated by commas"),
            "the brokers' addresses; one broker that is up is enough to find the others",
            Use.BOTH,
        ),
        *own,
        *typed.OPTIONS,
        UNKNOWN_OPTIONS,
    )


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

    names, texts = _by_lower_case(options)
    hidden = (redaction or Redaction()).hidden(options)
    with hiding(hidden):
        of_sources.refuse_unsupported(texts)
        own = (*with_those_of_both(of_sources.OPTIONS), *of_sources.OF_KAFKA, *KAFKAS_OF_BOTH)
        known = (*own, *of_sources.of_a_member(texts))
        check_options_not_read(names, known, Use.READ, texts, partial(_others, Use.READ))
        return of_sources.read_source_options(texts, token_provider, hidden)


def parse_sink_options(
    options: Mapping[str, str],
    token_provider: TokenProvider | None = None,
    redaction: Redaction | None = None,
) -> "SinkOptions":
    """Return a writer's options, as `parse_source_options` does for a reader."""
    # Only a writer needs these.
    from spark_kafka_source.spark.sink import options as of_sinks  # noqa: PLC0415

    names, texts = _by_lower_case(options)
    hidden = (redaction or Redaction()).hidden(options)
    with hiding(hidden):
        of_sinks.refuse_unsupported(texts)
        known = (*with_those_of_both(of_sinks.OPTIONS), *of_sinks.OF_KAFKA, *KAFKAS_OF_BOTH)
        check_options_not_read(names, known, Use.WRITE, texts, partial(_others, Use.WRITE))
        return of_sinks.read_sink_options(texts, token_provider, hidden)


def _others(use: Use) -> WithoutEffect:
    from spark_kafka_source.spark.all_options import without_effect  # noqa: PLC0415

    return without_effect(use)


def _by_lower_case(options: Mapping[str, str]) -> tuple[dict[str, str], Texts]:
    """Return the names as the user wrote them and the values, both by names in lower case."""
    return (
        {name.lower(): name for name in options},
        {name.lower(): value for name, value in options.items()},
    )
