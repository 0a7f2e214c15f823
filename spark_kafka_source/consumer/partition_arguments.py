"""Partitions as a consumer's methods take them, checked: a text can be iterated over, too."""

from collections.abc import Iterable
from operator import index
from typing import Any, TypeAlias, TypeGuard

from spark_kafka_source.errors import LocalError
from spark_kafka_source.topic_partition import TopicPartition

OneOrMany: TypeAlias = TopicPartition | Iterable[TopicPartition]

_PAIR = 2
_MOST_SHOWN = 100


def topic_partition(given: object) -> TopicPartition:
    """Return a partition, given as a pair of topic and number. Raises `LocalError` otherwise."""
    if _is_pair(given):
        topic, number = given
        if not isinstance(number, bool) and hasattr(number, "__index__") and index(number) >= 0:
            return TopicPartition(topic, index(number))
    raise LocalError(
        "A partition is given by its topic and number, as TopicPartition('events', 0); "
        f"found {repr(given)[:_MOST_SHOWN]}"
    )


def topic_partitions(*given: object) -> list[TopicPartition]:
    """Return partitions that are given one by one or in collections. Raises `LocalError`."""
    return [topic_partition(each) for one in given for each in _each_of(one)]


def _each_of(given: object) -> Iterable[object]:
    if _is_pair(given) or isinstance(given, str | bytes) or not isinstance(given, Iterable):
        return [given]
    return given


def _is_pair(given: object) -> TypeGuard[tuple[str, Any]]:
    return isinstance(given, tuple) and len(given) == _PAIR and isinstance(given[0], str)
