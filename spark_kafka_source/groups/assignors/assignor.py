"""What an assignor is: the leader of a group asks one who shall read what."""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Protocol

from spark_kafka_source.groups.assignors.hash_order import in_hash_order
from spark_kafka_source.groups.assignors.subscription import Assignment, Subscription

Cluster = Mapping[str, Sequence[frozenset[str]]]
"""For each topic, for each of its partitions in order, the racks of all its replicas' brokers."""


class RebalanceProtocol(Enum):
    """What the members do with what they own while the group rebalances (KIP-429)."""

    EAGER = "all is given up before the member joins"
    COOPERATIVE = "all is kept, and what is to move is given up after"


class Assignor(Protocol):
    """Divides the partitions among the members of a group.

    Each member has one of its own, made without arguments; the leader's alone is asked to `assign`.
    A class that has these will do:

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
        """What it is called in JoinGroup; the coordinator takes one that all members have."""

    @property
    def protocol(self) -> RebalanceProtocol:
        """The best that it can do. One that can do COOPERATIVE must be able to do EAGER as well,
        which a group does as soon as one of its assignors can do no better."""

    def user_data(self, topics: Sequence[str]) -> bytes | None:
        """What this member's assignor has to say to the leader's, as `Subscription.user_data`."""

    def assign(
        self, cluster: Cluster, subscriptions: Mapping[str, Subscription]
    ) -> Mapping[str, Assignment]:
        """Who shall read what: an assignment for each member, by its member id.

        A topic that is not in `cluster` does not exist (yet). A COOPERATIVE one gives to nobody
        what a member owns who shall not have it any more: that member gives it up and joins again,
        and then it can be given to another.
        """

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:
        """This member has got its assignment, of the group's generation `generation_id`."""


def topics_to_assign(cluster: Cluster, subscriptions: Mapping[str, Subscription]) -> Cluster:
    """The part of the cluster that anybody subscribes to, members and topics in Java's order."""
    members = in_hash_order(subscriptions)
    topics = in_hash_order(topic for each in members for topic in subscriptions[each].topics)
    return {topic: cluster[topic] for topic in topics if cluster.get(topic)}


def differ(partitions: Iterable[frozenset[str]], members: Iterable[str]) -> bool:
    """Whether it matters in which rack a partition is read, where the members are in these racks.

    It does not where no member is in the rack of any replica, nor where all partitions are in all
    racks.
    """
    partitions = list(partitions)
    racks = frozenset[str]().union(*partitions)
    return not racks.isdisjoint(members) and any(each != racks for each in partitions)
