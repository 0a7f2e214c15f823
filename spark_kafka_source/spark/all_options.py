"""All options of `format("pykafka")`, and the names that are none for a reader or a writer."""

from dataclasses import replace

from spark_kafka_source.options.declaration import Options, Use, reasons_of_others
from spark_kafka_source.options.judgement import OtherNames
from spark_kafka_source.options.other_names import other_names
from spark_kafka_source.spark.options import OF_BOTH
from spark_kafka_source.spark.sink import options as of_sinks
from spark_kafka_source.spark.source import options as of_sources

_SERVERS = "kafka.bootstrap.servers"

OPTIONS: Options = {
    _SERVERS: OF_BOTH[_SERVERS],
    **of_sources.OPTIONS,
    **of_sinks.OPTIONS,
    **of_sources.OF_KAFKA,
    **of_sinks.OF_KAFKA,
    **OF_BOTH,
}
"""All options, by name. Those of `OF_A_MEMBER` have an effect only with `managedGroup`."""


def names_of_others(use: Use) -> OtherNames:
    """Return the names that are no options in one direction, with the options of the other."""
    others = other_names(use)
    return replace(others, reasons={**others.reasons, **reasons_of_others(OPTIONS.values(), use)})
