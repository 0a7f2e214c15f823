"""A client of one cluster: metadata, leaders, coordinators, and the one loop that tries again."""

from spark_kafka_source.client.admin import Admin
from spark_kafka_source.client.client import KafkaClient
from spark_kafka_source.client.cluster import Broker, Cluster, Leadership, Topic
from spark_kafka_source.client.config import CLIENT_SETTINGS, ClientConfig, Settings
from spark_kafka_source.client.retry import Retry

__all__ = [
    "CLIENT_SETTINGS",
    "Admin",
    "Broker",
    "ClientConfig",
    "Cluster",
    "KafkaClient",
    "Leadership",
    "Retry",
    "Settings",
    "Topic",
]
