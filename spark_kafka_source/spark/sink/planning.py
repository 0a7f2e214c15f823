"""The writer of a query. Its columns are planned once in each process."""

import json
from dataclasses import replace
from functools import lru_cache

from pyspark.sql.types import StructType

from spark_kafka_source.spark.redaction import hiding
from spark_kafka_source.spark.sink.columns import SinkColumns
from spark_kafka_source.spark.sink.exactly_once import ExactlyOnce
from spark_kafka_source.spark.sink.guarantee import AtLeastOnce
from spark_kafka_source.spark.sink.options import DeliveryGuarantee, SinkOptions
from spark_kafka_source.spark.sink.writer import KafkaWriter
from spark_kafka_source.typed import TypedWriteConfig


def planned_writer(schema: StructType, options: SinkOptions) -> KafkaWriter:
    """Return the writer of a query with these columns. Raises `ConfigurationError`."""
    columns = _columns(schema.json(), options)
    # Tasks need no registry, so its passwords stay here.
    options = replace(options, typed=TypedWriteConfig())
    is_exact = options.guarantee is DeliveryGuarantee.EXACTLY_ONCE
    guarantee = ExactlyOnce.of(options) if is_exact else AtLeastOnce(options.producer)
    return KafkaWriter(options, columns, guarantee)


@lru_cache(maxsize=8)
def _columns(schema: str, options: SinkOptions) -> SinkColumns:
    """Return the columns of a query. This looks up the schemas of typed values."""
    with hiding(options.hidden):
        return SinkColumns.of(StructType.fromJson(json.loads(schema)), options.topic, options.typed)
