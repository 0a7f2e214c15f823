"""Owners of partitions before a rebalance: the claims of members, and which claims hold."""

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
        for partition in claims[member].partitions:
            # The topic may have been created anew, with fewer partitions.
            if not 0 <= partition.partition < len(topics.get(partition.topic, ())):
                continue
            other = claimant.setdefault(partition, member)
            if other == member:
                partitions[partition] = None
                continue
            newer = claims[member].generation_id - subscriptions[other].generation_id
            if newer < 0:
                continue
            claimant[partition] = member
            owned.by_member[other].pop(partition, None)
            if newer:
                partitions[partition] = None
            else:
                owned.disputed.add(partition)
    return owned


def former_owners(
    subscriptions: Mapping[str, Subscription], claims: Mapping[str, Claim]
) -> dict[TopicPartition, str]:
    """Return the owner of each partition according to members that missed the newest generation."""
    newest = max(claim.generation_id for claim in claims.values())
    owners: dict[TopicPartition, tuple[int, str]] = {}
    for member in in_hash_order(subscriptions):
        claim = claims[member]
        if claim.generation_id < newest:
            for partition in claim.partitions:
                if partition not in owners or claim.generation_id > owners[partition][0]:
                    owners[partition] = claim.generation_id, member
    return {partition: member for partition, (_, member) in owners.items()}


def moving(
    subscriptions: Mapping[str, Subscription], assigned: Mapping[str, Iterable[TopicPartition]]
) -> dict[TopicPartition, str]:
    """Return the partitions that move from one member to another, by new owner."""
    lost, gained = set[TopicPartition](), dict[TopicPartition, str]()
    for member, subscription in subscriptions.items():
        owned, partitions = set(subscription.owned), set(assigned.get(member, ()))
        lost |= owned - partitions
        gained.update(dict.fromkeys(partitions - owned, member))
    return {partition: member for partition, member in gained.items() if partition in lost}
