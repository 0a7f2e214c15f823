"""A query's offset in Spark's checkpoint, in the formats of this package and of Spark's connector.

Format 2 adds topic ids (KIP-516) and leader epochs (KIP-320) to format 1. Releases after 0.2.0 also
write the cluster's id (KIP-78) into it, and on Spark before 4.2 the ends of the logs. 0.2.0 passes
over these. Offsets of Spark's own connector, `{"topic": {"0": 23}}`, are read as well, so that its
checkpoints can be continued. Spark compares offsets as strings, so they are sorted by topic, then
by partition number.
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
"""The format that is written. All earlier ones are read."""


class CheckpointError(LocalError):
    """An offset in a checkpoint that is in none of the formats."""


@dataclass(frozen=True, slots=True)
class SourceOffset:
    """The end of a micro-batch.

    `starts` has the starts of the partitions that do not go on from the offset before: of all
    partitions in the first micro-batch, later of added, recreated or truncated ones. With them a
    replay reads the same rows, even if the topics have changed. `leader_epochs` are the epochs
    under which the ends were found. `initial` marks the offset before the first micro-batch, which
    has no partition. `cluster_id` is empty in older checkpoints, and if brokers give none.
    `log_ends` has the ends of the logs that reached further than `offsets` when it was planned.
    `first_of_run` tells that a run on Spark before 4.2 has planned it first, and left records.
    """

    offsets: Offsets
    starts: Offsets = field(default_factory=dict)
    leader_epochs: Mapping[TopicPartition, int] = field(default_factory=dict)
    topic_ids: Mapping[str, UUID] = field(default_factory=dict)
    initial: bool = False
    cluster_id: str = ""
    log_ends: Offsets = field(default_factory=dict)
    first_of_run: bool = False

    def follows(self, before: "SourceOffset") -> bool:
        """Whether all partitions without an entry in `starts` go on from `before`."""
        kept = self.offsets.keys() - self.starts.keys()
        return all(
            partition in before.offsets
            and before.offsets[partition] <= self.offsets[partition]
            and before.topic_ids.get(partition.topic) in (None, self.topic_ids.get(partition.topic))
            for partition in kept
        )

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, in the newest format."""
        fields: dict[str, Any] = {"version": FORMAT_VERSION, "offsets": by_topic(self.offsets)}
        if self.starts:
            fields["starts"] = by_topic(self.starts)
        if self.leader_epochs:
            fields["leaderEpochs"] = by_topic(self.leader_epochs)
        if self.topic_ids:
            fields["topicIds"] = {name: str(id_) for name, id_ in sorted(self.topic_ids.items())}
        if self.cluster_id:
            fields["clusterId"] = self.cluster_id
        if self.log_ends:
            fields["logEnds"] = by_topic(self.log_ends)
        if self.first_of_run:
            fields["firstOfRun"] = True
        if self.initial:
            fields["initial"] = True
        return fields

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "SourceOffset":
        """Read any of the formats.

        Raises `UnsupportedVersionError` for the format of a newer release, and `CheckpointError`
        for no known format.
        """
        try:
            return cls._from_json(fields)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            text = shown(json.dumps(fields, default=repr))
            raise CheckpointError(
                f"The checkpoint's offset {text} cannot be read: it has none of the formats 1 to "
                f"{FORMAT_VERSION}, nor that of Spark's own connector, {OFFSETS_EXAMPLE}"
            ) from error

    @classmethod
    def _from_json(cls, fields: Mapping[str, Any]) -> "SourceOffset":
        version = fields.get("version")
        # A topic may be called "version", but its value is an object with its partitions.
        if type(version) is not int:
            return cls(offsets=_by_partition(fields))
        if not 1 <= version <= FORMAT_VERSION:
            raise UnsupportedVersionError(
                f"The checkpoint's offset has format version {version}; this release of "
                f"spark-kafka-source reads 1 to {FORMAT_VERSION}. Install the release that wrote it"
            )
        return cls(
            offsets=_by_partition(fields["offsets"]),
            starts=_by_partition(fields.get("starts", {})),
            leader_epochs=_by_partition(fields.get("leaderEpochs", {})),
            topic_ids={name: UUID(text) for name, text in fields.get("topicIds", {}).items()},
            initial=bool(fields.get("initial", False)),
            cluster_id=_text(fields.get("clusterId", "")),
            log_ends=_by_partition(fields.get("logEnds", {})),
            first_of_run=bool(fields.get("firstOfRun", False)),
        )


INITIAL = SourceOffset(offsets={}, initial=True)
"""The offset before the first micro-batch. The starting options are not looked up yet."""


def by_topic(numbers: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Return `{"topic": {"0": 23}}`, in order: the form of Spark's own connector."""
    topics: dict[str, dict[str, int]] = defaultdict(dict)
    for (topic, partition), number in sorted(numbers.items()):
        topics[topic][str(partition)] = number
    return dict(topics)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("this is no text")
    return value


def _by_partition(topics: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    names = {name for partitions in topics.values() for name in partitions}
    if not all(map(is_partition_number, names)):
        raise ValueError("not all of these are numbers of partitions")
    numbers = {
        TopicPartition(topic, int(partition)): number
        for topic, partitions in topics.items()
        for partition, number in partitions.items()
    }
    if not all(type(number) is int and 0 <= number < 2**63 for number in numbers.values()):
        raise ValueError("not all of these are offsets or epochs")
    return numbers
