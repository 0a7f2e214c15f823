"""Earlier owners of partitions: what members claim, and which claims hold."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from spark_kafka_source.groups.assignors.assignor import TopicRacks
from spark_kafka_source.groups.assignors.hash_order import in_hash_order
from spark_kafka_source.groups.assignors.subscription import Subscription
from spark_kafka_source.topic_partition import TopicPartition

Partitions = dict[TopicPartition, None]
"""Partitions, each once, in the order in which they came."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The partitions that a member claims to have owned, and the generation of that."""

    partitions: Sequence[TopicPartition]
    generation_id: int


@dataclass(frozen=True, slots=True)
class Owned:
    """The partitions that each member owned. No two members have the same one.

    The members are in the order of Java's maps. `disputed` are the partitions that two members
    claim in the same generation: no member keeps them.
    """

    by_member: dict[str, Partitions]
    disputed: set[TopicPartition] = field(default_factory=set)


def settle(
    topics: TopicRacks, subscriptions: Mapping[str, Subscription], claims: Mapping[str, Claim]
) -> Owned:
    """Decide which claims hold: of two claims to a partition, the one of the newer generation."""
    owned = Owned({member: {} for member in in_hash_order(subscriptions)})
    claimant: dict[TopicPartition, str] = {}
    for member, partitions in owned.by_member.items():
        for each in claims[member].partitions:
            # The topic may have been created anew, with fewer partitions.
            if not 0 <= each.partition < len(topics.get(each.topic, ())):
                continue
            other = claimant.setdefault(each, member)
            if other == member:
                partitions[each] = None
                continue
            newer = claims[member].generation_id - subscriptions[other].generation_id
            if newer < 0:
                continue
            claimant[each] = member
            owned.by_member[other].pop(each, None)
            if newer:
                partitions[each] = None
            else:
                owned.disputed.add(each)
    return owned


def former_owners(
    subscriptions: Mapping[str, Subscription], claims: Mapping[str, Claim]
) -> dict[TopicPartition, str]:
    """Return the owner of each partition according to members that missed the newest generation."""
    newest = max(claim.generation_id for claim in claims.values())
    found: dict[TopicPartition, tuple[int, str]] = {}
    for member in in_hash_order(subscriptions):
        claim = claims[member]
        if claim.generation_id < newest:
            for each in claim.partitions:
                if each not in found or claim.generation_id > found[each][0]:
                    found[each] = claim.generation_id, member
    return {each: member for each, (_, member) in found.items()}


def moving(
    subscriptions: Mapping[str, Subscription], assigned: Mapping[str, Iterable[TopicPartition]]
) -> dict[TopicPartition, str]:
    """Return the partitions that move from one member to another, by new owner."""
    lost, gained = set[TopicPartition](), dict[TopicPartition, str]()
    for member, subscription in subscriptions.items():
        owned, partitions = set(subscription.owned), set(assigned.get(member, ()))
        lost |= owned - partitions
        gained.update(dict.fromkeys(partitions - owned, member))
    return {each: member for each, member in gained.items() if each in lost}
