"""What a member tells the leader when it joins, and what the leader tells it after."""

from collections.abc import Iterable
from dataclasses import dataclass

from spark_kafka_source.protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_versioned,
    encode_versioned,
)
from spark_kafka_source.topic_partition import TopicPartition

NO_GENERATION = -1
"""The generation of a member that has not been in the group yet."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a member wants, and what it has; the metadata of JoinGroup.

    `owned` are the partitions that it keeps while it joins, those that it got in `generation_id`
    (both KIP-429, KIP-792); `user_data` is its assignor's; `rack_id` where it runs (KIP-881).
    `group_instance_id` (KIP-345) is not part of the bytes: the coordinator tells it beside them.
    """

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation_id: int = NO_GENERATION
    rack_id: str | None = None
    group_instance_id: str | None = None

    def encode(self) -> bytes:
        """The bytes of it, in the newest version: older members read what they know."""
        partitions = partitions_by_topic(sorted(self.owned))
        owned = [
            ConsumerProtocolSubscription.TopicPartition(topic, partitions[topic])
            for topic in partitions
        ]
        return encode_versioned(
            ConsumerProtocolSubscription(
                topics=sorted(self.topics),
                user_data=self.user_data,
                owned_partitions=owned,
                generation_id=self.generation_id,
                rack_id=self.rack_id,
            )
        )

    @classmethod
    def decode(cls, data: bytes, group_instance_id: str | None = None) -> "Subscription":
        """What a member's bytes say, in whatever version. Raises `ProtocolError`."""
        found = decode_versioned(ConsumerProtocolSubscription, data)
        return cls(
            topics=tuple(dict.fromkeys(found.topics)),
            user_data=found.user_data,
            owned=partitions_of((each.topic, each.partitions) for each in found.owned_partitions),
            generation_id=max(found.generation_id, NO_GENERATION),
            rack_id=found.rack_id or None,
            group_instance_id=group_instance_id,
        )


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a member gets, in the order of the assignor; the assignment of SyncGroup."""

    partitions: tuple[TopicPartition, ...]
    user_data: bytes | None = None

    def encode(self) -> bytes:
        """The bytes of it, in the newest version."""
        assigned = [
            ConsumerProtocolAssignment.TopicPartition(topic, partitions)
            for topic, partitions in partitions_by_topic(self.partitions).items()
        ]
        return encode_versioned(ConsumerProtocolAssignment(assigned, self.user_data))

    @classmethod
    def decode(cls, data: bytes) -> "Assignment":
        """What the leader's bytes say, in whatever version. Raises `ProtocolError`."""
        found = decode_versioned(ConsumerProtocolAssignment, data)
        partitions = partitions_of(
            (each.topic, each.partitions) for each in found.assigned_partitions
        )
        return cls(partitions, found.user_data)


def partitions_by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """The numbers of the partitions, by topic; all in the order in which they come."""
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found


def partitions_of(topics: Iterable[tuple[str, Iterable[int]]]) -> tuple[TopicPartition, ...]:
    """The partitions of topics and their numbers, each once."""
    pairs = (TopicPartition(topic, each) for topic, partitions in topics for each in partitions)
    return tuple(dict.fromkeys(pairs))
