"""Who a producer is to the brokers: nobody, an idempotent producer, or one with transactions.

https://cwiki.apache.org/confluence/display/KAFKA/KIP-98
"""

from collections.abc import Sequence
from functools import partial
from typing import Protocol

from spark_kafka_source.client import LOOKUP_MS, Lookup, Lookups, NextTry
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.producer.accumulator import PartitionQueue
from spark_kafka_source.producer.leaders import is_lasting
from spark_kafka_source.producer.sequences import ProducerId
from spark_kafka_source.producer.transaction_coordinator import new_producer_id
from spark_kafka_source.topic_partition import TopicPartition


class Identity(Protocol):
    """What the producer's thread asks about sequences. Only `failed` may come from others."""

    may_renumber: bool
    """Whether a partition goes on with a new epoch where the leader has lost its sequences."""

    @property
    def next_try_seconds(self) -> float | None:
        """When `step` has something to ask again, if it has."""

    @property
    def transactional_id(self) -> str | None:
        """The id whose transactions the records are in, if any."""

    def step(self, lookups: Lookups, queues: Sequence[PartitionQueue]) -> None:
        """Take and ask what is needed before these partitions can be written to."""

    def refusal(self) -> KafkaError | None:
        """Return why no batch can be sent at all, if so."""

    def trouble(self) -> KafkaError | None:
        """Return what went wrong the last time that something was asked, if it may heal."""

    def may_send(self, topic_partition: TopicPartition) -> bool:
        """Whether batches of a partition can be sent by now."""

    def producer_of(self, queue: PartitionQueue) -> ProducerId | None:
        """Return whose sequences the next batch of a partition has; None for no sequences."""

    def renumber(self, queue: PartitionQueue) -> None:
        """Have a partition go on with a new epoch, from sequence 0 on."""

    def failed(self, error: KafkaError, *, was_sent: bool) -> None:
        """Take note that records were not written; they may have sequences, if they were sent."""


class Anonymous:
    """A producer without sequences: what is sent again may be written twice."""

    transactional_id = None
    may_renumber = False
    next_try_seconds = None

    def step(self, lookups: Lookups, queues: Sequence[PartitionQueue]) -> None:
        """Nothing is needed."""

    def refusal(self) -> KafkaError | None:
        """Nothing is refused."""
        return None

    def trouble(self) -> KafkaError | None:
        """Nothing is asked."""
        return None

    def may_send(self, topic_partition: TopicPartition) -> bool:
        """Any partition can be written to."""
        del topic_partition
        return True

    def producer_of(self, queue: PartitionQueue) -> ProducerId | None:
        """There are no sequences."""
        del queue
        return None

    def renumber(self, queue: PartitionQueue) -> None:
        """There is nothing to renumber."""

    def failed(self, error: KafkaError, *, was_sent: bool) -> None:
        """Nothing follows from it."""


class Idempotent:
    """A producer whose batches have sequences, so that none is written twice.

    Where a leader has lost a partition's sequences, that partition goes on with the next epoch,
    which the producer gives itself (KIP-360). Other partitions keep theirs.
    """

    transactional_id = None
    may_renumber = True

    def __init__(self, next_try: NextTry) -> None:
        self.next_try_seconds: float | None = None
        self._next = next_try
        self._producer: ProducerId | None = None
        self._lookup: Lookup[ProducerId] | None = None
        self._refusal: KafkaError | None = None
        self._trouble: KafkaError | None = None

    def step(self, lookups: Lookups, queues: Sequence[PartitionQueue]) -> None:
        """Ask for a producer id as soon as there is something to write."""
        self._refusal = None
        self.next_try_seconds = None
        if self._lookup is not None and self._lookup.is_done:
            self._take(self._lookup)
            self._lookup = None
        if self._producer is not None or self._lookup is not None or not queues:
            return
        if self._next.is_due:
            self._lookup = lookups.ask(partial(new_producer_id, timeout_ms=LOOKUP_MS))
        else:
            self.next_try_seconds = self._next.at_seconds

    def _take(self, lookup: Lookup[ProducerId]) -> None:
        try:
            self._producer, self._trouble = lookup.result(), None
            self._next.succeeded()
        except KafkaError as error:
            self._refusal = error if is_lasting(error) else None
            self._trouble = error
            self._next.failed()

    def refusal(self) -> KafkaError | None:
        """Return why there is no producer id, once."""
        return self._refusal

    def trouble(self) -> KafkaError | None:
        """Return why there is no producer id yet."""
        return self._trouble

    def may_send(self, topic_partition: TopicPartition) -> bool:
        """Any partition can be written to, with a producer id."""
        del topic_partition
        return self._producer is not None

    def producer_of(self, queue: PartitionQueue) -> ProducerId | None:
        """Return that which the partition began with."""
        if queue.producer is None:
            queue.begin_sequences(self._producer)
        return queue.producer

    def renumber(self, queue: PartitionQueue) -> None:
        """Go on with the newest epoch that the partition has not had yet."""
        if self._producer is not None and self._producer == queue.producer:
            self._producer = self._producer.bumped()
        queue.producer = None

    def failed(self, error: KafkaError, *, was_sent: bool) -> None:
        """Nothing follows from it: the next batch tells whether its sequence is the next."""
