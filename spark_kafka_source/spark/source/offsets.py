"""Offsets and timestamps in options: JSON with topics, then partitions."""

import json
import re
from collections.abc import Mapping
from typing import Any

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.timestamps import A_TIMESTAMP, parse_timestamp
from spark_kafka_source.topic_partition import TopicPartition

Offsets = Mapping[TopicPartition, int]
"""The next offset to read of each partition."""

OFFSETS_EXAMPLE = '{"topic":{"0":23,"1":50}}'
"""An example of offsets in an option."""

TIMESTAMPS_EXAMPLE = '{"topic":{"0":1760000000000,"1":"2025-10-09T08:53:20Z"}}'
"""An example of timestamps in an option."""

MAX_PARTITION = 2**31 - 1
"""The largest partition number: Kafka's are int32."""

_WHERE = " for partition {} of topic {}"
_PARTITION = "0|[1-9][0-9]{0,9}"


def parse_offsets_option(
    option: str, text: str, *, words: Mapping[str, int], allowed: str
) -> tuple[dict[TopicPartition, int], dict[str, int]]:
    """Parse offsets by partition, and the topics that have one word for all partitions.

    `{"a": {"0": 23, "1": -2}, "b": "earliest"}` is `{a-0: 23, a-1: -2}, {"b": -2}`. `words` are the
    offsets with a name; no offset is less than the least of them. Raises `ConfigurationError` with
    the place of the fault. `allowed` describes the offsets in it.
    """
    given = _topics(option, text, OFFSETS_EXAMPLE)
    whole = {
        topic: _word(option, offset, topic, words)
        for topic, offset in given.items()
        if isinstance(offset, str)
    }
    offsets = {}
    by_partition = {topic: partitions for topic, partitions in given.items() if topic not in whole}
    for partition, offset in _by_partition(option, by_partition, OFFSETS_EXAMPLE).items():
        if type(offset) is not int or not min(words.values()) <= offset < 2**63:
            expected = f"Give {allowed}, as in {OFFSETS_EXAMPLE}"
            raise _refused(option, offset, partition, expected)
        offsets[partition] = offset
    return offsets, whole


def _word(option: str, given: str, topic: str, words: Mapping[str, int]) -> int:
    offset = words.get(given.strip().lower())
    if offset is None:
        expected = (
            f"Give {' or '.join(words)} for all of its partitions, or JSON as in {OFFSETS_EXAMPLE}"
        )
        raise ConfigurationError(option, "found {} for topic {}", expected, given, topic)
    return offset


def parse_timestamps_option(option: str, text: str) -> dict[TopicPartition, int]:
    """Parse times by partition, in ms since 1970 or as dates. Return them in ms since 1970.

    Raises `ConfigurationError`.
    """
    given = _by_partition(option, _topics(option, text, TIMESTAMPS_EXAMPLE), TIMESTAMPS_EXAMPLE)
    return {
        partition: _timestamp(option, timestamp, partition)
        for partition, timestamp in given.items()
    }


def _timestamp(option: str, given: Any, partition: TopicPartition) -> int:
    if isinstance(given, str) or type(given) is int:
        return parse_timestamp(option, given, _WHERE, *partition[::-1], example=TIMESTAMPS_EXAMPLE)
    raise _refused(option, given, partition, f"Give {A_TIMESTAMP}, as in {TIMESTAMPS_EXAMPLE}")


def _refused(
    option: str, given: Any, partition: TopicPartition, expected: str
) -> ConfigurationError:
    found = given if isinstance(given, str) or type(given) is int else json.dumps(given)
    return ConfigurationError(
        option, f"found {{}}{_WHERE}", expected, found, partition.partition, partition.topic
    )


def _topics(option: str, text: str, example: str) -> dict[str, Any]:
    """Return the JSON value of each topic."""
    expected = f"Give JSON as in {example}"
    given = _object(option, expected, "the value", parse_json_option(option, text, expected))
    if not given:
        raise ConfigurationError(option, "names no partition", expected)
    return given


def _by_partition(
    option: str, topics: Mapping[str, Any], example: str
) -> dict[TopicPartition, Any]:
    """Return the JSON value of each partition."""
    given = {}
    expected = f"Give JSON as in {example}"
    for topic, partitions in topics.items():
        if not _object(option, expected, "topic {}", partitions, topic):
            raise ConfigurationError(option, "topic {} has no partition", expected, topic)
        for partition, value in partitions.items():
            if not is_partition_number(partition):
                what = "partition {} is no number of a partition"
                raise ConfigurationError(option, what, expected, partition)
            given[TopicPartition(topic, int(partition))] = value
    return given


def parse_json_option(option: str, text: str, expected: str) -> Any:
    """Parse the JSON of an option. Raises `ConfigurationError` with the fault and its place."""
    try:
        return json.loads(text, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        # The error of `json` has the whole text, so it is no cause of ours.
        raise ConfigurationError(option, f"{{}} is not JSON ({error})", expected, text) from None


def is_partition_number(text: str) -> bool:
    """Whether a text is a partition's number, without leading zeros."""
    return bool(re.fullmatch(_PARTITION, text)) and int(text) <= MAX_PARTITION


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a name is given twice")
    return fields


def _object(option: str, expected: str, what: str, value: Any, *values: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigurationError(option, f"{what} is no JSON object", expected, *values)
    return value
