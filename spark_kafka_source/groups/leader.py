"""The work of the group's leader: it divides the partitions among all members."""

from collections.abc import Mapping

from spark_kafka_source.errors import LocalError
from spark_kafka_source.groups.assignors import (
    Assignment,
    Assignor,
    Cluster,
    CooperativeStickyAssignor,
    Subscription,
)
from spark_kafka_source.groups.lookups import TopicsOf
from spark_kafka_source.net import Deadline
from spark_kafka_source.protocol.messages.membership import (
    JoinGroupResponse,
    SyncGroupRequestAssignment,
)
from spark_kafka_source.topic_partition import TopicPartition

LONGEST_LOOKUP_MS = 10_000
"""Timeout for a lookup of topics, which may be topics of other members only."""

# Kafka's cooperative assignor may move partitions that a member claims after it missed a
# generation. Such a claim is void, so the check below does not apply.
_CHECKS_CLAIMS = CooperativeStickyAssignor().name


def divide(
    response: JoinGroupResponse, assignor: Assignor, topics_of: TopicsOf, *, is_cooperative: bool
) -> tuple[Cluster, list[SyncGroupRequestAssignment]]:
    """Return the topics to watch with their partitions, and the assignments of the members.

    There are no assignments if the coordinator wants none (KIP-814). Raises `ProtocolError` for
    member metadata that cannot be read, `LocalError` for an assignor that breaks the cooperative
    rules, and the errors of the assignor and of the lookup of topics.
    """
    subscriptions = {
        each.member_id: Subscription.decode(each.metadata, each.group_instance_id)
        for each in response.members
    }
    topics = {topic for each in subscriptions.values() for topic in each.topics}
    cluster = topics_of(topics, Deadline.after_ms(LONGEST_LOOKUP_MS))
    watched = {topic: cluster.get(topic, ()) for topic in topics}
    if response.skip_assignment:
        return watched, []
    assigned = assignor.assign(cluster, subscriptions)
    if is_cooperative and assignor.name != _CHECKS_CLAIMS:
        _check_nothing_moves(assignor.name, subscriptions, assigned)
    return watched, [
        SyncGroupRequestAssignment(member_id, each.encode()) for member_id, each in assigned.items()
    ]


def _check_nothing_moves(
    name: str, subscriptions: Mapping[str, Subscription], assigned: Mapping[str, Assignment]
) -> None:
    """Check that no cooperative member gets a partition that another still owns (KIP-429)."""
    given_up, added = set[TopicPartition](), set[TopicPartition]()
    for member_id, subscription in subscriptions.items():
        partitions = assigned[member_id].partitions if member_id in assigned else ()
        given_up.update(set(subscription.owned) - set(partitions))
        added.update(set(partitions) - set(subscription.owned))
    if given_up & added:
        moved = ", ".join(map(str, sorted(given_up & added)))
        raise LocalError(
            f"assignor {name!r} is cooperative, but it gave partitions to one member that another "
            f"still owns: {moved}; these must wait for the rebalance after this one"
        )


def changed_topics(before: Cluster, now: Cluster, *, by_rack: bool) -> list[str]:
    """Return topics with a new number of partitions; `by_rack` adds those with moved replicas."""
    return sorted(
        topic
        for topic, found in before.items()
        if len(found) != len(now.get(topic, ()))
        or (by_rack and list(found) != list(now.get(topic, ())))
    )
