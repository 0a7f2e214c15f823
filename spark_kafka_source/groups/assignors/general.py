"""The sticky assignment if members subscribe to different topics: as balanced as it can be.

A member keeps its partitions, except those that a member in another rack would read better. The
rest goes to the member with the fewest partitions. Then partitions move to members that have at
least two fewer.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Mapping

from spark_kafka_source.groups.assignors.assignor import TopicRacks
from spark_kafka_source.groups.assignors.hash_order import PartitionSet, sort_key
from spark_kafka_source.groups.assignors.members import subscribers
from spark_kafka_source.groups.assignors.ownership import Owned, Partitions
from spark_kafka_source.groups.assignors.racks import Racks
from spark_kafka_source.groups.assignors.subscription import Subscription
from spark_kafka_source.topic_partition import TopicPartition

_MOST_TIMES_INSTEAD = 100
"""Rounds through all partitions in which a partition may move in place of another one.

Kafka has no such bound. It needs a few rounds, but it never ends if two partitions take turns.
"""


class GeneralAssignment:
    """The assignment, as `assigned`. `former` has the owners before the present ones."""

    def __init__(
        self,
        topics: TopicRacks,
        subscriptions: Mapping[str, Subscription],
        racks: Racks,
        owned: Owned,
        former: Mapping[TopicPartition, str],
    ) -> None:
        self.assigned = owned.by_member
        self._topics, self._racks, self._former = topics, racks, former
        by_topic = subscribers(self.assigned, subscriptions)
        self._subscribers = {topic: frozenset(by_topic[topic]) for topic in topics}
        self._shared = {topic: each for topic, each in self._subscribers.items() if len(each) > 1}
        self._movements = Movements()
        revoked = self._revoke()
        self._owner = {each: member for member in self.assigned for each in self.assigned[member]}
        self._members = sorted(self.assigned, key=sort_key)
        self._place = {member: place for place, member in enumerate(self._members)}
        # The members by their number of partitions, the fewest first.
        self._order = sorted(map(self._rank, self._members))
        self._balance(revoked)

    def _revoke(self) -> bool:
        """Take partitions that members may not keep. Return whether there were any."""
        revoked = False
        for member, partitions in self.assigned.items():
            for partition in list(partitions):
                subscribed = member in self._subscribers[partition.topic]
                if not subscribed or not self._racks.match(member, partition):
                    del partitions[partition]
                    revoked = True
        return revoked

    def _balance(self, revoked: bool) -> None:
        afresh = not self._order[-1][0]
        every = self._all()
        new = [partition for partition in every if partition not in self._owner]
        self._assign(new)
        before = {member: dict(partitions) for member, partitions in self.assigned.items()}
        if not revoked:
            self._even_out(new)
        moved = self._even_out(every)
        # Members that share no topic with others keep what they have.
        sharing = set[str]().union(*self._shared.values())
        was, now = _imbalance(before, sharing), _imbalance(self.assigned, sharing)
        if moved and not afresh and now >= was:
            self.assigned = before

    def _assign(self, partitions: list[TopicPartition]) -> None:
        left = partitions
        if self._racks.matter:
            left = [each for each in left if not self._give(each, self._fewest(each, near=True))]
        for partition in left:
            self._give(partition, self._fewest(partition))

    def _fewest(self, partition: TopicPartition, *, near: bool = False) -> str | None:
        """Return the subscriber with the fewest partitions; `near`: in a rack of a replica."""
        subscribed = self._subscribers[partition.topic]
        for _, place in self._order:
            member = self._members[place]
            if member in subscribed and (not near or self._racks.match(member, partition)):
                return member
        return None

    def _give(self, partition: TopicPartition, member: str | None) -> bool:
        if member is None:
            return False
        self._owner[partition] = member
        self._resort(member, lambda partitions: partitions.update({partition: None}))
        return True

    def _even_out(self, partitions: Iterable[TopicPartition]) -> bool:
        """Move partitions until no member has two fewer. Return whether any partition moved."""
        shared = [partition for partition in partitions if partition.topic in self._shared]
        times, moved = 0, True
        while moved:
            moved = False
            for partition in shared:
                better = self._better_owner(partition)
                if better is not None:
                    self._move(partition, better, instead=times < _MOST_TIMES_INSTEAD)
                    moved = True
            times += moved
        return times > 0

    def _better_owner(self, partition: TopicPartition) -> str | None:
        most = len(self.assigned[self._owner[partition]]) - 2
        if most < self._order[0][0]:
            return None
        former = self._former.get(partition)
        if former not in self._subscribers[partition.topic]:
            former = None
        for member in (former, self._fewest(partition)):
            if member is not None and len(self.assigned[member]) <= most:
                return member
        return None

    def _move(self, partition: TopicPartition, new: str, *, instead: bool) -> None:
        if instead:
            partition = self._movements.to_move_instead(partition, self._owner[partition], new)
        old = self._owner[partition]
        self._movements.move(partition, old, new)
        self._resort(old, lambda partitions: partitions.pop(partition))
        self._give(partition, new)

    def _resort(self, member: str, change: Callable[[Partitions], object]) -> None:
        del self._order[bisect_left(self._order, self._rank(member))]
        change(self.assigned[member])
        insort(self._order, self._rank(member))

    def _rank(self, member: str) -> tuple[int, int]:
        return len(self.assigned[member]), self._place[member]

    def _all(self) -> list[TopicPartition]:
        """Return all partitions, those with the fewest possible readers first."""
        topics = sorted(
            self._topics, key=lambda topic: (len(self._subscribers[topic]), sort_key(topic))
        )
        return [TopicPartition(t, number) for t in topics for number in range(len(self._topics[t]))]


def _imbalance(assigned: Mapping[str, Partitions], members: Iterable[str]) -> int:
    """Return the sum of the differences between all pairs of members, in partitions."""
    sizes = sorted(len(assigned[member]) for member in members)
    return sum(size * (2 * place - len(sizes) + 1) for place, size in enumerate(sizes))


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
