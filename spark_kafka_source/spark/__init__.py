"""The PySpark data source: what reads is in `source`, what is beside it is for both directions."""

from spark_kafka_source.spark.data_source import KafkaDataSource, register
from spark_kafka_source.spark.lag_listener import LagListener

__all__ = ["KafkaDataSource", "LagListener", "register"]
