"""Offsets as text: what users give by option, and what goes to Spark's checkpoint.

Both are JSON with topics, then partitions, in order, since Spark compares offsets as strings.
"""

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spark_kafka_source.errors import ConfigurationError, UnsupportedVersionError
from spark_kafka_source.topic_partition import TopicPartition

Offsets = Mapping[TopicPartition, int]
"""The next offset to read of each partition."""

_FORMAT_VERSION = 1

OFFSETS_EXAMPLE = '{"topic":{"0":23,"1":50}}'
"""How offsets are written in an option."""

MAX_PARTITION = 2**31 - 1
"""Kafka's partitions are int32."""

_PARTITION = re.compile("0|[1-9][0-9]{0,9}")
_MOST_SHOWN = 100


def offsets_to_json(offsets: Offsets) -> dict[str, dict[str, int]]:
    """`{"topic": {"0": 23}}`, sorted by topic and by number of partition."""
    by_topic: dict[str, dict[str, int]] = defaultdict(dict)
    for (topic, partition), offset in sorted(offsets.items()):
        by_topic[topic][str(partition)] = offset
    return dict(by_topic)


def offsets_from_json(found: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    """The opposite of `offsets_to_json`, of what it wrote."""
    return {
        TopicPartition(topic, int(partition)): offset
        for topic, partitions in found.items()
        for partition, offset in partitions.items()
    }


def parse_offsets_option(option: str, text: str, *, least: int) -> dict[TopicPartition, int]:
    """Offsets by option, `{"topic": {"0": 23, "1": -2}}`, each `least` or more.

    Raises `ConfigurationError` that says where the text departs from that.
    """
    expected = f"Give JSON as in {OFFSETS_EXAMPLE}"
    found = parse_json_option(option, text, expected)
    offsets = {}
    for topic, partitions in _object(option, "the value", found).items():
        for partition, offset in _object(option, f"topic {shown(topic)}", partitions).items():
            if not _PARTITION.fullmatch(partition) or int(partition) > MAX_PARTITION:
                what = f"partition {shown(partition)} is no number of a partition"
                raise ConfigurationError(option, what, expected)
            if type(offset) is not int or not least <= offset < 2**63:
                what = f"the offset of partition {partition} of topic {shown(topic)} is not allowed"
                raise ConfigurationError(option, what, _allowed(least))
            offsets[TopicPartition(topic, int(partition))] = offset
    if not offsets:
        raise ConfigurationError(option, "names no partition", expected)
    return offsets


def parse_json_option(option: str, text: str, expected: str) -> Any:
    """The JSON of an option's value; `ConfigurationError` says what is wrong with it, and where."""
    try:
        return json.loads(text, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        what = f"{shown(text)} is not JSON ({error})"
        raise ConfigurationError(option, what, expected) from error


def shown(text: str) -> str:
    """A text as errors show it: in quotes, and cut where it is long."""
    return repr(text) if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]!r}..."


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is given twice")
    return found


def _object(option: str, what: str, found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        expected = f"Give JSON as in {OFFSETS_EXAMPLE}"
        raise ConfigurationError(option, f"{what} is no JSON object", expected)
    return found


def _allowed(least: int) -> str:
    words = {-2: ", -2 for earliest, -1 for latest", -1: ", -1 for latest", 0: ""}
    return f"Give an offset from 0{words[least]}, as in {OFFSETS_EXAMPLE}"


@dataclass(frozen=True, slots=True)
class SourceOffset:
    """What Spark keeps in its checkpoint: up to where a micro-batch reads.

    `starts` says where those partitions begin that no offset before this one has: all of them in
    the first micro-batch, then those that were added. With it a replay reads the same rows
    whatever has become of the topics. `initial` marks the offset before the first micro-batch,
    which has no partition.
    """

    offsets: Offsets
    starts: Offsets = field(default_factory=dict)
    initial: bool = False

    def to_json(self) -> dict[str, Any]:
        """The JSON form, of format version 1."""
        found: dict[str, Any] = {
            "version": _FORMAT_VERSION,
            "offsets": offsets_to_json(self.offsets),
        }
        if self.starts:
            found["starts"] = offsets_to_json(self.starts)
        if self.initial:
            found["initial"] = True
        return found

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "SourceOffset":
        """Raises `UnsupportedVersionError` for what a newer release of this package wrote."""
        version = found.get("version")
        if version != _FORMAT_VERSION:
            raise UnsupportedVersionError(
                f"The checkpoint's offset has format version {version!r}; this release of "
                f"spark-kafka-source reads {_FORMAT_VERSION}. Install the release that wrote it"
            )
        return cls(
            offsets=offsets_from_json(found["offsets"]),
            starts=offsets_from_json(found.get("starts", {})),
            initial=found.get("initial", False),
        )


INITIAL = SourceOffset(offsets={}, initial=True)
"""Before the first micro-batch: `startingOffsets` are yet to be looked up."""
