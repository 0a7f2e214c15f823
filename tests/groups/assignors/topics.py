"""Clusters and subscriptions in few words."""

from collections.abc import Iterable, Sequence

from spark_kafka_source.groups.assignors import NO_GENERATION, Cluster, Subscription
from spark_kafka_source.topic_partition import TopicPartition


def topics(**partitions: int) -> Cluster:
    """Topics with so many partitions, whose racks nobody knows."""
    return {topic: [frozenset()] * count for topic, count in partitions.items()}


def in_racks(**partitions: str) -> Cluster:
    """Topics whose partitions are in racks of one letter, as `t="ab bc"`."""
    return {topic: [frozenset(each) for each in text.split()] for topic, text in partitions.items()}


def wanting(*wanted: str, rack: str | None = None, instance: str | None = None) -> Subscription:
    """A member that owns nothing."""
    return Subscription(wanted, rack_id=rack, group_instance_id=instance)


def owning(
    wanted: Sequence[str], owned: str | Iterable[str], generation_id: int = NO_GENERATION
) -> Subscription:
    """A member that owns partitions, as Kafka prints them."""
    names = owned.split() if isinstance(owned, str) else owned
    return Subscription(
        tuple(wanted), owned=tuple(map(partition, names)), generation_id=generation_id
    )


def partition(name: str) -> TopicPartition:
    topic, _, number = name.rpartition("-")
    return TopicPartition(topic, int(number))


def partitions(cluster: Cluster) -> list[TopicPartition]:
    return [TopicPartition(topic, each) for topic in cluster for each in range(len(cluster[topic]))]
