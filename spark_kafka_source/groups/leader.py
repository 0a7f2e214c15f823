"""What the member does that the coordinator chose to lead: it divides what all of them read."""

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
from spark_kafka_source.protocol import JoinGroupResponse, SyncGroupRequestAssignment
from spark_kafka_source.topic_partition import TopicPartition

LONGEST_LOOKUP_MS = 10_000
"""Of topics, which may be those of other members."""

# It may move what a member claims that was away for a generation: such a claim is void.
_CHECKS_CLAIMS = CooperativeStickyAssignor().name


def divide(
    response: JoinGroupResponse, assignor: Assignor, topics_of: TopicsOf, *, is_cooperative: bool
) -> tuple[Cluster, list[SyncGroupRequestAssignment]]:
    """What there is to divide, and what each member gets; nothing where nothing is to change.

    Raises `ProtocolError` for what members say that cannot be read, `LocalError` for an assignor
    that does what it may not, and what it or a lookup of topics raises.
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
    """In a cooperative group nobody may get what another still owns (KIP-429)."""
    given_up, added = set[TopicPartition](), set[TopicPartition]()
    for member_id, subscription in subscriptions.items():
        partitions = assigned[member_id].partitions if member_id in assigned else ()
        given_up.update(set(subscription.owned) - set(partitions))
        added.update(set(partitions) - set(subscription.owned))
    if given_up & added:
        moved = ", ".join(map(str, sorted(given_up & added)))
        raise LocalError(
            f"assignor {name!r} is cooperative, but gave to one member what another still owns: "
            f"{moved}; that must wait for the rebalance after this one"
        )


def changed_topics(before: Cluster, now: Cluster, *, by_rack: bool) -> list[str]:
    """Topics that have other partitions than before; by rack, also those whose replicas moved."""
    return sorted(
        topic
        for topic, found in before.items()
        if len(found) != len(now.get(topic, ()))
        or (by_rack and list(found) != list(now.get(topic, ())))
    )
