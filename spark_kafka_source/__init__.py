"""Reads Apache Kafka from Spark in Python, straight into Arrow: `spark.read.format("pykafka")`."""

from spark_kafka_source.spark import KafkaDataSource, LagListener, register

__version__ = "0.1.0"

__all__ = ["KafkaDataSource", "LagListener", "__version__", "register"]
