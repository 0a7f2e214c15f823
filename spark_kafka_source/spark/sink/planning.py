"""The writer of a query. Its columns are planned once in each process."""

import json
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pyspark.sql.types import StructType

from spark_kafka_source.spark.redaction import hiding
from spark_kafka_source.spark.sink.columns import SinkColumns
from spark_kafka_source.spark.sink.exactly_once import ExactlyOnce
from spark_kafka_source.spark.sink.guarantee import AtLeastOnce, Guarantee
from spark_kafka_source.spark.sink.options import DeliveryGuarantee, SinkOptions
from spark_kafka_source.spark.sink.writer import KafkaWriter
from spark_kafka_source.typed import TypedWriteConfig


def planned_writer(schema: StructType, options: SinkOptions) -> KafkaWriter:
    """Return the writer of a query with these columns. Raises `ConfigurationError`."""
    columns = _columns(schema.json(), options)
    # Tasks need no registry, so its passwords stay here.
    without_registry = replace(options, typed=TypedWriteConfig())
    return KafkaWriter(without_registry, columns, _guarantee(options))


@lru_cache(maxsize=8)
def _columns(schema: str, options: SinkOptions) -> SinkColumns:
    """Return the columns of a query. This looks up the schemas of typed values."""
    with hiding(options.hidden):
        return SinkColumns.of(StructType.fromJson(json.loads(schema)), options.topic, options.typed)


def _guarantee(options: SinkOptions) -> Guarantee[Any]:
    if options.guarantee is DeliveryGuarantee.EXACTLY_ONCE:
        return ExactlyOnce.of(options)
    return AtLeastOnce(options.producer)
