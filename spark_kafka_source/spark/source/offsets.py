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
    option: str, text: str, *, least: int, allowed: str
) -> dict[TopicPartition, int]:
    """Parse offsets by partition, `{"topic": {"0": 23, "1": -2}}`, each `least` or more.

    Raises `ConfigurationError` with the place of the fault. `allowed` describes the offsets in it.
    """
    offsets = {}
    for where, given in _by_partition(option, text).items():
        if type(given) is not int or not least <= given < 2**63:
            expected = f"Give {allowed}, as in {OFFSETS_EXAMPLE}"
            raise _refused(option, given, where, expected)
        offsets[where] = given
    return offsets


def parse_timestamps_option(option: str, text: str) -> dict[TopicPartition, int]:
    """Parse times by partition, in ms since 1970 or as dates. Return them in ms since 1970.

    Raises `ConfigurationError`.
    """
    return {
        where: _timestamp(option, given, where)
        for where, given in _by_partition(option, text).items()
    }


def _timestamp(option: str, given: Any, where: TopicPartition) -> int:
    if isinstance(given, str) and given.strip().isdigit():
        raise _refused(option, given, where, f"Write it without quotes, as in {OFFSETS_EXAMPLE}")
    if isinstance(given, str) or type(given) is int:
        return parse_timestamp(option, given, _WHERE, *where[::-1], example=TIMESTAMPS_EXAMPLE)
    raise _refused(option, given, where, f"Give {A_TIMESTAMP}, as in {TIMESTAMPS_EXAMPLE}")


def _refused(option: str, given: Any, where: TopicPartition, expected: str) -> ConfigurationError:
    found = given if isinstance(given, str) or type(given) is int else json.dumps(given)
    return ConfigurationError(
        option, f"found {{}}{_WHERE}", expected, found, where.partition, where.topic
    )


def _by_partition(option: str, text: str) -> dict[TopicPartition, Any]:
    """Return the JSON value of each partition."""
    expected = f"Give JSON as in {OFFSETS_EXAMPLE}"
    given = {}
    for topic, partitions in _object(
        option, "the value", parse_json_option(option, text, expected)
    ).items():
        for partition, each in _object(option, "topic {}", partitions, topic).items():
            if not is_partition_number(partition):
                what = "partition {} is no number of a partition"
                raise ConfigurationError(option, what, expected, partition)
            given[TopicPartition(topic, int(partition))] = each
    if not given:
        raise ConfigurationError(option, "names no partition", expected)
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
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is given twice")
    return found


def _object(option: str, what: str, found: Any, *values: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        expected = f"Give JSON as in {OFFSETS_EXAMPLE}"
        raise ConfigurationError(option, f"{what} is no JSON object", expected, *values)
    return found
