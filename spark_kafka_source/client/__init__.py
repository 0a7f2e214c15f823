"""A client of one cluster: metadata, leaders, coordinators, and requests to brokers."""

from spark_kafka_source.client.asked import LONGEST_SILENCE_MS, Asked
from spark_kafka_source.client.client import LOOKUP_MS, KafkaClient, KeepsRole
from spark_kafka_source.client.cluster import (
    Broker,
    Cluster,
    CoordinatorKey,
    CoordinatorKind,
    Leadership,
    Log,
    Topic,
)
from spark_kafka_source.client.config import CLIENT_OPTIONS, CLIENT_RACK, ClientConfig
from spark_kafka_source.client.roles import COORDINATOR, LEADER, Role, Told, ask_each
from spark_kafka_source.client.sensor import Sensor
from spark_kafka_source.client.unknown_topics import UNKNOWN_TOPIC, patient
from spark_kafka_source.net import NextTry, Retry

__all__ = [
    "CLIENT_OPTIONS",
    "CLIENT_RACK",
    "COORDINATOR",
    "LEADER",
    "LONGEST_SILENCE_MS",
    "LOOKUP_MS",
    "UNKNOWN_TOPIC",
    "Asked",
    "Broker",
    "ClientConfig",
    "Cluster",
    "CoordinatorKey",
    "CoordinatorKind",
    "KafkaClient",
    "KeepsRole",
    "Leadership",
    "Log",
    "NextTry",
    "Retry",
    "Role",
    "Sensor",
    "Told",
    "Topic",
    "ask_each",
    "patient",
]
