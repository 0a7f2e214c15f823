"""The offset that a query leaves in Spark's checkpoint, in the format of this package and others.

Format 2 adds topic ids (KIP-516) and leader epochs (KIP-320) to format 1. What Spark's own
connector writes, `{"topic": {"0": 23}}`, is read as well, so that its checkpoints can be continued.
Spark compares offsets as strings: all is sorted by topic, then by number of partition.
"""

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from spark_kafka_source.errors import LocalError, UnsupportedVersionError
from spark_kafka_source.secret import shown
from spark_kafka_source.spark.source.offsets import OFFSETS_EXAMPLE, Offsets, is_partition_number
from spark_kafka_source.topic_partition import TopicPartition

FORMAT_VERSION = 2
"""What is written; every earlier one is read."""


class CheckpointError(LocalError):
    """An offset in a checkpoint that is in none of the formats."""


@dataclass(frozen=True, slots=True)
class SourceOffset:
    """Up to where a micro-batch reads.

    `starts` says where those partitions begin that do not go on from the offset before: all of them
    in the first micro-batch, then those that were added, made anew or truncated. With it a replay
    reads the same rows whatever has become of the topics. `leader_epochs` are those under which
    the ends were found, `topic_ids` are the topics' own. `initial` marks the offset before the
    first micro-batch, which has no partition.
    """

    offsets: Offsets
    starts: Offsets = field(default_factory=dict)
    leader_epochs: Mapping[TopicPartition, int] = field(default_factory=dict)
    topic_ids: Mapping[str, UUID] = field(default_factory=dict)
    initial: bool = False

    def follows(self, before: "SourceOffset") -> bool:
        """Whether it goes on from `before`, except where it says by `starts` that it does not."""
        kept = self.offsets.keys() - self.starts.keys()
        return all(
            each in before.offsets
            and before.offsets[each] <= self.offsets[each]
            and before.topic_ids.get(each.topic) in (None, self.topic_ids.get(each.topic))
            for each in kept
        )

    def to_json(self) -> dict[str, Any]:
        """The JSON form, in the newest format."""
        found: dict[str, Any] = {"version": FORMAT_VERSION, "offsets": by_topic(self.offsets)}
        if self.starts:
            found["starts"] = by_topic(self.starts)
        if self.leader_epochs:
            found["leaderEpochs"] = by_topic(self.leader_epochs)
        if self.topic_ids:
            found["topicIds"] = {name: str(id_) for name, id_ in sorted(self.topic_ids.items())}
        if self.initial:
            found["initial"] = True
        return found

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "SourceOffset":
        """Reads any of the formats.

        Raises `UnsupportedVersionError` for what a newer release of this package wrote, and
        `CheckpointError` for what is none of them.
        """
        try:
            return cls._from_json(found)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            text = shown(json.dumps(found, default=repr))
            raise CheckpointError(
                f"The checkpoint's offset {text} cannot be read: it has none of the formats 1 to "
                f"{FORMAT_VERSION}, nor that of Spark's own connector, {OFFSETS_EXAMPLE}"
            ) from error

    @classmethod
    def _from_json(cls, found: Mapping[str, Any]) -> "SourceOffset":
        version = found.get("version")
        # A topic may well be called "version"; its partitions are an object, though.
        if type(version) is not int:
            return cls(offsets=_by_partition(found))
        if not 1 <= version <= FORMAT_VERSION:
            raise UnsupportedVersionError(
                f"The checkpoint's offset has format version {version}; this release of "
                f"spark-kafka-source reads 1 to {FORMAT_VERSION}. Install the release that wrote it"
            )
        return cls(
            offsets=_by_partition(found["offsets"]),
            starts=_by_partition(found.get("starts", {})),
            leader_epochs=_by_partition(found.get("leaderEpochs", {})),
            topic_ids={name: UUID(text) for name, text in found.get("topicIds", {}).items()},
            initial=bool(found.get("initial", False)),
        )


INITIAL = SourceOffset(offsets={}, initial=True)
"""Before the first micro-batch: the starting options are yet to be looked up."""


def by_topic(numbers: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """`{"topic": {"0": 23}}`, in order: the form that Spark's own connector reads and writes."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for (topic, partition), number in sorted(numbers.items()):
        found[topic][str(partition)] = number
    return dict(found)


def _by_partition(found: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    if not all(is_partition_number(each) for partitions in found.values() for each in partitions):
        raise ValueError("not all of these are numbers of partitions")
    numbers = {
        TopicPartition(topic, int(partition)): number
        for topic, partitions in found.items()
        for partition, number in partitions.items()
    }
    if not all(type(number) is int and 0 <= number < 2**63 for number in numbers.values()):
        raise ValueError("not all of these are offsets or epochs")
    return numbers
