"""What the driver plans of typed columns, before a query has any schema."""

from dataclasses import replace

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.spark.redaction import hiding
from spark_kafka_source.spark.source.options import SourceOptions
from spark_kafka_source.spark.source.schema import time_type
from spark_kafka_source.typed import plan_columns


def planned(options: SourceOptions) -> SourceOptions:
    """Return the options with the schemas that keys and values are read with.

    Raises what `plan_columns` does, and, where a pattern says which topics are read, what keeps
    them from being looked up.
    """
    with hiding(options.hidden):
        columns = plan_columns(
            options.typed, options.columns, lambda: _topics(options), time_type()
        )
    return replace(options, typed_columns=columns)


def _topics(options: SourceOptions) -> list[str]:
    names = options.subscription.topic_names
    if names is not None:
        return names
    with KafkaClient(options.client) as client:
        return sorted(each.name for each in client.topics() if options.subscription.wants(each))
