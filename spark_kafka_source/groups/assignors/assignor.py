"""The interface of assignors. The leader's assignor divides the partitions of the group."""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Protocol

from spark_kafka_source.groups.assignors.hash_order import in_hash_order
from spark_kafka_source.groups.assignors.subscription import Assignment, Subscription

Cluster = Mapping[str, Sequence[frozenset[str]]]
"""For each topic, the racks of the replicas of each partition, in the order of the partitions."""


class RebalanceProtocol(Enum):
    """The treatment of a member's partitions while the group rebalances (KIP-429)."""

    EAGER = "members give up all partitions before they join"
    COOPERATIVE = "members keep their partitions, and give up those that move afterwards"


class Assignor(Protocol):
    """An assignor, which divides the partitions among the members of a group.

    Each member creates its own, without arguments. Only the leader calls `assign`. A class with
    these attributes is enough:

        class Everything:
            name, protocol = "everything-to-the-first", RebalanceProtocol.EAGER

            def user_data(self, topics):
                return None

            def assign(self, cluster, subscriptions):
                first = min(subscriptions)
                every = [TopicPartition(t, p) for t in cluster for p in range(len(cluster[t]))]
                return {m: Assignment(tuple(every) if m == first else ()) for m in subscriptions}

            def on_assignment(self, assignment, generation_id):
                pass
    """

    @property
    def name(self) -> str:
        """Name in JoinGroup. The coordinator chooses an assignor that all members have."""

    @property
    def protocol(self) -> RebalanceProtocol:
        """The best protocol that the assignor supports.

        An assignor that supports COOPERATIVE must support EAGER, too: the group uses EAGER as soon
        as another of its assignors supports nothing better.
        """

    def user_data(self, topics: Sequence[str]) -> bytes | None:
        """Return data for the leader's assignor, which gets it as `Subscription.user_data`."""

    def assign(
        self, cluster: Cluster, subscriptions: Mapping[str, Subscription]
    ) -> Mapping[str, Assignment]:
        """Divide the partitions: return an assignment for each member, by its member id.

        A topic that is not in `cluster` does not exist (yet). If a partition is to move, a
        COOPERATIVE assignor gives it to no member at first. Its owner gives it up and joins again;
        then the assignor can give it to another member.
        """

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:
        """Note this member's assignment in the group's generation `generation_id`."""


def topics_to_assign(cluster: Cluster, subscriptions: Mapping[str, Subscription]) -> Cluster:
    """Return the topics of the cluster with subscribers, in the order in which Java visits them."""
    members = in_hash_order(subscriptions)
    topics = in_hash_order(topic for each in members for topic in subscriptions[each].topics)
    return {topic: cluster[topic] for topic in topics if cluster.get(topic)}


def differ(partitions: Iterable[frozenset[str]], members: Iterable[str]) -> bool:
    """Whether the rack in which a partition is read matters, with the members in these racks.

    It does not matter if no member is in the rack of any replica, or if all partitions are in all
    racks.
    """
    partitions = list(partitions)
    racks = frozenset[str]().union(*partitions)
    return not racks.isdisjoint(members) and any(each != racks for each in partitions)
