"""A producer's identity on the brokers: anonymous, or idempotent. `Transaction` is the third.

https://cwiki.apache.org/confluence/display/KAFKA/KIP-98
"""

from collections.abc import Sequence

from spark_kafka_source.client import LOOKUP_MS, KafkaClient
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.net import Conversation
from spark_kafka_source.producer.batch import PartitionQueue
from spark_kafka_source.producer.sequences import ProducerId
from spark_kafka_source.producer.transaction_coordinator import new_producer_id
from spark_kafka_source.topic_partition import TopicPartition

_PRODUCE_BY_NAME = 12


class Identity:
    """A producer without sequences: a record that is sent again may be written twice.

    Subclasses have sequences. Only the producer's thread calls these methods.
    """

    transactional_id: str | None = None
    """The transactional id of the records, or None."""
    may_renumber = False
    """Whether a partition gets a new epoch if the leader has lost its sequences."""
    last_error: KafkaError | None = None
    """The error of the last request, or None."""

    @property
    def last_produce_version(self) -> int | None:
        """The last version of Produce with names of topics."""
        return _PRODUCE_BY_NAME

    def note_waiting(self, queues: Sequence[PartitionQueue]) -> None:
        """Note the partitions with batches, in each step of the producer's thread."""

    def ask(self) -> Conversation[bool] | None:
        """Ask for what these partitions need before a batch goes out; see `keep_asking`."""
        return None

    def refusal(self) -> KafkaError | None:
        """Return the error for which no batch can be sent at all, or None."""
        return None

    def may_send(self, topic_partition: TopicPartition) -> bool:
        """Whether batches of a partition can be sent now."""
        del topic_partition
        return True

    def producer_of(self, queue: PartitionQueue) -> ProducerId | None:
        """Return the id and epoch of a partition's next batch; None for no sequences."""
        del queue
        return None

    def batch_written(self, topic_partition: TopicPartition, offset: int) -> None:
        """Note that a leader has a batch. `offset` is its first record's, or `NO_OFFSET`."""

    def renumber(self, queue: PartitionQueue) -> None:
        """Give a partition a new epoch, with sequences from 0, if it `may_renumber`."""

    def failed(self, error: KafkaError, *, was_sent: bool) -> None:
        """Note that records were not written. If they were sent, they may have sequences."""


class Idempotent(Identity):
    """A producer whose batches have sequences, so that no record is written twice.

    If a leader has lost a partition's sequences, the partition gets the next epoch. The producer
    chooses that epoch itself (KIP-360). Other partitions keep theirs.
    """

    may_renumber = True

    def __init__(self, client: KafkaClient) -> None:
        """`client` is the one of the producer's thread."""
        self._client = client
        self._is_wanted = False
        self._producer: ProducerId | None = None
        self._refusal: KafkaError | None = None

    def note_waiting(self, queues: Sequence[PartitionQueue]) -> None:
        """Note whether there are records to write."""
        self._is_wanted = bool(queues)

    def ask(self) -> Conversation[bool] | None:
        """Ask for a producer id if there are records to write, and none to write with."""
        return self._learn_id() if self._is_wanted and self._producer is None else None

    async def _learn_id(self) -> bool:
        try:
            self._producer = await new_producer_id(self._client, timeout_ms=LOOKUP_MS)
        except KafkaError as error:
            self.last_error, self._refusal = error, None if error.retriable else error
        else:
            self.last_error = None
        return self._producer is not None

    def refusal(self) -> KafkaError | None:
        """Return the lasting error of the last request for a producer id, and forget it."""
        error, self._refusal = self._refusal, None
        return error

    def may_send(self, topic_partition: TopicPartition) -> bool:
        """Whether there is a producer id: then any partition can be written to."""
        del topic_partition
        return self._producer is not None

    def producer_of(self, queue: PartitionQueue) -> ProducerId | None:
        """Return the id and epoch with which the partition began."""
        if queue.producer is None:
            queue.begin_sequences(self._producer)
        return queue.producer

    def renumber(self, queue: PartitionQueue) -> None:
        """Give the partition the newest epoch, and a new one if it has that already."""
        if self._producer is not None and self._producer == queue.producer:
            self._producer = self._producer.bumped()
        queue.producer = None
