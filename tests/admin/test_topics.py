"""Descriptions of topics, also of topics with faults."""

import pickle

import pytest

from spark_kafka_source import KafkaAdmin
from spark_kafka_source.errors import TopicNotFoundError
from spark_kafka_source.testing.memory import MemoryBroker


def test_partitions_and_their_offsets(broker: MemoryBroker, admin: KafkaAdmin) -> None:
    broker.cluster.topics["t"].logs[1].log_start_offset = 2
    (topic,) = admin.describe_topics(["t"])
    assert [(each.leader, each.earliest, each.latest) for each in topic.partitions] == [
        (0, 0, 3),
        (1, 2, 5),
    ]
    assert topic.replication_factor == 1


def test_all_topics_without_asking_their_leaders(broker: MemoryBroker, admin: KafkaAdmin) -> None:
    assert [(each.name, len(each.partitions)) for each in admin.list_topics()] == [
        ("t", 2),
        ("u", 1),
    ]
    assert {each.latest for topic in admin.list_topics() for each in topic.partitions} == {None}


def test_a_partition_without_a_leader(broker: MemoryBroker, admin: KafkaAdmin) -> None:
    broker.stop(1)
    _, partition = admin.describe_topics(["t"])[0].partitions
    assert (partition.leader, partition.latest) == (None, None)
    assert (partition.error, partition.under_replicated) == ("LEADER_NOT_AVAILABLE", True)


def test_a_name_that_there_is_not(admin: KafkaAdmin) -> None:
    with pytest.raises(TopicNotFoundError) as caught:
        admin.describe_topics(["t", "nope"])
    assert caught.value.topic == "nope"
    assert str(caught.value) == (
        "There is no topic 'nope', or this user may not see it: UNKNOWN_TOPIC_OR_PARTITION (3)"
    )
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
