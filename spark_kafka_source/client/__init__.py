"""A client of one cluster: metadata, leaders, coordinators, and requests to brokers."""

from spark_kafka_source.client.asked import LONGEST_SILENCE_MS, Asked, wait_for_any
from spark_kafka_source.client.client import LOOKUP_MS, KafkaClient, Still
from spark_kafka_source.client.cluster import (
    Broker,
    Cluster,
    CoordinatorKey,
    CoordinatorKind,
    Leadership,
    Topic,
)
from spark_kafka_source.client.config import CLIENT_OPTIONS, ClientConfig
from spark_kafka_source.client.sensor import Sensor
from spark_kafka_source.net import SECURITY_WITHOUT_EFFECT, NextTry, Retry

__all__ = [
    "CLIENT_OPTIONS",
    "LONGEST_SILENCE_MS",
    "LOOKUP_MS",
    "SECURITY_WITHOUT_EFFECT",
    "Asked",
    "Broker",
    "ClientConfig",
    "Cluster",
    "CoordinatorKey",
    "CoordinatorKind",
    "KafkaClient",
    "Leadership",
    "NextTry",
    "Retry",
    "Sensor",
    "Still",
    "Topic",
    "wait_for_any",
]
