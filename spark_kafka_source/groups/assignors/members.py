"""The order of members in which assignors give them partitions."""

from collections.abc import Iterable, Mapping

from spark_kafka_source.groups.assignors.hash_order import in_hash_order, sort_key
from spark_kafka_source.groups.assignors.subscription import Subscription


def lasting_order(subscriptions: Mapping[str, Subscription]) -> list[str]:
    """Return static members by instance id, which outlives them (KIP-345), then others by id."""

    def place(member: str) -> tuple[bool, bytes]:
        instance = subscriptions[member].group_instance_id
        return instance is None, sort_key(member if instance is None else instance)

    return sorted(in_hash_order(subscriptions), key=place)


def subscribers(
    members: Iterable[str], subscriptions: Mapping[str, Subscription]
) -> dict[str, list[str]]:
    """Return the subscribers of each topic, in the order of `members`."""
    by_topic: dict[str, list[str]] = {}
    for member in members:
        for topic in subscriptions[member].topics:
            by_topic.setdefault(topic, []).append(member)
    return by_topic
