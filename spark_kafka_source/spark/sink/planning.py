"""The writer of a query, whose columns are understood once in each process."""

import json
from functools import lru_cache

from pyspark.sql.types import StructType

from spark_kafka_source.spark.redaction import hiding
from spark_kafka_source.spark.sink.at_least_once import AtLeastOnce
from spark_kafka_source.spark.sink.columns import SinkColumns
from spark_kafka_source.spark.sink.exactly_once import ExactlyOnce
from spark_kafka_source.spark.sink.guarantee import Guarantee
from spark_kafka_source.spark.sink.options import DeliveryGuarantee, SinkOptions
from spark_kafka_source.spark.sink.writer import KafkaWriter


def planned_writer(schema: StructType, options: SinkOptions) -> KafkaWriter:
    """Return the writer of a query with these columns. Raises `ConfigurationError`."""
    return KafkaWriter(options, _columns(schema.json(), options), _guarantee(options))


@lru_cache(maxsize=8)
def _columns(schema: str, options: SinkOptions) -> SinkColumns:
    """Return those of a query; schemas of typed values are looked up in the registry here."""
    with hiding(options.hidden):
        return SinkColumns.of(StructType.fromJson(json.loads(schema)), options.topic, options.typed)


def _guarantee(options: SinkOptions) -> Guarantee:
    if options.guarantee is DeliveryGuarantee.EXACTLY_ONCE:
        return ExactlyOnce.of(options)
    return AtLeastOnce(options.producer)
