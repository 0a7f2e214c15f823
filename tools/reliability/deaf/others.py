"""Other uses of a bootstrap address: a topic's description, and a batch read with Spark."""

import time
from collections.abc import Callable, Mapping

from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from spark_kafka_source.admin import KafkaAdmin
from spark_kafka_source.testing import LocalKafka
from tools.reliability.deaf.running import name
from tools.reliability.deaf.traffic import Traffic
from tools.traffic import batch

_ROWS = 100
_ASK_SECONDS = 75


def others(kafka: LocalKafka, servers: str, spark: SparkSession) -> Mapping[str, float]:
    """Return the seconds that each use takes."""
    topic = name("others")
    kafka.create_topic(topic, 2)
    with Traffic(kafka.bootstrap_servers, []) as traffic:
        traffic.fill({(topic, 0): _ROWS, (topic, 1): _ROWS})
    for source in ("pykafka", "kafka"):  # The first batch of a session takes its time.
        _count(spark, source, kafka.bootstrap_servers, topic)
    ways: dict[str, Callable[[], object]] = {
        "`KafkaAdmin`": lambda: _describe(servers, topic),
        "confluent-kafka's `AdminClient`": lambda: _list(servers, topic),
        "Spark batch, `pykafka`": lambda: _count(spark, "pykafka", servers, topic),
        "Spark batch, its own `kafka`": lambda: _count(spark, "kafka", servers, topic),
    }
    return {way: _timed(act) for way, act in ways.items()}


def _timed(act: Callable[[], object]) -> float:
    began = time.monotonic()
    act()
    return time.monotonic() - began


def _describe(servers: str, topic: str) -> None:
    with KafkaAdmin(bootstrap_servers=servers) as admin:
        assert admin.describe_topics([topic])


def _list(servers: str, topic: str) -> None:
    client = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    assert client.list_topics(topic, _ASK_SECONDS).topics[topic].partitions


def _count(spark: SparkSession, source: str, servers: str, topic: str) -> None:
    options = {
        "kafka.bootstrap.servers": servers,
        "subscribe": topic,
        "startingOffsets": "earliest",
    }
    assert batch(spark, options, source).count() == 2 * _ROWS
