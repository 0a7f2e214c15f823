"""The data of a member for the leader when it joins, and the leader's assignment in return."""

from collections.abc import Iterable
from dataclasses import dataclass

from spark_kafka_source.groups.member import NO_GENERATION
from spark_kafka_source.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_versioned,
    encode_versioned,
)
from spark_kafka_source.topic_partition import TopicPartition, partitions_by_topic


@dataclass(frozen=True, slots=True)
class Subscription:
    """The topics and the partitions of a member: the metadata of JoinGroup.

    `owned` are the partitions that the member keeps while it joins, and `generation_id` is the
    generation in which it got them (KIP-429, KIP-792). `user_data` comes from its assignor.
    `rack_id` is the member's rack (KIP-881). `group_instance_id` (KIP-345) is not part of the
    bytes: the coordinator sends it beside them.
    """

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation_id: int = NO_GENERATION
    rack_id: str | None = None
    group_instance_id: str | None = None

    def encode(self) -> bytes:
        """Return its bytes in the newest version. Older members read the fields that they know."""
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
        """Decode a member's bytes, of any version. Raises `ProtocolError`."""
        message = decode_versioned(ConsumerProtocolSubscription, data)
        return cls(
            topics=tuple(dict.fromkeys(message.topics)),
            user_data=message.user_data,
            owned=partitions_of(
                (topic.topic, topic.partitions) for topic in message.owned_partitions
            ),
            generation_id=max(message.generation_id, NO_GENERATION),
            rack_id=message.rack_id or None,
            group_instance_id=group_instance_id,
        )


@dataclass(frozen=True, slots=True)
class Assignment:
    """The partitions of a member, in the assignor's order: the assignment of SyncGroup."""

    partitions: tuple[TopicPartition, ...]
    user_data: bytes | None = None

    def encode(self) -> bytes:
        """Return its bytes in the newest version."""
        assigned = [
            ConsumerProtocolAssignment.TopicPartition(topic, partitions)
            for topic, partitions in partitions_by_topic(self.partitions).items()
        ]
        return encode_versioned(ConsumerProtocolAssignment(assigned, self.user_data))

    @classmethod
    def decode(cls, data: bytes) -> "Assignment":
        """Decode the leader's bytes, of any version. Raises `ProtocolError`."""
        message = decode_versioned(ConsumerProtocolAssignment, data)
        partitions = partitions_of(
            (topic.topic, topic.partitions) for topic in message.assigned_partitions
        )
        return cls(partitions, message.user_data)


def partitions_of(topics: Iterable[tuple[str, Iterable[int]]]) -> tuple[TopicPartition, ...]:
    """Return the partitions of topics and numbers, each once."""
    pairs = (TopicPartition(topic, number) for topic, partitions in topics for number in partitions)
    return tuple(dict.fromkeys(pairs))
