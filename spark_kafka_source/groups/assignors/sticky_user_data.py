"""User data of the sticky assignors, in the format of Kafka's own."""

from collections.abc import Iterable
from dataclasses import dataclass

from spark_kafka_source.errors import ProtocolError
from spark_kafka_source.groups.assignors.hash_order import in_hash_order_computed
from spark_kafka_source.groups.assignors.ownership import Claim
from spark_kafka_source.groups.assignors.subscription import Subscription, partitions_of
from spark_kafka_source.groups.member import NO_GENERATION
from spark_kafka_source.protocol import decode_prefix, encode
from spark_kafka_source.protocol.declaration import Message, array, wire
from spark_kafka_source.protocol.wire import INT32, STRING
from spark_kafka_source.topic_partition import TopicPartition, partitions_by_topic


@dataclass(slots=True)
class TopicAssignment:
    """The partitions of one topic."""

    topic: str = wire(STRING, "0+")
    partitions: list[int] = wire(array(INT32), "0+")


@dataclass(slots=True)
class StickyUserData(Message):
    """The earlier partitions of a member of `sticky`. The bytes do not begin with a version."""

    VERSIONS, FLEXIBLE = "0-1", "none"
    previous_assignment: list[TopicAssignment] = wire(array(TopicAssignment), "0+")
    generation: int = wire(INT32, "1+", default=NO_GENERATION)


@dataclass(slots=True)
class CooperativeStickyUserData(Message):
    """The generation since which a member of `cooperative-sticky` owns its partitions."""

    VERSIONS, FLEXIBLE = "0", "none"
    generation: int = wire(INT32, "0+", default=NO_GENERATION)


def sticky_user_data(owned: Iterable[TopicPartition], generation_id: int) -> bytes:
    """Return the user data of a member of `sticky`."""
    partitions = partitions_by_topic(owned)
    topics = in_hash_order_computed(partitions)
    previous = [TopicAssignment(topic, partitions[topic]) for topic in topics]
    return encode(StickyUserData(previous, generation_id), 1)


def previous_claim(subscription: Subscription) -> Claim:
    """Return the claim in the user data of a member of `sticky`; empty if it cannot be read.

    The member has given up its partitions by now, so the subscription's own fields do not count.
    """
    data = subscription.user_data or b""
    for version in (1, 0):
        try:
            user_data, _ = decode_prefix(StickyUserData, version, data)
        except ProtocolError:
            continue
        previous = ((topic.topic, topic.partitions) for topic in user_data.previous_assignment)
        return Claim(partitions_of(previous), max(user_data.generation, NO_GENERATION))
    return Claim((), NO_GENERATION)


def cooperative_user_data(generation_id: int) -> bytes:
    """Return the user data of a member of `cooperative-sticky`."""
    return encode(CooperativeStickyUserData(generation_id), 0)


def owned_claim(subscription: Subscription) -> Claim:
    """Return the claim of a member of `cooperative-sticky`.

    Before Kafka 3.2 the generation is in the user data, not in the subscription's own field.
    """
    generation_id = subscription.generation_id
    if generation_id == NO_GENERATION and subscription.user_data is not None:
        try:
            user_data, _ = decode_prefix(CooperativeStickyUserData, 0, subscription.user_data)
        except ProtocolError:
            return Claim(subscription.owned, NO_GENERATION)
        generation_id = max(user_data.generation, NO_GENERATION)
    return Claim(subscription.owned, generation_id)
