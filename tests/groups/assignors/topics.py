"""Short forms of clusters and subscriptions."""

from collections.abc import Iterable, Mapping, Sequence

from spark_kafka_source.client.cluster import PartitionInfo
from spark_kafka_source.groups.assignors import NO_GENERATION, Cluster, Subscription
from spark_kafka_source.topic_partition import TopicPartition


def topics(**partitions: int) -> Cluster:
    """Create topics with these partition counts and unknown racks."""
    return described({topic: [frozenset()] * count for topic, count in partitions.items()})


def in_racks(**partitions: str) -> Cluster:
    """Create topics with partitions in one-letter racks, as `t="ab bc"`."""
    return described(
        {topic: [frozenset(each) for each in text.split()] for topic, text in partitions.items()}
    )


def described(racks: Mapping[str, Sequence[frozenset[str]]]) -> dict[str, list[PartitionInfo]]:
    """Create topics with partitions in these racks."""
    return {
        topic: [info(topic, number, each) for number, each in enumerate(partitions)]
        for topic, partitions in racks.items()
    }


def info(topic: str, number: int, racks: frozenset[str] = frozenset()) -> PartitionInfo:
    return PartitionInfo.of(TopicPartition(topic, number), 0, (), (), (), racks=racks)


def wanting(*wanted: str, rack: str | None = None, instance: str | None = None) -> Subscription:
    """Create a member that owns nothing."""
    return Subscription(wanted, rack_id=rack, group_instance_id=instance)


def owning(
    wanted: Sequence[str], owned: str | Iterable[str], generation_id: int = NO_GENERATION
) -> Subscription:
    """Create a member that owns partitions, given as Kafka prints them."""
    names = owned.split() if isinstance(owned, str) else owned
    return Subscription(
        tuple(wanted), owned=tuple(map(partition, names)), generation_id=generation_id
    )


def partition(name: str) -> TopicPartition:
    topic, _, number = name.rpartition("-")
    return TopicPartition(topic, int(number))


def partitions(cluster: Cluster) -> list[TopicPartition]:
    return [TopicPartition(*each) for topic in cluster for each in cluster[topic]]
