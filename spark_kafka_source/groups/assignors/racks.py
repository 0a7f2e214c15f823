"""Racks of members and partitions, for the sticky assignors (KIP-881)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from spark_kafka_source.groups.assignors.assignor import TopicRacks, differ
from spark_kafka_source.groups.assignors.subscription import Subscription
from spark_kafka_source.topic_partition import TopicPartition


class Racks:
    """The racks of members and partitions.

    `known` says whether a member told its rack. `matter` says whether the assignment depends on
    racks.
    """

    def __init__(self, topics: TopicRacks, subscriptions: Mapping[str, Subscription]) -> None:
        members = {
            member: subscription.rack_id
            for member, subscription in subscriptions.items()
            if subscription.rack_id
        }
        partition_racks = (partition for partitions in topics.values() for partition in partitions)
        self.known = bool(members)
        self.matter = self.known and differ(partition_racks, members.values())
        self._topics, self._members = topics, members if self.matter else {}
        self._readers = Counter(members.values())

    def match(self, member: str, partition: TopicPartition) -> bool:
        """Whether the partition has a replica in the member's rack, or racks do not matter."""
        rack = self._members.get(member)
        return rack is None or rack in self._of(partition)

    def next_reader(
        self, partition: TopicPartition, members: Sequence[str], first: int = 0
    ) -> int | None:
        """Return the place of the next member in a rack of the partition, from `first` around."""
        racks, count = self._of(partition), len(members)
        places = chain(range(first, count), range(first))
        return next((place for place in places if self._members.get(members[place]) in racks), None)

    def fewest_readers_first(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Sort partitions, stably, by the number of members in their racks, the fewest first."""
        readers = self._readers
        return sorted(partitions, key=lambda where: sum(readers[rack] for rack in self._of(where)))

    def _of(self, partition: TopicPartition) -> frozenset[str]:
        return self._topics[partition.topic][partition.partition]
