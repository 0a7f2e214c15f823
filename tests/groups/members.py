"""Group members for tests, with a simple assignor and a listener that keeps its calls."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.groups import (
    GroupConfig,
    GroupProtocol,
    Membership,
    new_membership,
)
from spark_kafka_source.groups.assignors import (
    Assignment,
    Assignor,
    Cluster,
    RebalanceProtocol,
    Subscription,
)
from spark_kafka_source.groups.classic import State
from spark_kafka_source.groups.consumer import ConsumerState
from spark_kafka_source.groups.listener import Partitions
from spark_kafka_source.net import Deadline, readable, run
from spark_kafka_source.testing.memory import MemoryBroker
from spark_kafka_source.topic_partition import TopicPartition

PATIENCE_MS = 60_000


@dataclass
class Deal:
    """An assignor that deals partitions by member id, with KIP-429's two rounds if wanted."""

    protocol: RebalanceProtocol = RebalanceProtocol.EAGER
    name: str = "deal"
    heard: list[tuple[tuple[TopicPartition, ...], int]] = field(default_factory=list)
    failure: Exception | None = None

    def user_data(self, topics: Sequence[str]) -> bytes | None:
        return ",".join(topics).encode()

    def assign(
        self, cluster: Cluster, subscriptions: Mapping[str, Subscription]
    ) -> Mapping[str, Assignment]:
        if self.failure is not None:
            raise self.failure
        members = sorted(subscriptions)
        owners = {each: m for m, s in subscriptions.items() for each in s.owned}
        every = [TopicPartition(t, p) for t in sorted(cluster) for p in range(len(cluster[t]))]
        dealt: dict[str, list[TopicPartition]] = {member: [] for member in members}
        for place, each in enumerate(every):
            member = members[place % len(members)]
            may_move = self.protocol is RebalanceProtocol.EAGER
            if may_move or owners.get(each, member) == member:
                dealt[member].append(each)
        return {member: Assignment(tuple(found)) for member, found in dealt.items()}

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:
        self.heard.append((assignment.partitions, generation_id))


@dataclass
class Told:
    """A listener that keeps its calls, in order. Each call also calls `during`."""

    said: list[tuple[str, tuple[TopicPartition, ...]]] = field(default_factory=list)
    during: Callable[[str], None] = lambda _: None

    def revoked(self, partitions: Partitions) -> None:
        self._hear("revoked", partitions)

    def assigned(self, partitions: Partitions) -> None:
        self._hear("assigned", partitions)

    def lost(self, partitions: Partitions) -> None:
        self._hear("lost", partitions)

    def _hear(self, what: str, partitions: Partitions) -> None:
        self.said.append((what, tuple(partitions)))
        self.during(what)

    def interrupt_at(self, what: str) -> None:
        """Let a Ctrl-C end the next call of this kind."""

        def interrupt(now: str) -> None:
            if now == what:
                self.during = lambda _: None
                raise KeyboardInterrupt

        self.during = interrupt


@dataclass
class Joined:
    """A member and its parts."""

    membership: Membership
    told: Told
    deal: Deal

    def poll_until(self, done: Callable[[], bool], what: str = "") -> None:
        """Poll like a consumer, as soon as there is something to poll for."""
        deadline = Deadline.after_ms(PATIENCE_MS)
        while True:
            run(self.membership.poll())
            if done():
                return
            assert not deadline.expired, f"{what or done}: {self.membership.state}"
            readable([self.membership], deadline.within_ms(50))

    def settle(self, *partitions: TopicPartition) -> None:
        """Poll until the member owns exactly these partitions."""
        self.poll_until(
            lambda: self.is_stable and self.membership.assignment == set(partitions),
            f"to own {[str(each) for each in partitions]}",
        )

    @property
    def is_stable(self) -> bool:
        return self.membership.state in (State.STABLE, ConsumerState.STABLE)


def settle_all(*members: Joined, partitions: int) -> None:
    """Poll all members in turn until together they own `partitions` partitions, none twice."""

    def done() -> bool:
        owned = [each for member in members for each in member.membership.assignment]
        all_stable = all(member.is_stable for member in members)
        every_has_some = all(member.membership.assignment for member in members)
        return all_stable and every_has_some and len(owned) == len(set(owned)) == partitions

    deadline = Deadline.after_ms(PATIENCE_MS)
    while True:
        for member in members:
            run(member.membership.poll())
        if done():
            return
        assert not deadline.expired, [
            (m.membership.state, m.membership.assignment) for m in members
        ]
        readable([member.membership for member in members], deadline.within_ms(50))


@contextmanager
def consumer(broker: MemoryBroker, *topics: str, **config: Any) -> Iterator[Joined]:
    """Run a KIP-848 member of group `g` that has subscribed and not polled yet."""
    told = Told()
    settings: dict[str, Any] = {"group_id": "g", "group_protocol": GroupProtocol.CONSUMER}
    group = GroupConfig(**settings | config)
    membership = new_membership(KafkaClient(broker.config()), group, told)
    membership.subscribe(topics or ("t",))
    try:
        yield Joined(membership, told, Deal())
    finally:
        run(membership.close(Deadline.after_ms(PATIENCE_MS)))


@contextmanager
def member(
    broker: MemoryBroker,
    *topics: str,
    assignors: Sequence[Assignor] | None = None,
    cooperative: bool = False,
    client: dict[str, Any] | None = None,
    **config: Any,
) -> Iterator[Joined]:
    """Run a classic member of group `g` that has subscribed and not polled yet."""
    protocol = RebalanceProtocol.COOPERATIVE if cooperative else RebalanceProtocol.EAGER
    deal, told = Deal(protocol), Told()
    settings: dict[str, Any] = {"group_id": "g", "heartbeat_interval_ms": 20}
    membership = new_membership(
        KafkaClient(broker.config(**(client or {}))),
        GroupConfig(**settings | config),
        told,
        [deal] if assignors is None else assignors,
    )
    membership.subscribe(topics or ("t",))
    try:
        yield Joined(membership, told, deal)
    finally:
        run(membership.close(Deadline.after_ms(PATIENCE_MS)))
