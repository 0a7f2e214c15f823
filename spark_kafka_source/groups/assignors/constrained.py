"""The sticky assignment if all members subscribe alike: the shares differ by one at most.

A member keeps its partitions up to its share, except those that a member in another rack would read
better. The rest goes first to members in the racks of the replicas, then to any member.
"""

from collections import deque
from collections.abc import Iterable

from spark_kafka_source.groups.assignors.assignor import TopicRacks
from spark_kafka_source.groups.assignors.hash_order import sort_key
from spark_kafka_source.groups.assignors.ownership import Owned, Partitions
from spark_kafka_source.groups.assignors.racks import Racks
from spark_kafka_source.topic_partition import TopicPartition


class ConstrainedAssignment:
    """The assignment, as `assigned`. `moving` has partitions that others may own, by new owner."""

    def __init__(self, topics: TopicRacks, racks: Racks, owned: Owned) -> None:
        members = owned.by_member
        self.assigned: dict[str, Partitions] = {member: {} for member in members}
        self.moving: dict[TopicPartition, str] = {}
        self._topics, self._racks, self._owned = topics, racks, owned
        self._revoked: dict[TopicPartition, str] = {}
        count = sum(map(len, topics.values()))
        # `_larger` members get one partition more than `_least`.
        self._least, self._larger = divmod(count, len(members))
        self._most = self._least + (self._larger > 0)
        self._below_least: list[str] = []
        self._at_least: list[str] = []
        self._keep_owned()
        self._below_least.sort(key=sort_key)
        self._at_least.sort(key=sort_key)
        left = self._left()
        if racks.known:
            left = racks.fewest_readers_first(left)
        if racks.matter:
            left = self._assign_within_racks(left)
        self._assign_in_turn(left)

    def _keep_owned(self) -> None:
        for member, owned in self._owned.by_member.items():
            keep = []
            for partition in sorted(owned, key=lambda where: (where.partition, where.topic)):
                if not self._racks.match(member, partition):
                    self._revoked[partition] = member
                elif partition not in self._owned.disputed:
                    keep.append(partition)
            room = self._room(member, len(keep))
            self.assigned[member].update(dict.fromkeys(keep[:room]))
            self._revoked.update(dict.fromkeys(keep[room:], member))

    def _room(self, member: str, count: int) -> int:
        """Return how many of `count` partitions a member keeps.

        Note which members can take more.
        """
        if count < self._least:
            self._below_least.append(member)
        elif count >= self._most and self._larger:
            self._take_larger()
            return self._most
        elif self._larger:
            self._at_least.append(member)
        return self._least

    def _take_larger(self) -> None:
        self._larger -= 1
        if not self._larger:
            self._at_least.clear()

    def _left(self) -> list[TopicPartition]:
        kept = set[TopicPartition]().union(*self.assigned.values())
        every = (
            TopicPartition(topic, partition)
            for topic in sorted(self._topics, key=sort_key)
            for partition in range(len(self._topics[topic]))
        )
        return [partition for partition in every if partition not in kept]

    def _assign_within_racks(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Give partitions to members in the racks of their replicas. Return those that are left."""
        left, turn = [], 0
        for partition in partitions:
            below = self._racks.next_reader(partition, self._below_least, turn)
            larger = self._racks.next_reader(partition, self._at_least) if below is None else None
            if below is not None:
                turn = self._give_below_least(partition, below)
            elif larger is not None:
                self._give(self._at_least.pop(larger), partition)
                self._take_larger()
            else:
                left.append(partition)
        return left

    def _give_below_least(self, partition: TopicPartition, place: int) -> int:
        """Give the partition to a member. Return the place of the member whose turn is next."""
        member = self._below_least[place]
        self._give(member, partition)
        if len(self.assigned[member]) < self._least:
            place += 1
        else:
            del self._below_least[place]
            if self._larger:
                self._at_least.append(member)
        return place % max(len(self._below_least), 1)

    def _assign_in_turn(self, partitions: Iterable[TopicPartition]) -> None:
        below, at_least = deque(self._below_least), deque(self._at_least)
        for partition in partitions:
            member = below.popleft() if below else at_least.popleft()
            self._give(member, partition)
            held = len(self.assigned[member])
            if held < self._least:
                below.append(member)
            elif held == self._least:
                at_least.append(member)

    def _give(self, member: str, partition: TopicPartition) -> None:
        self.assigned[member][partition] = None
        former = self._revoked.get(partition, member)
        if former != member or partition in self._owned.disputed:
            self.moving[partition] = member
