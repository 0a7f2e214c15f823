"""The roles of brokers in a cluster, and the committed offsets of a group."""

import re
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Self

from confluent_kafka import OFFSET_INVALID, Consumer, ElectionType, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # though it is documented

from spark_kafka_source.testing import LocalKafka
from tools.reliability.deaf.diary import Where
from tools.traffic import wait_until

_OFFSETS = "__consumer_offsets"
_ASK_SECONDS = 30
_LOOK_SECONDS = 5.0


def active_controller(kafka: LocalKafka) -> int:
    """Return the broker that leads the quorum of controllers."""
    said = kafka.tool("metadata-quorum", "describe", "--status")
    found = re.search(r"LeaderId:\s+(\d+)", said)
    assert found, said
    return int(found[1])


def _admin(kafka: LocalKafka) -> AdminClient:
    return AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})


def create_topic(kafka: LocalKafka, name: str, replicas: Sequence[Sequence[int]]) -> None:
    """Create a topic with a partition for each list of replicas. The first replica leads.

    An acknowledged record is on all in-sync replicas, which may be only one.
    """
    assigned = [list(each) for each in replicas]
    topic = NewTopic(
        name, len(assigned), replica_assignment=assigned, config={"min.insync.replicas": "1"}
    )
    client = _admin(kafka)
    client.create_topics([topic], operation_timeout=_ASK_SECONDS)[name].result()


def create_topic_of_offsets(kafka: LocalKafka) -> None:
    """Make the brokers create the topic of committed offsets, and wait for it."""
    with Committed(kafka, "first-of-all") as committed:
        wait_until(lambda: committed.reaches({(_OFFSETS, 0): OFFSET_INVALID}))


def elect_preferred_leaders(kafka: LocalKafka) -> None:
    """Make the first replica of each partition its leader."""
    client = _admin(kafka)  # The election would end with the client, so the client has a name.
    client.elect_leaders(ElectionType.PREFERRED, None).result()


def group_at(kafka: LocalKafka, node_id: int, prefix: str) -> str:
    """Return the name of a group that this broker coordinates.

    The coordinator leads the group's partition of committed offsets.
    """
    led: set[int] = set()
    partitions = 0

    def leads() -> bool:
        nonlocal partitions
        elect_preferred_leaders(kafka)  # A broker that was stopped is not in sync at once.
        found = _admin(kafka).list_topics(_OFFSETS, _ASK_SECONDS).topics[_OFFSETS].partitions
        partitions = len(found)
        led.update(each.id for each in found.values() if each.leader == node_id)
        return bool(led)

    wait_until(leads)
    names = (f"{prefix}-{number}" for number in count())
    return next(each for each in names if abs(_java_hash(each)) % partitions in led)


def _java_hash(text: str) -> int:
    """Return Java's `String.hashCode`, which gives a group's partition."""
    found = 0
    for each in text.encode("utf-16-be")[1::2]:
        found = (31 * found + each) & 0xFFFFFFFF
    return found - (1 << 32) if found >> 31 else found


class Committed:
    """Committed offsets of a group, as confluent-kafka sees them from outside."""

    def __init__(self, kafka: LocalKafka, group_id: str) -> None:
        servers = kafka.bootstrap_servers
        self._consumer = Consumer(
            {"bootstrap.servers": servers, "group.id": group_id, "log_level": 0}
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def reaches(self, ends: Mapping[Where, int]) -> bool:
        """Whether all these partitions are committed up to these ends, or further."""
        places = [TopicPartition(*where) for where in ends]
        try:
            found = self._consumer.committed(places, _LOOK_SECONDS)
        except KafkaException:  # The group's coordinator is not known, or not ready.
            return False
        offsets = {(each.topic, each.partition): each.offset for each in found}
        return all(offsets[where] >= end for where, end in ends.items())
