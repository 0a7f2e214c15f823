"""A partitioner as users give it: a function, or an object with the method of Kafka's interface.

https://kafka.apache.org/documentation/#producerconfigs_partitioner.class
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from spark_kafka_source.client.cluster import PartitionInfo
from spark_kafka_source.client.given_objects import check_call, configure, refuse_class
from spark_kafka_source.client.given_objects import method as method_of
from spark_kafka_source.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """The partitions of a record's topic, in order: what Java's partitioner asks its cluster."""

    topic: str
    partitions: Sequence[PartitionInfo]

    @property
    def available_partitions(self) -> Sequence[PartitionInfo]:
        """The partitions that have a leader."""
        return [partition for partition in self.partitions if partition.leader_id is not None]


class HasPartition(Protocol):
    """An object with Kafka's method."""

    @property
    def partition(self) -> Callable[..., int | None]:
        """The function of topic, key, key's bytes, value, value's bytes, and `TopicInfo`."""


PartitionFunction: TypeAlias = Callable[[str, bytes | None, int], int | None]
"""A function of the topic, the key's bytes and the number of partitions.

It returns a partition, or None for any partition."""
Partitioner: TypeAlias = PartitionFunction | HasPartition

_NAME = "partitioner"
_OF_FUNCTION = ("topic", "key", "partition_count")
_OF_METHOD = ("topic", "key", "key_bytes", "value", "value_bytes", "cluster")


@dataclass(frozen=True, slots=True)
class SentObjects:
    """The key and the value of a record, as given and as bytes."""

    key: Any
    key_bytes: bytes | None
    value: Any
    value_bytes: bytes | None


@dataclass(frozen=True, slots=True)
class GivenPartitioner:
    """A partitioner. `close` is called once, when its producer closes."""

    choose: Callable[[SentObjects, TopicInfo], int | None]
    close: Callable[[], object] = lambda: None


def given_partitioner(
    given: object, configuration: Mapping[str, object]
) -> GivenPartitioner | None:
    """Return the given partitioner, or None for None.

    An object has a method `partition(topic, key, key_bytes, value, value_bytes, cluster)`. Its
    methods `configure`, of the producer's arguments, and `close` are called if it has them. Raises
    `ConfigurationError` for anything that is neither such an object nor a function.
    """
    if given is None:
        return None
    refuse_class(_NAME, given)
    method = getattr(given, "partition", None)
    if callable(method):
        check_call(_NAME, method, "has a method `partition`", *_OF_METHOD)
        close = method_of(_NAME, given, "close")
        configure(_NAME, given, configuration)
        return GivenPartitioner(
            lambda sent, topic: method(
                topic.topic, sent.key, sent.key_bytes, sent.value, sent.value_bytes, topic
            ),
            close or (lambda: None),
        )
    if not callable(given):
        found = f"found an object of type {type(given).__name__}, which cannot be called"
        expected = (
            f"Give a function, a name, or an object with `partition({', '.join(_OF_METHOD)})`"
        )
        raise ConfigurationError(_NAME, found, expected)
    check_call(_NAME, given, "is a function", *_OF_FUNCTION)
    return GivenPartitioner(
        lambda sent, topic: given(topic.topic, sent.key_bytes, len(topic.partitions))
    )
