"""All options of `format("pykafka")`, and those without effect on a reader or on a writer."""

from dataclasses import replace

from spark_kafka_source.spark.declaration import Use, reasons_of_others
from spark_kafka_source.spark.options import KAFKAS_OF_BOTH, Options, with_those_of_both
from spark_kafka_source.spark.sink import options as of_sinks
from spark_kafka_source.spark.sink.without_effect import WRITING
from spark_kafka_source.spark.source import options as of_sources
from spark_kafka_source.spark.source.without_effect import READING
from spark_kafka_source.spark.without_effect import WithoutEffect

OF_KAFKA: Options = (*of_sources.OF_KAFKA, *of_sinks.OF_KAFKA, *KAFKAS_OF_BOTH)
"""Kafka's own settings."""

OPTIONS: Options = with_those_of_both((*of_sources.OPTIONS, *of_sinks.OPTIONS))
"""All other options. Those in no field of a configuration are read elsewhere, or nowhere."""


def without_effect(use: Use) -> WithoutEffect:
    """Return the settings without effect in one direction, and the options of the other."""
    found = READING if use is Use.READ else WRITING
    others = reasons_of_others((*OPTIONS, *OF_KAFKA), use)
    return replace(found, reasons={**found.reasons, **others})
