"""Reads Apache Kafka from Spark in Python, straight into Arrow: `spark.read.format("pykafka")`."""

from spark_kafka_source.net import Token, TokenProvider
from spark_kafka_source.secret import Secret
from spark_kafka_source.spark import KafkaDataSource, LagListener, register

__version__ = "0.1.0"

__all__ = [
    "KafkaDataSource",
    "LagListener",
    "Secret",
    "Token",
    "TokenProvider",
    "__version__",
    "register",
]
