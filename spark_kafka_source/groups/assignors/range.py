"""The range assignor: of each topic every member gets partitions that follow one another.

Topics with as many partitions and the same members are divided alike, so that partition 3 of the
one and of the other are read by the same member; with racks as far as that allows (KIP-881).
"""

from collections.abc import Iterable, Mapping, Sequence

from spark_kafka_source.groups.assignors.assignor import (
    Cluster,
    RebalanceProtocol,
    differ,
    topics_to_assign,
)
from spark_kafka_source.groups.assignors.members import lasting_order, subscribers
from spark_kafka_source.groups.assignors.subscription import Assignment, Subscription
from spark_kafka_source.topic_partition import TopicPartition


class RangeAssignor:
    """Kafka's `range`."""

    name, protocol = "range", RebalanceProtocol.EAGER

    def user_data(self, topics: Sequence[str]) -> bytes | None:
        """None."""

    def assign(
        self, cluster: Cluster, subscriptions: Mapping[str, Subscription]
    ) -> Mapping[str, Assignment]:
        """Who shall read what; see `Assignor`."""
        members = subscribers(lasting_order(subscriptions), subscriptions)
        racks = {member: each.rack_id for member, each in subscriptions.items() if each.rack_id}
        shares = [
            _Shares(topic, partitions, members[topic], racks)
            for topic, partitions in topics_to_assign(cluster, subscriptions).items()
        ]
        by_racks = any(each.racks_matter for each in shares)
        if by_racks:
            _assign_within_racks(shares)
        assigned: dict[str, list[TopicPartition]] = {member: [] for member in subscriptions}
        for each in shares:
            each.assign_rest()
            for member, partitions in each.assigned.items():
                assigned[member] += partitions
        for found in assigned.values() if by_racks else ():
            found.sort()
        return {member: Assignment(tuple(found)) for member, found in assigned.items()}

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:
        """Nothing to remember."""


class _Shares:
    """How the partitions of one topic are divided among those who subscribe to it."""

    def __init__(
        self,
        topic: str,
        partitions: Sequence[frozenset[str]],
        members: list[str],
        racks: Mapping[str, str],
    ) -> None:
        self.topic, self.partitions = topic, partitions
        self.racks = {member: racks.get(member) for member in members}
        self.assigned: dict[str, list[TopicPartition]] = {member: [] for member in members}
        known = {rack for rack in self.racks.values() if rack}
        self.racks_matter = bool(known) and differ(partitions, known)
        self._left = dict.fromkeys(range(len(partitions)))
        self._least, self._larger = divmod(len(partitions), len(members))

    @property
    def alike(self) -> tuple[tuple[str, ...], int]:
        """What topics have in common that are divided alike."""
        return tuple(self.racks), len(self.partitions)

    def match(self, member: str, partition: int) -> bool:
        """Whether the partition has a replica where the member is, or nobody knows where it is."""
        rack = self.racks[member]
        return rack is None or rack in self.partitions[partition]

    def room(self, member: str) -> int:
        """How many partitions more the member may get."""
        return max(0, self._least + (self._larger > 0) - len(self.assigned[member]))

    def give(self, member: str, partitions: Iterable[int]) -> None:
        """Assigns partitions; whoever has more than the least takes one of the larger shares."""
        for partition in partitions:
            del self._left[partition]
            self.assigned[member].append(TopicPartition(self.topic, partition))
        self._larger -= len(self.assigned[member]) > self._least

    def assign_matching(self) -> None:
        """As many as can be read within the racks."""
        for member in self.racks:
            matching = (each for each in self._left if self.match(member, each))
            self._give_some(member, matching)

    def assign_rest(self) -> None:
        """All that are left."""
        for member in self.racks:
            self._give_some(member, self._left)

    def _give_some(self, member: str, partitions: Iterable[int]) -> None:
        chosen = [each for each, _ in zip(partitions, range(self.room(member)), strict=False)]
        if chosen:
            self.give(member, chosen)


def _assign_within_racks(shares: Iterable[_Shares]) -> None:
    groups: dict[tuple[tuple[str, ...], int], list[_Shares]] = {}
    for each in shares:
        groups.setdefault(each.alike, []).append(each)
    for group in groups.values():
        if len(group) > 1:
            _assign_alike(group)
        elif group[0].racks_matter:
            group[0].assign_matching()


def _assign_alike(group: list[_Shares]) -> None:
    """Partitions of one number go to the first member that has all of them in its rack."""
    members = list(group[0].racks)
    for partition in range(len(group[0].partitions)):
        fit = (
            member
            for member in members
            if all(each.match(member, partition) and each.room(member) for each in group)
        )
        chosen = next(fit, None)
        if chosen is None:
            continue
        for each in group:
            each.give(chosen, [partition])
        if not any(each.room(chosen) for each in group):
            members.remove(chosen)
