"""The check of a topic of dead letters: it exists, and the user may write to it."""

from typing import Any

import pytest

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.dead_letters import check_topic, topic
from spark_kafka_source.errors import ConfigurationError, error_named
from spark_kafka_source.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseTopic,
)
from spark_kafka_source.testing.memory import MemoryBroker
from spark_kafka_source.testing.memory.cluster import KAFKA_2_1

pytestmark = pytest.mark.memory(client={"retry_backoff_ms": 1, "retry_backoff_max_ms": 5})

READ, WRITE, DESCRIBE = 1 << 3, 1 << 4, 1 << 8
NO_TOPIC = "UNKNOWN_TOPIC_OR_PARTITION"


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait a moment for a topic that does not exist."""
    monkeypatch.setattr(topic, "PATIENCE_MS", 20)


def telling(error: str = "NONE", **rest: Any) -> MetadataResponse:
    return MetadataResponse(topics=[MetadataResponseTopic(error_named(error).code, "d", **rest)])


def test_a_topic_that_exists_is_fine_and_none_is_created(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    broker.cluster.creates_topics = True
    broker.create_topic("d")
    client.run(check_topic(client, "d"))
    with pytest.raises(ConfigurationError) as refused:
        client.run(check_topic(client, "missing"))
    assert str(refused.value) == (
        "Option 'badRecords.topic': topic 'missing' does not exist. Create it, as with "
        "`spark-kafka-source topics create` or `KafkaAdmin.create_topic`. Or name one that exists"
    )
    assert not any(each.allow_auto_topic_creation for each in broker.requests(MetadataRequest))
    assert "missing" not in broker.cluster.topics


def test_a_new_topic_may_be_unknown_for_a_moment(
    broker: MemoryBroker, client: KafkaClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic, "PATIENCE_MS", 20_000)
    broker.create_topic("d")
    for error in (NO_TOPIC, "LEADER_NOT_AVAILABLE"):
        broker.control(MetadataRequest, telling(error))
    client.run(check_topic(client, "d"))


def test_a_topic_without_a_leader_for_now_exists(broker: MemoryBroker, client: KafkaClient) -> None:
    broker.control(MetadataRequest, telling("LEADER_NOT_AVAILABLE"), times=None)
    client.run(check_topic(client, "d"))


@pytest.mark.parametrize(
    "answer",
    [
        telling("TOPIC_AUTHORIZATION_FAILED"),
        telling(topic_authorized_operations=READ | DESCRIBE),
        telling(topic_authorized_operations=0),
    ],
)
def test_a_user_who_may_not_write_is_told(
    broker: MemoryBroker, client: KafkaClient, answer: MetadataResponse
) -> None:
    broker.control(MetadataRequest, answer)
    with pytest.raises(ConfigurationError, match="needs WRITE on topic 'd'") as refused:
        client.run(check_topic(client, "d"))
    assert str(refused.value).startswith("Option 'badRecords.topic': is denied: the user needs")


@pytest.mark.parametrize("operations", [WRITE, READ | WRITE | DESCRIBE, -0x80000000])
def test_a_user_who_may_write_or_is_not_told_goes_on(
    broker: MemoryBroker, client: KafkaClient, operations: int
) -> None:
    broker.control(MetadataRequest, telling(topic_authorized_operations=operations))
    client.run(check_topic(client, "d"))
    (request,) = broker.requests(MetadataRequest)
    assert request.include_topic_authorized_operations


def test_a_name_that_no_topic_can_have(broker: MemoryBroker, client: KafkaClient) -> None:
    broker.control(MetadataRequest, telling("INVALID_TOPIC_EXCEPTION"))
    with pytest.raises(ConfigurationError, match="'d' cannot be a topic's name"):
        client.run(check_topic(client, "d"))


def test_brokers_that_do_not_know_rights_are_asked_for_the_topic_alone() -> None:
    with MemoryBroker(versions=KAFKA_2_1) as broker, KafkaClient(broker.config()) as client:
        broker.create_topic("d")
        client.run(check_topic(client, "d"))
        with pytest.raises(ConfigurationError, match="does not exist"):
            client.run(check_topic(client, "missing"))
