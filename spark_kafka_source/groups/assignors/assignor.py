"""The interface of assignors. The leader's assignor divides the partitions of the group."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Protocol

from spark_kafka_source.client.cluster import PartitionInfo
from spark_kafka_source.groups.assignors.hash_order import in_hash_order
from spark_kafka_source.groups.assignors.subscription import Assignment, Subscription

Cluster = Mapping[str, Sequence[PartitionInfo]]
"""The partitions of each topic, in order, with their leaders, replicas and racks."""
TopicRacks = Mapping[str, Sequence[frozenset[str]]]
"""The racks of each partition of each topic: what Kafka's own assignors look at."""


class RebalanceProtocol(Enum):
    """The treatment of a member's partitions while the group rebalances (KIP-429)."""

    EAGER = "members give up all partitions before they join"
    COOPERATIVE = "members keep their partitions, and give up those that move afterwards"


class Assignor(Protocol):
    """An assignor, which divides the partitions among the members of a group.

        class Everything(Assignor):
            name = "everything-to-the-first"

            def assign(self, cluster, subscriptions):
                first = min(subscriptions)
                every = [each for topic in cluster for each in cluster[topic]]
                return {m: Assignment(tuple(every) if m == first else ()) for m in subscriptions}

        KafkaConsumer(..., assignors=[Everything()])

    A subclass writes `name` and `assign`. Each consumer has an object of its own. Only that of the
    leader is asked to `assign`, in the thread that talks to the coordinator. If it has a method
    `configure`, that gets the arguments of the consumer first.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Name in JoinGroup. The coordinator chooses an assignor that all members have."""

    @property
    def protocol(self) -> RebalanceProtocol:
        """The best protocol that the assignor supports; EAGER by default.

        An assignor that supports COOPERATIVE must support EAGER, too: the group uses EAGER as soon
        as another of its assignors supports nothing better.
        """
        return RebalanceProtocol.EAGER

    def user_data(self, topics: Sequence[str]) -> bytes | None:
        """Return bytes for the leader's assignor, which gets them as `Subscription.user_data`.

        The default is None.
        """
        return None

    @abstractmethod
    def assign(
        self, cluster: Cluster, subscriptions: Mapping[str, Subscription]
    ) -> Mapping[str, Assignment]:
        """Divide the partitions: return an assignment for each member, by its member id.

        `cluster` has the partitions of the topics of all members. Each is a `PartitionInfo`: a
        `TopicPartition` with its leader, replicas and racks. A topic that is not in it does not
        exist (yet). If a partition is to move, a COOPERATIVE assignor gives it to no member at
        first. Its owner gives it up and joins again; then the assignor can give it to another
        member.

        A partition that is not in `cluster`, and one for two members, is a `LocalError`, which
        `poll` of the leader raises. The leader warns of partitions that no member gets.
        """

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:
        """Note this member's assignment in the group's generation `generation_id`.

        It is called in the thread that polls. The default does nothing.
        """
        return


def topics_to_assign(cluster: Cluster, subscriptions: Mapping[str, Subscription]) -> TopicRacks:
    """Return the racks of topics with subscribers, in the order in which Java visits the topics."""
    members = in_hash_order(subscriptions)
    topics = in_hash_order(topic for member in members for topic in subscriptions[member].topics)
    existing = (topic for topic in topics if cluster.get(topic))
    return {topic: [partition.racks for partition in cluster[topic]] for topic in existing}


def differ(partitions: Iterable[frozenset[str]], members: Iterable[str]) -> bool:
    """Whether the rack in which a partition is read matters, with the members in these racks.

    It does not matter if no member is in the rack of any replica, or if all partitions are in all
    racks.
    """
    partitions = list(partitions)
    racks = frozenset[str]().union(*partitions)
    return not racks.isdisjoint(members) and any(partition != racks for partition in partitions)
