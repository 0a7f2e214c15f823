"""A producer's conversations with brokers, held to their ends in the test's thread."""

from collections.abc import Iterable, Mapping

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.groups import Member, OffsetAndMetadata
from spark_kafka_source.net import Conversations
from spark_kafka_source.producer.sequences import ProducerId
from spark_kafka_source.producer.transaction_coordinator import TransactionCoordinator
from spark_kafka_source.topic_partition import TopicPartition


def finish(conversations: Conversations) -> None:
    """Let all conversations go on to their ends."""
    while not conversations.is_idle:
        conversations.next_wait().block()
        conversations.step()


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
