"""Spark imports every `pyspark_*` module at the first format it does not know, and finds this."""

from spark_kafka_source.spark import KafkaDataSource as DefaultSource

__all__ = ["DefaultSource"]
