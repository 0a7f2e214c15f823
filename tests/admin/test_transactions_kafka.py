"""Transactions of a real broker: the same results and effects as with Kafka's own tool."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer

from spark_kafka_source import KafkaAdmin
from spark_kafka_source.errors import BrokerError
from spark_kafka_source.producer import ProducerFencedError
from spark_kafka_source.testing import LocalKafka
from spark_kafka_source.topic_partition import TopicPartition

pytestmark = pytest.mark.kafka

PATIENCE_SECONDS = 120.0


@pytest.fixture
def admin(kafka: LocalKafka) -> Iterator[KafkaAdmin]:
    with KafkaAdmin(bootstrap_servers=kafka.bootstrap_servers) as admin:
        yield admin


@pytest.fixture
def where(kafka: LocalKafka, topic: str) -> TopicPartition:
    kafka.create_topic(topic, 2)
    return TopicPartition(topic, 1)


def begun(kafka: LocalKafka, name: str, where: TopicPartition) -> Any:
    """Return another library's producer with an open transaction and a record in it."""
    servers = kafka.bootstrap_servers
    # Kafka's tools begin in JVMs of their own, while the transaction is open.
    most_ms = 900_000
    producer = Producer(
        {"bootstrap.servers": servers, "transactional.id": name, "transaction.timeout.ms": most_ms}
    )
    producer.init_transactions(PATIENCE_SECONDS)
    producer.begin_transaction()
    producer.produce(where.topic, b"x", partition=where.partition)
    assert producer.flush(PATIENCE_SECONDS) == 0
    return producer


def told(kafka: LocalKafka, name: str) -> dict[str, str]:
    """Return the description of a transactional id by Kafka's tool."""
    said = kafka.tool("transactions", "describe", "--transactional-id", name)
    head, row = (line.split("\t") for line in said.splitlines() if line.strip())
    return {name.strip(): each.strip() for name, each in zip(head, row, strict=False)}


def test_a_transaction_is_described_as_by_kafkas_tool(
    kafka: LocalKafka, admin: KafkaAdmin, where: TopicPartition
) -> None:
    name = f"{where.topic}-id"
    producer = begun(kafka, name, where)
    found, said = admin.describe_transaction(name), told(kafka, name)
    assert {
        "CoordinatorId": str(found.coordinator_id),
        "TransactionalId": found.transactional_id,
        "ProducerId": str(found.producer.producer_id),
        "ProducerEpoch": str(found.producer.epoch),
        "TransactionState": found.state,
        "TransactionTimeoutMs": str(found.timeout_ms),
        "CurrentTransactionStartTimeMs": str(found.started_at_ms),
        "TopicPartitions": f"{where.topic}-{where.partition}",
    }.items() <= said.items()
    assert found.topic_partitions == (where,)
    listed = kafka.tool("transactions", "list")
    assert {each.transactional_id for each in admin.list_transactions()} == {
        line.split("\t")[0].strip() for line in listed.strip().splitlines()[1:]
    }
    (held,) = admin.held_up([where])
    assert (held.last_stable_offset, held.end_offset) == (0, 1)
    assert [(each.producer, each.start_offset) for each in held.writers] == [(found.producer, 0)]
    producer.commit_transaction(PATIENCE_SECONDS)


def test_one_of_another_library_is_aborted_and_its_producer_fenced(
    kafka: LocalKafka, admin: KafkaAdmin, where: TopicPartition
) -> None:
    name = f"{where.topic}-id"
    producer = begun(kafka, name, where)
    producer_id, epoch = admin.describe_transaction(name).producer
    with pytest.raises(ProducerFencedError):
        admin.abort_transaction(name, producer_id, epoch + 1)
    with pytest.raises(BrokerError, match="INVALID_PRODUCER_ID_MAPPING"):
        admin.abort_transaction(name, producer_id + 1_000_000, epoch)
    admin.abort_transaction(name, producer_id, epoch)
    until_seconds = time.monotonic() + PATIENCE_SECONDS
    while admin.held_up([where])[0].writers:
        assert time.monotonic() < until_seconds, "it is open still"
        time.sleep(0.05)
    assert told(kafka, name)["TransactionState"] == "Empty"
    producer.produce(where.topic, b"more", partition=0)
    with pytest.raises(KafkaException):
        producer.commit_transaction(PATIENCE_SECONDS)
