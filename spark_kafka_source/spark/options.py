"""All options of `format("pykafka")`, and their parsing."""

from collections.abc import Mapping
from typing import Any

from spark_kafka_source.client import ClientConfig
from spark_kafka_source.net import (
    ConnectionSettings,
    SecurityProtocol,
    TlsSettings,
    TokenProvider,
)
from spark_kafka_source.spark import sasl_options, typed
from spark_kafka_source.spark.declaration import Option, Use, of_kafka
from spark_kafka_source.spark.kinds import Texts, as_written, like
from spark_kafka_source.spark.redaction import Redaction, hiding
from spark_kafka_source.spark.sink import options as of_sinks
from spark_kafka_source.spark.sink.options import SinkOptions, read_sink_options
from spark_kafka_source.spark.sink.without_effect import WRITING
from spark_kafka_source.spark.source import options as of_sources
from spark_kafka_source.spark.source.options import SourceOptions, read_source_options
from spark_kafka_source.spark.source.without_effect import READING
from spark_kafka_source.spark.without_effect import UNKNOWN_OPTIONS, check_options_not_read

OF_KAFKA: tuple[Option[Any], ...] = (
    *of_sources.OF_KAFKA,
    *of_sinks.OF_KAFKA,
    *of_kafka(ClientConfig, Use.BOTH),
    *of_kafka(ConnectionSettings, Use.BOTH),
    Option("kafka.security.protocol", like(SecurityProtocol.PLAINTEXT), "", Use.BOTH),
    *of_kafka(TlsSettings, Use.BOTH),
    *sasl_options.OPTIONS,
    *typed.OF_TLS,
)
"""Kafka's own settings, as `ClientConfig` and others declare them.

It includes the settings of the registry's TLS: Kafka's names behind the registry's prefix.
"""

OPTIONS: tuple[Option[Any], ...] = (
    Option(
        "kafka.bootstrap.servers",
        as_written("`host:port`, or several separated by commas"),
        "the brokers' addresses; one broker that is up is enough to find the others",
        Use.BOTH,
    ),
    *of_sources.OPTIONS,
    *of_sinks.OPTIONS,
    *typed.OPTIONS,
    UNKNOWN_OPTIONS,
)
"""All other options. Those in no field of a configuration are read elsewhere, or nowhere."""


def parse_source_options(
    options: Mapping[str, str],
    token_provider: TokenProvider | None = None,
    redaction: Redaction | None = None,
) -> SourceOptions:
    """Return a reader's options. Raises `ConfigurationError` for a bad or misspelt option.

    Warns of options without effect.

    `token_provider` is for OAUTHBEARER without a token endpoint. No error shows a value that
    `redaction` matches; its default is Spark's default.
    """
    names, texts = _by_lower_case(options)
    hidden = (redaction or Redaction()).hidden(options)
    with hiding(hidden):
        of_sources.refuse_unsupported(texts)
        known = (*OPTIONS, *OF_KAFKA, *of_sources.of_a_member(texts))
        check_options_not_read(names, known, Use.READ, texts, READING)
        return read_source_options(texts, token_provider, hidden)


def parse_sink_options(
    options: Mapping[str, str],
    token_provider: TokenProvider | None = None,
    redaction: Redaction | None = None,
) -> SinkOptions:
    """Return a writer's options, as `parse_source_options` does for a reader."""
    names, texts = _by_lower_case(options)
    hidden = (redaction or Redaction()).hidden(options)
    with hiding(hidden):
        of_sinks.refuse_unsupported(texts)
        check_options_not_read(names, (*OPTIONS, *OF_KAFKA), Use.WRITE, texts, WRITING)
        return read_sink_options(texts, token_provider, hidden)


def _by_lower_case(options: Mapping[str, str]) -> tuple[dict[str, str], Texts]:
    """Return the names as the user wrote them and the values, both by names in lower case."""
    return (
        {name.lower(): name for name in options},
        {name.lower(): value for name, value in options.items()},
    )
