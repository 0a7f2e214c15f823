"""A group over many rebalances: its coordinator's and its members' states."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from spark_kafka_source.groups.assignors import (
    ASSIGNORS,
    Assignment,
    Assignor,
    RebalanceProtocol,
    Subscription,
)
from spark_kafka_source.topic_partition import TopicPartition
from tests.groups.assignors.groups import cluster_of, member_id
from tests.groups.assignors.topics import info

RACKS = ["a", "b", "c"]


@dataclass
class Member:
    """The state of one consumer."""

    assignor: Assignor
    topics: tuple[str, ...]
    rack_id: str | None
    group_instance_id: str | None
    owned: tuple[TopicPartition, ...] = ()
    generation_id: int = -1

    def subscription(self) -> Subscription:
        return Subscription(
            topics=self.topics,
            user_data=self.assignor.user_data(self.topics),
            # The members of an eager group have revoked everything by now.
            owned=() if self.assignor.protocol is RebalanceProtocol.EAGER else self.owned,
            generation_id=self.generation_id,
            rack_id=self.rack_id,
            group_instance_id=self.group_instance_id,
        )


@dataclass
class Rounds:
    """A group of `members`. Members in `away` may come back with their old state."""

    name: str
    random: Random
    alike: bool
    racks: bool
    members: dict[str, Member] = field(default_factory=dict)
    away: dict[str, Member] = field(default_factory=dict)
    generation_id: int = 0

    def __post_init__(self) -> None:
        self.cluster = cluster_of(self.random, 4, 10, RACKS if self.racks else [])
        self.common = self._topics()
        self._changes = [self._join, self._leave, self._away, self._back, self._want, self._grow]
        for _ in range(self.random.randint(1, 15)):
            self._join()

    def change(self) -> None:
        """Make one or more random changes. At least one member remains."""
        for _ in range(self.random.randint(1, 3)):
            self.random.choice(
                [
                    self._join,
                    self._join,
                    self._leave,
                    self._away,
                    self._back,
                    self._want,
                    self._grow,
                ]
            )()
        if not self.members:
            self._join()

    def subscriptions(self) -> dict[str, Subscription]:
        """Return the subscriptions, encoded and decoded: this fixes the partitions' order."""
        return {
            member: Subscription.decode(each.subscription().encode(), each.group_instance_id)
            for member, each in self.members.items()
        }

    def on_assignment(self, assigned: Mapping[str, Assignment]) -> bool:
        """Give all their assignments. Return whether some revoke partitions and rejoin at once."""
        self.generation_id += 1
        given_up = False
        for name, member in self.members.items():
            arrived = Assignment.decode(assigned[name].encode())
            given_up |= not set(member.owned) <= set(arrived.partitions)
            member.owned, member.generation_id = arrived.partitions, self.generation_id
            member.assignor.on_assignment(arrived, self.generation_id)
            cooperative = member.assignor.protocol is RebalanceProtocol.COOPERATIVE
        return given_up and cooperative

    def _topics(self) -> tuple[str, ...]:
        known = sorted(self.cluster)
        return tuple(sorted(self.random.sample(known, self.random.randint(1, len(known)))))

    def _join(self) -> None:
        self.members[member_id(self.random)] = Member(
            ASSIGNORS[self.name](),
            self.common if self.alike else self._topics(),
            self.random.choice([*RACKS, None]) if self.racks else None,
            self.random.choice([None, f"instance-{self.random.random()}"]),
        )

    def _leave(self) -> None:
        if self.members:
            del self.members[self._any(self.members)]

    def _away(self) -> None:
        if self.members:
            name = self._any(self.members)
            self.away[name] = self.members.pop(name)

    def _back(self) -> None:
        """Bring members back, except owners of unwanted partitions: see test_differences.py."""
        if self.away:
            name = self._any(self.away)
            member = self.away.pop(name)
            if {each.topic for each in member.owned} <= set(member.topics):
                self.members[name] = member

    def _want(self) -> None:
        if self.alike:
            self.common = self._topics()
        for member in self.members.values():
            if member.generation_id == self.generation_id and self.random.random() < 0.5:
                member.topics = self.common if self.alike else self._topics()

    def _grow(self) -> None:
        topic = self.random.choice(list(self.cluster))
        racks, count = frozenset(RACKS[:1] if self.racks else []), len(self.cluster[topic])
        self.cluster[topic] += [info(topic, count + each, racks) for each in range(3)]

    def _any(self, members: dict[str, Member]) -> str:
        return self.random.choice(list(members))
