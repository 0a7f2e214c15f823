"""The sticky assignors: balanced first, and then with as few moves as possible.

With `sticky` (KIP-54) members give up all partitions while they rebalance, and tell the leader in
their user data which ones they owned. With `cooperative-sticky` (KIP-429) they keep their
partitions. A partition that is to move goes to no member until its owner has given it up.
"""

from collections.abc import Callable, Mapping, Sequence

from spark_kafka_source.groups.assignors.assignor import (
    Cluster,
    RebalanceProtocol,
    topics_to_assign,
)
from spark_kafka_source.groups.assignors.constrained import ConstrainedAssignment
from spark_kafka_source.groups.assignors.general import GeneralAssignment
from spark_kafka_source.groups.assignors.ownership import (
    Claim,
    Partitions,
    former_owners,
    moving,
    settle,
)
from spark_kafka_source.groups.assignors.racks import Racks
from spark_kafka_source.groups.assignors.sticky_user_data import (
    cooperative_user_data,
    owned_claim,
    previous_claim,
    sticky_user_data,
)
from spark_kafka_source.groups.assignors.subscription import Assignment, Subscription
from spark_kafka_source.groups.member import NO_GENERATION
from spark_kafka_source.topic_partition import TopicPartition


class StickyAssignor:
    """Kafka's `sticky`."""

    name, protocol = "sticky", RebalanceProtocol.EAGER

    def __init__(self) -> None:
        self._owned: tuple[TopicPartition, ...] | None = None
        self._generation_id = NO_GENERATION

    def user_data(self, topics: Sequence[str]) -> bytes | None:
        """Return the partitions that this member owned last, and their generation."""
        if self._owned is None:
            return None
        return sticky_user_data(self._owned, self._generation_id)

    def assign(
        self, cluster: Cluster, subscriptions: Mapping[str, Subscription]
    ) -> Mapping[str, Assignment]:
        """Divide the partitions; see `Assignor`."""
        assigned, _ = _assign(cluster, subscriptions, previous_claim)
        return {member: Assignment(tuple(assigned[member])) for member in subscriptions}

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:
        """Remember the assignment for the next time that this member joins."""
        self._owned, self._generation_id = assignment.partitions, generation_id


class CooperativeStickyAssignor:
    """Kafka's `cooperative-sticky`."""

    name, protocol = "cooperative-sticky", RebalanceProtocol.COOPERATIVE

    def __init__(self) -> None:
        self._generation_id = NO_GENERATION

    def user_data(self, topics: Sequence[str]) -> bytes | None:
        """Return the generation of this member's last assignment."""
        return cooperative_user_data(self._generation_id)

    def assign(
        self, cluster: Cluster, subscriptions: Mapping[str, Subscription]
    ) -> Mapping[str, Assignment]:
        """Divide the partitions; see `Assignor`."""
        assigned, moving = _assign(cluster, subscriptions, owned_claim)
        for partition, member in moving.items():
            del assigned[member][partition]
        return {member: Assignment(tuple(assigned[member])) for member in subscriptions}

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:
        """Remember the generation for the next time that this member joins."""
        self._generation_id = generation_id


def _assign(
    cluster: Cluster,
    subscriptions: Mapping[str, Subscription],
    claim_of: Callable[[Subscription], Claim],
) -> tuple[dict[str, Partitions], Mapping[TopicPartition, str]]:
    """Return a balanced assignment, and the new owners of partitions that others may still own."""
    if not subscriptions:
        return {}, {}
    topics = topics_to_assign(cluster, subscriptions)
    racks = Racks(topics, subscriptions)
    claims = {member: claim_of(subscription) for member, subscription in subscriptions.items()}
    owned = settle(topics, subscriptions, claims)
    if len({frozenset(subscription.topics) for subscription in subscriptions.values()}) == 1:
        constrained = ConstrainedAssignment(topics, racks, owned)
        return constrained.assigned, constrained.moving
    former = former_owners(subscriptions, claims)
    general = GeneralAssignment(topics, subscriptions, racks, owned, former)
    return general.assigned, moving(subscriptions, general.assigned)
