"""Moves of partitions between members while an assignment is balanced."""

from spark_kafka_source.groups.assignors.hash_order import PartitionSet
from spark_kafka_source.topic_partition import TopicPartition


class Movements:
    """Moves, each from the partition's owner at the beginning to its owner now."""

    def __init__(self) -> None:
        self._of: dict[TopicPartition, tuple[str, str]] = {}
        self._between: dict[tuple[str, str, str], PartitionSet] = {}

    def to_move_instead(self, partition: TopicPartition, old: str, new: str) -> TopicPartition:
        """Return the partition itself, or another of its topic that moved away from `new` before.

        To move that one back keeps two members from exchanging partitions of one topic.
        """
        source, _ = self._of.get(partition, (old, new))
        back = self._between.get((partition.topic, new, source))
        return back.first() if back else partition

    def move(self, partition: TopicPartition, old: str, new: str) -> None:
        """Note that the partition moves from `old` to `new`."""
        source, _ = self._of.get(partition, (old, new))
        if partition in self._of:
            self._forget(partition)
        if source != new:
            self._of[partition] = source, new
            key = partition.topic, source, new
            if key not in self._between:
                self._between[key] = PartitionSet(partition.topic)
            self._between[key].add(partition)

    def _forget(self, partition: TopicPartition) -> None:
        key = partition.topic, *self._of.pop(partition)
        self._between[key].remove(partition)
        if not self._between[key]:
            del self._between[key]
