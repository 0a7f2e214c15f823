"""A producer's identity on the brokers: anonymous, idempotent, or with transactions.

https://cwiki.apache.org/confluence/display/KAFKA/KIP-98
"""

from collections.abc import Sequence
from typing import Protocol

from spark_kafka_source.client import LOOKUP_MS, KafkaClient, NextTry
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.net import Conversations, Running
from spark_kafka_source.producer.accumulator import PartitionQueue
from spark_kafka_source.producer.leaders import is_lasting
from spark_kafka_source.producer.sequences import ProducerId
from spark_kafka_source.producer.transaction_coordinator import new_producer_id
from spark_kafka_source.topic_partition import TopicPartition


class Identity(Protocol):
    """The sequences of a producer, for its thread. Only `failed` is called by other threads."""

    may_renumber: bool
    """Whether a partition gets a new epoch if the leader has lost its sequences."""

    @property
    def next_try_seconds(self) -> float | None:
        """The monotonic time in seconds of the next request of `step`, or None."""

    @property
    def transactional_id(self) -> str | None:
        """The transactional id of the records, or None."""

    def step(self, conversations: Conversations, queues: Sequence[PartitionQueue]) -> None:
        """Take answers and send requests that these partitions need before a batch goes out."""

    def refusal(self) -> KafkaError | None:
        """Return the error for which no batch can be sent at all, or None."""

    def trouble(self) -> KafkaError | None:
        """Return the error of the last request, or None."""

    def may_send(self, topic_partition: TopicPartition) -> bool:
        """Whether batches of a partition can be sent now."""

    def producer_of(self, queue: PartitionQueue) -> ProducerId | None:
        """Return the id and epoch of a partition's next batch; None for no sequences."""

    def renumber(self, queue: PartitionQueue) -> None:
        """Give a partition a new epoch, with sequences from 0."""

    def failed(self, error: KafkaError, *, was_sent: bool) -> None:
        """Note that records were not written. If they were sent, they may have sequences."""


class Anonymous:
    """A producer without sequences: a record that is sent again may be written twice."""

    transactional_id = None
    may_renumber = False
    next_try_seconds = None

    def step(self, conversations: Conversations, queues: Sequence[PartitionQueue]) -> None:
        """Do nothing: an anonymous producer needs no id."""

    def refusal(self) -> KafkaError | None:
        """Return None: nothing is refused."""
        return None

    def trouble(self) -> KafkaError | None:
        """Return None: nothing is requested."""
        return None

    def may_send(self, topic_partition: TopicPartition) -> bool:
        """Return True: any partition can be written to."""
        del topic_partition
        return True

    def producer_of(self, queue: PartitionQueue) -> ProducerId | None:
        """Return None: there are no sequences."""
        del queue
        return None

    def renumber(self, queue: PartitionQueue) -> None:
        """Do nothing: there are no sequences."""

    def failed(self, error: KafkaError, *, was_sent: bool) -> None:
        """Do nothing."""


class Idempotent:
    """A producer whose batches have sequences, so that no record is written twice.

    If a leader has lost a partition's sequences, the partition gets the next epoch. The producer
    chooses that epoch itself (KIP-360). Other partitions keep theirs.
    """

    transactional_id = None
    may_renumber = True

    def __init__(self, client: KafkaClient) -> None:
        """`client` is the one of the producer's thread."""
        self._client = client
        self.next_try_seconds: float | None = None
        self._next = NextTry(client.pause_seconds)
        self._producer: ProducerId | None = None
        self._lookup: Running[ProducerId] | None = None
        self._refusal: KafkaError | None = None
        self._trouble: KafkaError | None = None

    def step(self, conversations: Conversations, queues: Sequence[PartitionQueue]) -> None:
        """Ask for a producer id as soon as there are records to write."""
        self._refusal = None
        self.next_try_seconds = None
        if self._lookup is not None and self._lookup.is_done:
            self._take(self._lookup)
            self._lookup = None
        if self._producer is not None or self._lookup is not None or not queues:
            return
        if self._next.is_due:
            asked = new_producer_id(self._client, timeout_ms=LOOKUP_MS)
            self._lookup = conversations.begin(asked)
        else:
            self.next_try_seconds = self._next.at_seconds

    def _take(self, lookup: Running[ProducerId]) -> None:
        try:
            self._producer, self._trouble = lookup.result(), None
            self._next.succeeded()
        except KafkaError as error:
            self._refusal = error if is_lasting(error) else None
            self._trouble = error
            self._next.failed()

    def refusal(self) -> KafkaError | None:
        """Return the lasting error of the last request for a producer id; `step` clears it."""
        return self._refusal

    def trouble(self) -> KafkaError | None:
        """Return the error of the last request for a producer id, or None."""
        return self._trouble

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

    def failed(self, error: KafkaError, *, was_sent: bool) -> None:
        """Do nothing: the leader's next answer tells whether a sequence is missing."""
