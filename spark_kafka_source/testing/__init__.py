"""A real Kafka and a schema registry for tests. Only PySpark and Java must be installed.

Not for production.
"""

from spark_kafka_source.testing.broker import Broker
from spark_kafka_source.testing.errors import (
    BrokerFailedError,
    JarsError,
    JavaError,
    RegistryFailedError,
    ToolError,
)
from spark_kafka_source.testing.jars import cache_directory, kafka_jars, peer_jars, resolve
from spark_kafka_source.testing.local_kafka import LocalKafka
from spark_kafka_source.testing.local_registry import LocalRegistry
from spark_kafka_source.testing.producer import Producer
from spark_kafka_source.testing.security import DelegationToken, Security

__all__ = [
    "Broker",
    "BrokerFailedError",
    "DelegationToken",
    "JarsError",
    "JavaError",
    "LocalKafka",
    "LocalRegistry",
    "Producer",
    "RegistryFailedError",
    "Security",
    "ToolError",
    "cache_directory",
    "kafka_jars",
    "peer_jars",
    "resolve",
]
