"""The name of one partition of one topic, and partitions sorted by their topics."""

from collections.abc import Iterable
from typing import NamedTuple

from spark_kafka_source.secret import printable


class TopicPartition(NamedTuple):
    """One partition of one topic. It prints as in Kafka: `events-0`."""

    topic: str
    partition: int

    def __str__(self) -> str:
        # A topic's name in an answer may hold anything, and this text goes to logs and terminals.
        return f"{printable(self.topic)}-{self.partition}"


def partitions_by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Return the numbers of the partitions by topic, all in their order."""
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found
