"""The work of the group's leader: it divides the partitions, and watches the divided topics."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import chain

from spark_kafka_source.client.cluster import PartitionInfo
from spark_kafka_source.errors import LocalError, listed
from spark_kafka_source.groups.assignors import (
    Assignment,
    Assignor,
    Cluster,
    CooperativeStickyAssignor,
    Subscription,
)
from spark_kafka_source.groups.assignors.custom import check_user_data
from spark_kafka_source.groups.assignors.ownership import moving
from spark_kafka_source.groups.lookups import LONGEST_LOOKUP_MS, TopicsOf
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net import Deadline, NextTry
from spark_kafka_source.protocol.messages.membership import (
    JoinGroupResponse,
    SyncGroupRequestAssignment,
)
from spark_kafka_source.topic_partition import TopicPartition

logger = logger_of(__name__)

# A client may try again without a pause, but it must not look for a topic without one.
_LEAST_PAUSE_SECONDS = 0.05
_MOST_SHOWN = 5
# Kafka's cooperative assignor may move partitions that a member claims after it missed a
# generation. Such a claim is void, so the check below does not apply.
_CHECKS_CLAIMS = CooperativeStickyAssignor().name


async def divide(
    response: JoinGroupResponse, assignor: Assignor, topics_of: TopicsOf, *, is_cooperative: bool
) -> tuple[Cluster, list[SyncGroupRequestAssignment]]:
    """Return the topics to watch with their partitions, and the assignments of the members.

    There are no assignments if the coordinator wants none (KIP-814). Raises `ProtocolError` for
    member metadata that cannot be read, `LocalError` for an assignor that gives what it may not,
    and the errors of the assignor and of the lookup of topics.
    """
    subscriptions = {
        member.member_id: Subscription.decode(member.metadata, member.group_instance_id)
        for member in response.members
    }
    topics = {topic for subscription in subscriptions.values() for topic in subscription.topics}
    cluster = await topics_of(topics, Deadline.after_ms(LONGEST_LOOKUP_MS))
    watched = {topic: cluster.get(topic, ()) for topic in topics}
    if response.skip_assignment:
        return watched, []
    assigned = assignor.assign(cluster, subscriptions)
    _check_kinds(assignor.name, subscriptions, assigned)
    _check_partitions(assignor.name, cluster, assigned)
    if is_cooperative and assignor.name != _CHECKS_CLAIMS:
        _check_nothing_moves(assignor.name, subscriptions, assigned)
    _warn_of_unassigned(assignor.name, cluster, subscriptions, assigned)
    return watched, [
        SyncGroupRequestAssignment(member_id, assignment.encode())
        for member_id, assignment in assigned.items()
    ]


def _check_kinds(
    name: str, subscriptions: Mapping[str, Subscription], assigned: Mapping[str, Assignment]
) -> None:
    """Check what an assignor returned: a user may have written it."""
    if not isinstance(assigned, Mapping):
        raise LocalError(
            f"assignor {name!r} returned a {type(assigned).__name__}: return a dict, with an "
            "Assignment for each member id"
        )
    for member_id, assignment in assigned.items():
        if member_id not in subscriptions:
            raise LocalError(
                f"assignor {name!r} returned an assignment for {member_id!r}, which is no member's "
                "id: the keys of `subscriptions` are"
            )
        if not isinstance(assignment, Assignment):
            raise LocalError(
                f"assignor {name!r} returned a {type(assignment).__name__} for member "
                f"{member_id!r}: return an Assignment, as "
                "Assignment((TopicPartition('events', 0),))"
            )
        check_user_data(name, assignment.user_data)


def _check_partitions(name: str, cluster: Cluster, assigned: Mapping[str, Assignment]) -> None:
    """Check that the partitions exist, and that no two members get the same."""
    given = Counter(
        chain.from_iterable(set(assignment.partitions) for assignment in assigned.values())
    )
    existing = set[TopicPartition]().union(*cluster.values())
    if unknown := given.keys() - existing:
        raise LocalError(
            f"assignor {name!r} gave partitions that do not exist: {_listed(unknown)}; give those "
            "of `cluster` alone"
        )
    if twice := [partition for partition, count in given.items() if count > 1]:
        raise LocalError(
            f"assignor {name!r} gave partitions to more than one member: {_listed(twice)}; a "
            "partition has one reader in a group"
        )


def _warn_of_unassigned(
    name: str,
    cluster: Cluster,
    subscriptions: Mapping[str, Subscription],
    assigned: Mapping[str, Assignment],
) -> None:
    """Warn of partitions that no member is to read, as Java's leader does of topics.

    A partition that a cooperative member still owns is left out: it may be about to move.
    """
    left = set[TopicPartition]().union(*cluster.values())
    left.difference_update(*(assignment.partitions for assignment in assigned.values()))
    left.difference_update(*(subscription.owned for subscription in subscriptions.values()))
    if left:
        logger.warning(
            "Assignor %r gave %d partitions of subscribed topics to no member, so that nobody reads"
            " them: %s",
            name,
            len(left),
            _listed(left),
        )


def _listed(partitions: Collection[TopicPartition]) -> str:
    # An assignor may have made up anything, also what cannot be sorted.
    return listed(sorted(map(str, partitions)), _MOST_SHOWN)


def _check_nothing_moves(
    name: str, subscriptions: Mapping[str, Subscription], assigned: Mapping[str, Assignment]
) -> None:
    """Check that no cooperative member gets a partition that another still owns (KIP-429)."""
    partitions = {member: assignment.partitions for member, assignment in assigned.items()}
    if moved := ", ".join(map(str, sorted(moving(subscriptions, partitions)))):
        raise LocalError(
            f"assignor {name!r} is cooperative, but it gave partitions to one member that another "
            f"still owns: {moved}; these must wait for the rebalance after this one"
        )


class TopicWatch:
    """The times at which the leader asks for the metadata of its topics again, to see changes.

    It asks for all topics once `metadata.max.age.ms` have passed. A missing topic may be created
    at any time, so it asks for missing ones more often, after pauses that grow as after failed
    tries. Java's leader asks as often.
    """

    def __init__(
        self,
        divided: Cluster,
        max_age_seconds: float,
        pause_seconds: Callable[[int], float],
        clock: Callable[[], float],
        *,
        by_rack: bool,
    ) -> None:
        """Watch `divided`, which has no partitions for a missing topic. See `changed_topics`."""
        self._divided = dict(divided)
        self._max_age_seconds = max_age_seconds
        self._clock = clock
        self._by_rack = by_rack
        self._all_at_seconds = 0.0
        self._missing_look = NextTry(pause_seconds, least_seconds=_LEAST_PAUSE_SECONDS, clock=clock)
        self._plan(looked_at_all=True)

    @property
    def due_seconds(self) -> float:
        """The time of the next look, on the clock."""
        if self._missing():
            return min(self._all_at_seconds, self._missing_look.at_seconds)
        return self._all_at_seconds

    def due_topics(self) -> Collection[str]:
        """Return the topics to ask for now, and plan the next look."""
        looks_at_all = self._all_at_seconds <= self._clock()
        due = self._divided.keys() if looks_at_all else self._missing()
        self._plan(looked_at_all=looks_at_all)
        return list(due)

    def look_now(self) -> None:
        """Make a look at all topics due."""
        self._all_at_seconds = self._clock()

    def changed(self, due: Collection[str], cluster: Cluster) -> list[str]:
        """Return which of the `due` topics have changed, and remember their new partitions."""
        now = {topic: cluster.get(topic, ()) for topic in due}
        before = {topic: self._divided[topic] for topic in due}
        self._divided.update(now)
        return changed_topics(before, now, by_rack=self._by_rack)

    def _missing(self) -> list[str]:
        return [topic for topic, partitions in self._divided.items() if not partitions]

    def _plan(self, *, looked_at_all: bool) -> None:
        if looked_at_all:
            self._all_at_seconds = self._clock() + self._max_age_seconds
        self._missing_look.failed()


def changed_topics(before: Cluster, now: Cluster, *, by_rack: bool) -> list[str]:
    """Return topics with a new number of partitions; `by_rack` adds those with moved replicas."""
    return sorted(
        topic
        for topic, partitions in before.items()
        if len(partitions) != len(now.get(topic, ()))
        or (by_rack and _racks(partitions) != _racks(now.get(topic, ())))
    )


def _racks(partitions: Iterable[PartitionInfo]) -> list[frozenset[str]]:
    return [partition.racks for partition in partitions]
