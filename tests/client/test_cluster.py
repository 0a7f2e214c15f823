"""Updates by metadata, and knowledge that metadata must not remove."""

import uuid
from dataclasses import replace
from typing import Any

import pytest

from spark_kafka_source.client import Broker, Cluster
from spark_kafka_source.errors import BrokerError, error_named
from spark_kafka_source.net import Address, Identity
from spark_kafka_source.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from spark_kafka_source.topic_partition import TopicPartition

T0 = TopicPartition("t", 0)
TOPIC_ID = uuid.UUID(int=7)
BROKERS = [MetadataResponseBroker(1, "a", 9092, "rack"), MetadataResponseBroker(2, "b", 9093)]


def led_by(leader_id: int, leader_epoch: int, **topic: Any) -> MetadataResponse:
    partition = MetadataResponsePartition(0, 0, leader_id, leader_epoch)
    described: dict[str, Any] = {
        "name": "t",
        "topic_id": TOPIC_ID,
        "partitions": [partition],
    } | topic
    return MetadataResponse(brokers=BROKERS, topics=[MetadataResponseTopic(0, **described)])


def code(name: str) -> int:
    return error_named(name).code


def test_a_leader_is_known_with_its_epoch() -> None:
    cluster = Cluster()
    (topic,) = cluster.update(led_by(1, 5))
    assert cluster.leader(T0) == (Broker(1, Address("a", 9092), "rack"), 5)
    assert topic.topic_partitions == [T0]


def test_metadata_of_an_older_leader_epoch_is_ignored() -> None:
    cluster = Cluster()
    cluster.update(led_by(2, 6))
    cluster.update(led_by(1, 5))
    assert cluster.leader(T0)[0].node_id == 2
    cluster.update(led_by(1, 7))
    assert cluster.leader(T0)[0].node_id == 1


def test_an_address_leads_to_the_only_broker_that_has_it() -> None:
    """Behind a proxy all brokers may have one address. Then nothing is expected of it."""
    cluster = Cluster()
    cluster.update(led_by(1, 5))
    assert cluster.identity(Address("a", 9092)) is None  # The cluster has no id.
    cluster.update(replace(led_by(1, 5), cluster_id="c"))
    assert cluster.identity(Address("a", 9092)) == Identity("c", 1)
    assert cluster.identity(Address("elsewhere", 9092)) is None
    both = [MetadataResponseBroker(node_id, "a", 9092) for node_id in (1, 2)]
    cluster.update(replace(led_by(1, 5), cluster_id="c", brokers=both))
    assert cluster.identity(Address("a", 9092)) is None


def test_a_topic_made_anew_starts_its_epochs_anew() -> None:
    cluster = Cluster()
    cluster.update(led_by(2, 6))
    cluster.update(led_by(1, 0, topic_id=uuid.UUID(int=8)))
    assert cluster.leader(T0) == (Broker(1, Address("a", 9092), "rack"), 0)


def test_of_one_epoch_the_later_news_count() -> None:
    """Brokers that are too old to send epochs have -1 everywhere."""
    cluster = Cluster()
    cluster.update(led_by(1, -1))
    cluster.update(led_by(2, -1))
    assert cluster.leader(T0)[0].node_id == 2


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (MetadataResponse(brokers=BROKERS), "UNKNOWN_TOPIC_OR_PARTITION"),
        (led_by(1, 0, partitions=[]), "UNKNOWN_TOPIC_OR_PARTITION"),
        (led_by(-1, 0), "LEADER_NOT_AVAILABLE"),
        (led_by(3, 0), "LEADER_NOT_AVAILABLE"),
        (
            MetadataResponse(topics=[MetadataResponseTopic(code("INVALID_TOPIC_EXCEPTION"), "t")]),
            "INVALID_TOPIC_EXCEPTION",
        ),
        (
            MetadataResponse(
                brokers=BROKERS,
                topics=[
                    MetadataResponseTopic(
                        code("TOPIC_AUTHORIZATION_FAILED"),
                        "t",
                        partitions=[MetadataResponsePartition(0, 0, 1, 0)],
                    )
                ],
            ),
            "TOPIC_AUTHORIZATION_FAILED",
        ),
        (
            led_by(0, 0, partitions=[MetadataResponsePartition(code("KAFKA_STORAGE_ERROR"), 0)]),
            "KAFKA_STORAGE_ERROR",
        ),
    ],
)
def test_no_leader_is_an_error_that_names_the_partition_and_is_asked_for_again(
    response: MetadataResponse, error: str
) -> None:
    cluster = Cluster()
    cluster.update(response)
    with pytest.raises(BrokerError, match=f"Metadata of t-0: {error}"):
        cluster.leader(T0)
    assert cluster.missing([T0]) == ["t"]


def test_a_partition_that_is_led_needs_no_asking_though_another_is_not() -> None:
    cluster = Cluster()
    led = MetadataResponsePartition(0, 0, 1, 0)
    leaderless = MetadataResponsePartition(code("LEADER_NOT_AVAILABLE"), 1, -1, 0)
    cluster.update(led_by(1, 0, partitions=[led, leaderless]))
    assert cluster.missing([T0]) == []
    assert cluster.missing([T0, TopicPartition("t", 1)]) == ["t"]


def test_forgotten_leaders_are_asked_for_but_their_epochs_are_kept() -> None:
    cluster = Cluster()
    cluster.update(led_by(2, 6))
    cluster.forget_leaders()
    assert cluster.missing([T0]) == ["t"]
    cluster.update(led_by(1, 5))
    assert cluster.missing([T0]) == []
    assert cluster.leader(T0)[0].node_id == 2
