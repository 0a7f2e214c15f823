"""Partitioners as users give them: functions, and objects with Kafka's methods."""

import pickle
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from spark_kafka_source import KafkaConsumer, TopicPartition
from spark_kafka_source.client.cluster import PartitionInfo
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.producer import KafkaProducer
from spark_kafka_source.producer.given_partitioner import TopicInfo
from spark_kafka_source.testing.memory import MemoryBroker
from tests.producer.writing import IN_TIME

pytestmark = pytest.mark.memory(topics={"t": 1})


class Kafkas:
    """A partitioner with Kafka's methods. It sends records to the last available partition."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def configure(self, configs: Mapping[str, object]) -> None:
        self.told.append(configs["bootstrap_servers"])

    def partition(  # noqa: PLR0917  # as Kafka's
        self,
        topic: str,
        key: Any,
        key_bytes: bytes | None,
        value: Any,
        value_bytes: bytes | None,
        cluster: TopicInfo,
    ) -> int:
        self.told.append((topic, key, key_bytes, value, value_bytes, len(cluster.partitions)))
        return cluster.available_partitions[-1].partition

    def close(self) -> None:
        self.told.append("closed")


def test_an_object_gets_the_record_and_the_topics_partitions(broker: MemoryBroker) -> None:
    broker.create_topic("three", 3)
    broker.move_leader(TopicPartition("three", 2), 7)
    chooser, servers = Kafkas(), str(broker.address())
    with KafkaProducer(
        bootstrap_servers=servers, partitioner=chooser, value_serializer=str.encode
    ) as producer:
        assert producer.send("three", "v", key=b"k").result(IN_TIME).partition == 1
        runs = producer.send_columns("three", pa.table({"value": ["w"]})).result(IN_TIME)
        assert runs[0].partition == 1
    assert chooser.told == [
        servers,
        ("three", b"k", b"k", "v", b"v", 3),
        ("three", None, None, b"w", b"w", 3),
        "closed",
    ]


class WithLess:
    def partition(self, topic: str, key: bytes) -> int:
        return 0


@pytest.mark.parametrize(
    "given", [5, object(), Kafkas, WithLess(), lambda topic: 0, lambda *, topic: 0]
)
def test_what_cannot_be_called_is_refused_at_once(given: Any) -> None:
    with pytest.raises(ConfigurationError, match="'partitioner': "):
        KafkaProducer(bootstrap_servers="localhost:1", partitioner=given)


def test_partitions_have_their_leader_and_replicas(broker: MemoryBroker) -> None:
    broker.create_topic("two", 2)
    broker.move_leader(TopicPartition("two", 1), 7)
    servers = str(broker.address())
    with KafkaProducer(bootstrap_servers=servers) as producer:
        found = producer.partitions_for("two")
    with KafkaConsumer(bootstrap_servers=servers) as consumer:
        assert [vars(each) for each in consumer.partitions_for("two")] == list(map(vars, found))
    assert [each.leader_id for each in found] == [0, None]
    assert found[0].replica_ids == found[0].in_sync_replica_ids == (0,)
    assert found[0].offline_replica_ids == ()


def test_a_partition_with_its_brokers_is_a_topic_partition() -> None:
    plain = TopicPartition("t", 1)
    found = PartitionInfo.of(plain, 5, (5, 6), (5,), (6,))
    assert found == plain
    assert {plain: "known"}[found] == "known"
    assert sorted([found, TopicPartition("t", 0)])[1] is found
    topic, partition = found
    assert (topic, partition, str(found)) == ("t", 1, "t-1")
    again = pickle.loads(pickle.dumps(found))  # our own bytes
    assert (again, again.leader_id, again.replica_ids) == (found, 5, (5, 6))
    assert "leader_id=5, replica_ids=(5, 6)" in repr(found)
