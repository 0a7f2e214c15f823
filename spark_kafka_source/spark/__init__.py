"""The PySpark data source: options, planning on the driver, reading on the executors."""

from spark_kafka_source.spark.lag_listener import LagListener
from spark_kafka_source.spark.source import KafkaDataSource, register

__all__ = ["KafkaDataSource", "LagListener", "register"]
