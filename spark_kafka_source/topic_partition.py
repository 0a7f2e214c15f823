"""The name of one partition of one topic, and partitions sorted by their topics."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar

from spark_kafka_source.secret import printable

Topic = TypeVar("Topic")
"""The name of a topic, or its id."""


class TopicPartition(NamedTuple):
    """One partition of one topic. It prints as in Kafka: `events-0`."""

    topic: str
    partition: int

    def __str__(self) -> str:
        # A topic's name in an answer may hold anything, and this text goes to logs and terminals.
        return f"{printable(self.topic)}-{self.partition}"


def partitions_by_topic(partitions: Iterable[tuple[Topic, int]]) -> dict[Topic, list[int]]:
    """Return the numbers of the partitions by topic, all in their order."""
    by_topic: dict[Topic, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    return by_topic


class _Numbered(Protocol):
    @property
    def partition_index(self) -> int: ...


P_co = TypeVar("P_co", bound=_Numbered, covariant=True)


class _InTopic(Protocol[P_co]):
    @property
    def name(self) -> str: ...
    @property
    def partitions(self) -> Sequence[P_co]: ...


def each_partition(topics: Iterable[_InTopic[P_co]]) -> Iterator[tuple[TopicPartition, P_co]]:
    """Yield what a message says of each partition, with the partition's name."""
    for topic in topics:
        for partition in topic.partitions:
            yield TopicPartition(topic.name, partition.partition_index), partition
