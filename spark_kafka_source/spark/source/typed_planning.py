"""What the driver plans of typed columns, before a query has any schema."""

from dataclasses import replace

from spark_kafka_source.spark.redaction import hiding
from spark_kafka_source.spark.source.options import SourceOptions
from spark_kafka_source.spark.source.planner import OffsetPlanner
from spark_kafka_source.typed import TypedConfig, plan_columns
from spark_kafka_source.values.avro import TIME


def planned(options: SourceOptions, *, has_time: bool) -> SourceOptions:
    """Return the options with the schemas that keys and values are read with.

    `has_time` says whether times of day may be columns of Spark's TIME. Raises what `plan_columns`
    does, and, where a pattern says which topics are read, what keeps them from being looked up.
    """
    with hiding(options.hidden):
        columns = plan_columns(
            options.typed, options.columns, lambda: _topics(options), TIME if has_time else None
        )
    # All else that is said of the registry, its passwords too, is for the driver alone.
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
