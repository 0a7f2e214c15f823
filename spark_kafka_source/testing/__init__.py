"""A real Kafka, a Kafka in memory and a schema registry for tests. Not for production.

`MemoryKafka` needs this package only. The others need PySpark and Java.
"""

from typing import TYPE_CHECKING

from spark_kafka_source.lazily import importing
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

if TYPE_CHECKING:
    from spark_kafka_source.testing.memory_kafka import MemoryKafka, MemoryKafkaBroker

__all__ = [
    "Broker",
    "BrokerFailedError",
    "DelegationToken",
    "JarsError",
    "JavaError",
    "LocalKafka",
    "LocalRegistry",
    "MemoryKafka",
    "MemoryKafkaBroker",
    "Producer",
    "RegistryFailedError",
    "Security",
    "ToolError",
    "cache_directory",
    "kafka_jars",
    "peer_jars",
    "resolve",
]

if not TYPE_CHECKING:  # A real broker needs none of the handlers of the one in memory.
    __getattr__ = importing(__name__, {"memory_kafka": "MemoryKafka MemoryKafkaBroker"})
