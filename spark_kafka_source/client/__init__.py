"""A client of one cluster: metadata, leaders, coordinators, and requests to brokers."""

from spark_kafka_source.client.asked import LONGEST_SILENCE_MS, Asked
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
from spark_kafka_source.client.patience import UNKNOWN_TOPIC, patient
from spark_kafka_source.client.roles import COORDINATOR, LEADER, Role, Told, ask_each
from spark_kafka_source.client.sensor import Sensor
from spark_kafka_source.net import SECURITY_WITHOUT_EFFECT, NextTry, Retry

__all__ = [
    "CLIENT_OPTIONS",
    "COORDINATOR",
    "LEADER",
    "LONGEST_SILENCE_MS",
    "LOOKUP_MS",
    "SECURITY_WITHOUT_EFFECT",
    "UNKNOWN_TOPIC",
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
    "Role",
    "Sensor",
    "Still",
    "Told",
    "Topic",
    "ask_each",
    "patient",
]
