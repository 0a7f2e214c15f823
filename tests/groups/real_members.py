"""Members of real groups: ours, and confluent-kafka's, which shares no code with ours.

As a module it runs a member in its own process: `real_members servers group protocol topic`.
"""

import contextlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import Consumer

from spark_kafka_source.client import ClientConfig, KafkaClient
from spark_kafka_source.groups import (
    GroupConfig,
    GroupProtocol,
    Membership,
    RebalanceListener,
    new_membership,
)
from spark_kafka_source.groups.assignors import ASSIGNORS
from spark_kafka_source.net import Deadline, readable, run
from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.topic_partition import TopicPartition
from tests.groups.members import Told

PATIENCE_MS = 60_000
SESSION_MS = 6_000
"""A short session, for a test that waits for its end. With others a member that is slow stays."""


class Ours:
    """Our member. `protocol` is an assignor's name, or `consumer` for KIP-848."""

    def __init__(
        self,
        servers: str,
        group_id: str,
        protocol: str,
        topic: str,
        *,
        listener: RebalanceListener | None = None,
        **config: Any,
    ) -> None:
        self.told = Told()
        listener = listener or self.told
        settings = Settings({"kafka.bootstrap.servers": servers})
        client = KafkaClient(ClientConfig.from_settings(settings))
        times = {"heartbeat_interval_ms": 300}
        if protocol == "consumer":
            config["group_protocol"] = GroupProtocol.CONSUMER
        assignors = [ASSIGNORS[protocol]()] if protocol in ASSIGNORS else []
        group = GroupConfig(group_id=group_id, **times | config)
        self.membership = new_membership(client, group, listener, assignors)
        self.membership.subscribe([topic])

    def poll(self) -> None:
        run(self.membership.poll())

    def owned(self) -> set[TopicPartition]:
        return set(self.membership.assignment)

    def close(self) -> None:
        run(self.membership.close(Deadline.after_ms(10_000)))


class Theirs:
    """A confluent-kafka member."""

    def __init__(self, servers: str, group_id: str, protocol: str, topic: str) -> None:
        classic = {
            "partition.assignment.strategy": protocol,
            "heartbeat.interval.ms": 300,
        }
        by_protocol = {"group.protocol": "consumer"} if protocol == "consumer" else classic
        self._consumer = Consumer(
            {"bootstrap.servers": servers, "group.id": group_id} | by_protocol
        )
        self._consumer.subscribe([topic])

    def poll(self) -> None:
        self._consumer.poll(0)

    def owned(self) -> set[TopicPartition]:
        return {TopicPartition(each.topic, each.partition) for each in self._consumer.assignment()}

    def close(self) -> None:
        self._consumer.close()


def settle(members: Sequence[Ours | Theirs], done: Callable[[], bool]) -> None:
    """Poll all members in turn until `done` holds."""
    deadline = Deadline.after_ms(PATIENCE_MS)
    waited_for: list[Membership] = [each.membership for each in members if isinstance(each, Ours)]
    while not done():
        assert not deadline.expired, [each.owned() for each in members]
        for each in members:
            each.poll()
        readable(waited_for, deadline.within_ms(50))


def divided(members: Sequence[Ours | Theirs], partitions: int) -> Callable[[], bool]:
    """Return a check that the members own all partitions, evenly, and none twice."""

    def done() -> bool:
        owned = [each.owned() for each in members]
        sizes = [len(each) for each in owned]
        return len(set().union(*owned)) == sum(sizes) == partitions and max(sizes) - min(sizes) <= 1

    return done


if __name__ == "__main__":
    member = Ours(*sys.argv[1:5], session_timeout_ms=SESSION_MS)
    with contextlib.closing(member):
        settle([member], lambda: bool(member.owned()))
        print("owns", flush=True)
        settle([member], lambda: False)
