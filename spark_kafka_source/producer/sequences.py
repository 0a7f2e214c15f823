"""The numbers by which a partition's leader recognizes a duplicate batch (KIP-98, KIP-360)."""

from typing import NamedTuple
from uuid import UUID

from spark_kafka_source.topic_partition import TopicPartition

_COUNT = 1 << 31
MAX_EPOCH = (1 << 15) - 2
"""The last epoch that a producer chooses itself. After it, as in Java, it needs a new id."""


class ProducerId(NamedTuple):
    """A producer's id in the cluster, and its epoch. The newest epoch of an id is valid."""

    producer_id: int
    epoch: int

    def bumped(self) -> "ProducerId | None":
        """Return the id with the next epoch; None if it has no next one, and a new id is needed."""
        return None if self.epoch >= MAX_EPOCH else self._replace(epoch=self.epoch + 1)


NO_TOPIC_ID = UUID(int=0)
"""The id of a topic that brokers do not tell: very old topics have none (KIP-516)."""


class Place(NamedTuple):
    """A batch of a transaction in the log.

    By it readers' answers tell what became of the transaction.
    """

    topic_partition: TopicPartition
    offset: int
    """The offset of the batch's first record."""
    topic_id: UUID = NO_TOPIC_ID
    """The id of the topic, as the producer knew it."""

    def is_gone(self, topic_id: UUID) -> bool:
        """Whether the topic was deleted, and another one of its name has this id."""
        return len({self.topic_id, topic_id} - {NO_TOPIC_ID}) > 1


class PreparedTransaction(NamedTuple):
    """A transaction with all of its records. Any process that has this object can end it.

    Kafka's own producer calls it `PreparedTxnState` (KIP-939).
    """

    transactional_id: str
    producer: ProducerId
    partition_count: int = 0
    """The number of partitions that it has written to; 0 if that is not known."""
    place: Place | None = None
    """Its last batch that a leader acknowledged with an offset.

    None if no answer had an offset, as for duplicates that the broker no longer remembers.
    """
    topics: tuple[str, ...] = ()
    """The topics that it has written to, sorted."""


def next_sequence(sequence: int, record_count: int) -> int:
    """Return the sequence after a batch. 0 follows 2^31 - 1."""
    return (sequence + record_count) % _COUNT


def is_next(before: ProducerId, after: ProducerId) -> bool:
    """Whether nobody has asked for an epoch between these two."""
    return after == before.bumped()
