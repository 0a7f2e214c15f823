"""Partitions, offsets and columns as the calls of a consumer take them, checked.

A text can be iterated over, too, so it could pass for a collection of partitions or of names.
"""

import re
from collections.abc import Iterable, Mapping
from operator import index
from typing import Any, SupportsIndex, TypeAlias, TypeGuard

from spark_kafka_source.errors import ConfigurationError, LocalError, in_short
from spark_kafka_source.groups import OffsetAndMetadata
from spark_kafka_source.options.kinds import TOPIC_NAME, TOPIC_NAMES
from spark_kafka_source.records import COLUMNS_WITH_HEADERS
from spark_kafka_source.topic_partition import TopicPartition

OneOrMany: TypeAlias = TopicPartition | Iterable[TopicPartition]
Offsets: TypeAlias = Mapping[TopicPartition, OffsetAndMetadata | int]
"""The offset of the next record of each partition. An `OffsetAndMetadata` may have its epoch."""

_PAIR = 2


def checked_partition(given: object) -> TopicPartition:
    """Return a partition, given as a pair of topic and number. Raises `LocalError` otherwise."""
    if is_one(given):
        number = whole(given[1])
        if number is not None and number >= 0:
            return TopicPartition(given[0], number)
    raise LocalError(
        "A partition is given by its topic and number, as TopicPartition('events', 0); "
        f"found {in_short(given)}"
    )


def checked_partitions(*given: object) -> list[TopicPartition]:
    """Return partitions that are given one by one or in collections. Raises `LocalError`."""
    return [checked_partition(partition) for argument in given for partition in _each_of(argument)]


def is_one(given: object) -> TypeGuard[tuple[str, Any]]:
    """Return whether one partition is given, and not a collection of them."""
    return isinstance(given, tuple) and len(given) == _PAIR and isinstance(given[0], str)


def whole(given: object) -> int | None:
    """Return a whole number, such as one of NumPy, as an int, and None for anything else."""
    if isinstance(given, bool) or not isinstance(given, SupportsIndex):
        return None
    return index(given)


def checked_offsets(given: object, to: str) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return given offsets by partition. `to` is a verb for errors, such as "commit".

    Raises `LocalError` for anything that is no mapping of partitions to offsets of 0 or more.
    """
    if not isinstance(given, Mapping):
        raise LocalError(
            f"Cannot {to} {in_short(given)}: give a dict of offsets by partition, as "
            "{TopicPartition('events', 0): 42}"
        )
    return {checked_partition(key): checked_offset(at, key, to) for key, at in given.items()}


def checked_offset(given: object, where: object, to: str) -> OffsetAndMetadata:
    """Return one offset, given as a number or with its metadata. Raises `LocalError` otherwise."""
    number = whole(given)
    if isinstance(given, OffsetAndMetadata):
        offset = given
    elif number is not None:
        offset = OffsetAndMetadata(number)
    else:
        raise LocalError(
            f"Cannot {to} offset {in_short(given)} of {where}: give a whole number, or an "
            "OffsetAndMetadata"
        )
    if offset.offset < 0:
        raise LocalError(f"Cannot {to} offset {offset.offset} of {where}")
    return offset


def _each_of(given: object) -> Iterable[object]:
    if is_one(given) or isinstance(given, str | bytes) or not isinstance(given, Iterable):
        return [given]
    return given


def checked_topics(given: object) -> frozenset[str]:
    """Return topics, given as one name or a collection. Raises `LocalError` for other names."""
    is_many = isinstance(given, Iterable) and not isinstance(given, str | bytes)
    names = list(given) if is_many else [given]  # type: ignore[call-overload]
    for name in names:
        if not isinstance(name, str) or not re.fullmatch(TOPIC_NAME, name):
            raise LocalError(
                f"{in_short(name)} cannot be a topic's name. {TOPIC_NAMES}. Give a regular "
                "expression as `pattern`"
            )
    return frozenset(names)


def checked_columns(columns: Iterable[str]) -> tuple[str, ...]:
    """Return the columns in their order. Raises `ConfigurationError` for others, and for none."""
    names = [columns] if isinstance(columns, str) else list(columns)
    unknown = [name for name in names if name not in COLUMNS_WITH_HEADERS]
    if isinstance(columns, str) or unknown or not names:
        found = f"found {(unknown or names)[0]!r}" if names else "are none"
        expected = f"Give a list of names. There are {', '.join(COLUMNS_WITH_HEADERS)}"
        raise ConfigurationError("columns", found, expected)
    return tuple(names)
