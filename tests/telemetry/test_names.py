"""The names of pushed metrics are those of Kafka's own clients."""

from pathlib import Path

import pytest

from spark_kafka_source import KafkaConsumer, KafkaProducer
from tools.java_program import run_java

PROGRAM = Path(__file__).with_name("JavaNames.java")

STANDARD = {
    "consumer": """
        connection.creation.rate connection.creation.total node.request.latency.avg
        node.request.latency.max poll.idle.ratio.avg coordinator.commit.latency.avg
        coordinator.commit.latency.max coordinator.assigned.partitions
        coordinator.rebalance.latency.avg coordinator.rebalance.latency.max
        coordinator.rebalance.latency.total fetch.manager.fetch.latency.avg
        fetch.manager.fetch.latency.max
        """,
    "producer": """
        connection.creation.rate connection.creation.total node.request.latency.avg
        node.request.latency.max produce.throttle.time.avg produce.throttle.time.max
        record.queue.time.avg record.queue.time.max
        """,
}
"""The metrics that each client should have, by KIP-714."""

# Java makes them when it is connected, or when it has a partition.
LATE = {
    "org.apache.kafka.consumer.node.request.latency.avg",
    "org.apache.kafka.consumer.node.request.latency.max",
    "org.apache.kafka.consumer.fetch.manager.records.lag",
    "org.apache.kafka.producer.node.request.latency.avg",
    "org.apache.kafka.producer.node.request.latency.max",
}


def pushed() -> list[str]:
    """Return the names of all metrics that our clients push."""
    servers = "127.0.0.1:1"
    found: list[str] = []
    with (
        KafkaConsumer(bootstrap_servers=servers) as consumer,
        KafkaProducer(bootstrap_servers=servers) as producer,
    ):
        for telemetry in (consumer._telemetry, producer._sender._telemetry):
            assert telemetry is not None
            found += telemetry._payloads.figures
    return found


def test_the_standard_metrics_are_there() -> None:
    found = set(pushed())
    for client, names in STANDARD.items():
        assert {f"org.apache.kafka.{client}.{name}" for name in names.split()} <= found


def test_metrics_of_the_client_come_before_those_of_nodes_and_partitions() -> None:
    names = [each for each in pushed() if ".consumer." in each]
    assert names[-1].endswith("records.lag")
    assert len(names) > 40


@pytest.mark.java
def test_kafkas_own_clients_have_metrics_of_these_names(kafka_jars: list[Path]) -> None:
    with run_java(PROGRAM, kafka_jars) as program:
        javas = set(program.ask("").split())
    assert set(pushed()) - javas == LATE
