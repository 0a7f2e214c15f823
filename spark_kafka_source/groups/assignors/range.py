"""The range assignor: every member gets consecutive partitions of each topic.

Topics with the same members and the same number of partitions are divided alike. So one member
reads partition 3 of all of them. With racks this holds as far as the racks allow (KIP-881).
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from spark_kafka_source.groups.assignors.assignor import Assignor, Cluster, differ, topics_to_assign
from spark_kafka_source.groups.assignors.members import lasting_order, subscribers
from spark_kafka_source.groups.assignors.subscription import Assignment, Subscription
from spark_kafka_source.topic_partition import TopicPartition


class RangeAssignor(Assignor):
    """Kafka's `range`."""

    name = "range"

    def assign(
        self, cluster: Cluster, subscriptions: Mapping[str, Subscription]
    ) -> Mapping[str, Assignment]:
        """Divide the partitions; see `Assignor`."""
        members = subscribers(lasting_order(subscriptions), subscriptions)
        racks = {member: each.rack_id for member, each in subscriptions.items() if each.rack_id}
        shares = [
            _Shares(topic, partitions, members[topic], racks)
            for topic, partitions in topics_to_assign(cluster, subscriptions).items()
        ]
        by_racks = any(share.racks_matter for share in shares)
        if by_racks:
            _assign_within_racks(shares, racks)
        assigned: dict[str, list[TopicPartition]] = {member: [] for member in subscriptions}
        for share in shares:
            share.assign()
            for member, partitions in share.assigned.items():
                assigned[member] += partitions
        for partitions in assigned.values() if by_racks else ():
            partitions.sort()
        return {member: Assignment(tuple(partitions)) for member, partitions in assigned.items()}


class _Shares:
    """Shares of one topic's partitions among its subscribers."""

    def __init__(
        self,
        topic: str,
        partitions: Sequence[frozenset[str]],
        members: Sequence[str],
        racks: Mapping[str, str],
    ) -> None:
        self.topic, self.partitions, self.members = topic, partitions, members
        self.assigned: dict[str, list[TopicPartition]] = {}
        known = {racks[member] for member in members if member in racks} if racks else ()
        self.racks_matter = bool(known) and differ(partitions, known)
        self._left = dict.fromkeys(range(len(partitions)))
        self._least, self._larger = divmod(len(partitions), len(members))

    def room(self, member: str) -> int:
        """Return how many more partitions the member may get."""
        return max(0, self._least + (self._larger > 0) - len(self.assigned.get(member, ())))

    def give(self, member: str, partitions: Iterable[int]) -> None:
        """Assign partitions.

        A member with more than the least number takes one of the larger shares.
        """
        assigned = self.assigned.setdefault(member, [])
        for partition in partitions:
            del self._left[partition]
            assigned.append(TopicPartition(self.topic, partition))
        self._larger -= len(assigned) > self._least

    def assign(self, racks: Mapping[str, str] | None = None) -> None:
        """Assign all partitions that are left; with `racks`, only those in the member's rack."""
        for member in self.members:
            rack = racks.get(member) if racks else None
            fit = (each for each in self._left if rack is None or rack in self.partitions[each])
            chosen = list(islice(fit, self.room(member)))
            if chosen:
                self.give(member, chosen)
            if not self._left:
                break


def _assign_within_racks(shares: Iterable[_Shares], racks: Mapping[str, str]) -> None:
    alike: dict[tuple[tuple[str, ...], int], list[_Shares]] = {}
    for share in shares:
        alike.setdefault((tuple(share.members), len(share.partitions)), []).append(share)
    for group in alike.values():
        if len(group) > 1:
            _assign_alike(group, racks)
        elif group[0].racks_matter:
            group[0].assign(racks)


def _assign_alike(group: Sequence[_Shares], racks: Mapping[str, str]) -> None:
    """Give all partitions with one number to the first member that has all of them in its rack."""
    members = list(group[0].members)
    for number, partitions in enumerate(zip(*(shares.partitions for shares in group), strict=True)):
        common = frozenset.intersection(*partitions)
        fit = (member for member in members if racks.get(member) in common or member not in racks)
        chosen = next((m for m in fit if all(shares.room(m) for shares in group)), None)
        if chosen is None:
            continue
        for shares in group:
            shares.give(chosen, [number])
        if not any(shares.room(chosen) for shares in group):
            members.remove(chosen)
