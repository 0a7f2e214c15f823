"""The driver's plan of typed columns, made before the query has a schema."""

from contextlib import closing
from dataclasses import replace

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.dead_letters import check_topic
from spark_kafka_source.spark.redaction import hiding
from spark_kafka_source.spark.source.options import SourceOptions
from spark_kafka_source.spark.source.planner import OffsetPlanner
from spark_kafka_source.typed import TypedConfig, plan_columns
from spark_kafka_source.values.avro import TIME


def planned(options: SourceOptions, *, has_time: bool) -> SourceOptions:
    """Return the options with the schemas of keys and values.

    `has_time`: whether times of day may be columns of Spark's TIME. Raises the errors of
    `plan_columns`, and with a pattern those of looking up its topics. With a topic of dead letters
    it raises those of `check_topic`.
    """
    with hiding(options.hidden):
        if options.typed.bad_records_topic:
            with closing(KafkaClient(options.client)) as client:
                client.run(check_topic(client, options.typed.bad_records_topic))
        columns = plan_columns(
            options.typed, options.columns, lambda: _topics(options), TIME if has_time else None
        )
    # Tasks get the registry's passwords only in a part whose schemas they may have to look up.
    return replace(options, typed_columns=columns, typed=TypedConfig())


def _topics(options: SourceOptions) -> list[str]:
    names = options.subscription.topic_names
    if names is not None:
        return names
    planner = OffsetPlanner(options)
    try:
        return planner.topic_names()
    finally:
        planner.close()
