"""A producer's conversations with brokers, held to their ends in the test's thread."""

import math
from collections.abc import Iterable, Mapping

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.groups import Member, OffsetAndMetadata
from spark_kafka_source.net import Conversations, Deadline, Wait
from spark_kafka_source.producer.sequences import ProducerId
from spark_kafka_source.producer.transaction_coordinator import TransactionCoordinator
from spark_kafka_source.topic_partition import TopicPartition


def settle(conversations: Conversations) -> None:
    """Let all conversations go on until none of them waits for a broker."""
    conversations.step()
    while any(each.sockets or each.until.expired for each in _waits(conversations)):
        conversations.next_wait().block()
        conversations.step()


def is_pausing(conversations: Conversations) -> bool:
    """Whether a conversation waits for a moment, and for no broker."""
    return bool(_pauses(conversations))


def end_pauses(conversations: Conversations) -> None:
    """End all pauses."""
    for each in _pauses(conversations):
        object.__setattr__(each, "at_seconds", 0.0)


def _pauses(conversations: Conversations) -> list[Deadline]:
    waits = [each for each in _waits(conversations) if not each.sockets]
    return [each.until for each in waits if each.until.at_seconds < math.inf]


def _waits(conversations: Conversations) -> list[Wait]:
    return [each.wait for each in list(conversations._running) if not each.is_done]


class BlockingCoordinator:
    """`TransactionCoordinator` whose methods return once they have their answer."""

    def __init__(self, client: KafkaClient, transactional_id: str) -> None:
        self._run = client.run
        self._coordinator = TransactionCoordinator(client, transactional_id)

    def init_producer_id(
        self, transaction_timeout_ms: int, producer: ProducerId | None = None
    ) -> ProducerId:
        return self._run(self._coordinator.init_producer_id(transaction_timeout_ms, producer))

    def add_partitions(
        self,
        producer: ProducerId,
        topic_partitions: Iterable[TopicPartition],
        *,
        timeout_ms: int | None = None,
    ) -> None:
        self._run(
            self._coordinator.add_partitions(producer, topic_partitions, timeout_ms=timeout_ms)
        )

    def add_offsets(self, producer: ProducerId, group_id: str) -> None:
        self._run(self._coordinator.add_offsets(producer, group_id))

    def commit_offsets(
        self,
        producer: ProducerId,
        member: Member,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        *,
        timeout_ms: int | None = None,
    ) -> None:
        self._run(
            self._coordinator.commit_offsets(producer, member, offsets, timeout_ms=timeout_ms)
        )

    def end(self, producer: ProducerId, *, commit: bool, timeout_ms: int | None = None) -> None:
        self._run(self._coordinator.end(producer, commit=commit, timeout_ms=timeout_ms))
