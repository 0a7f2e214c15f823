"""The transactions of one producer: KIP-98, and KIP-360 for what goes on after an abort.

Its user begins and ends them, and waits for that. The producer's thread has the partitions added
that it is about to write to.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum

from spark_kafka_source.client import LOOKUP_MS, KafkaClient, Lookup, Lookups
from spark_kafka_source.errors import KafkaError, LocalError
from spark_kafka_source.groups import Member, OffsetAndMetadata
from spark_kafka_source.producer.accumulator import Accumulator, PartitionQueue
from spark_kafka_source.producer.config import ProducerConfig
from spark_kafka_source.producer.errors import ProducerFencedError, TransactionAbortableError
from spark_kafka_source.producer.leaders import is_lasting
from spark_kafka_source.producer.sequences import PreparedTransaction, ProducerId
from spark_kafka_source.producer.transaction_coordinator import TransactionCoordinator
from spark_kafka_source.topic_partition import TopicPartition


class TransactionStateError(LocalError):
    """A call that does not fit the state of the producer's transaction."""


class TransactionAbortedError(LocalError):
    """A record was not sent, since its transaction is aborted."""


class _State(Enum):
    """What may be called next."""

    NEW = "`init_transactions` was not called yet"
    READY = "no transaction is open"
    OPEN = "a transaction is open"
    FAILED = "the transaction has failed and must be aborted"
    COMMITTING = "a commit is not over: call `commit_transaction` again"
    ABORTING = "an abort is not over: call `abort_transaction` again"
    OVER = "the producer cannot be used any more"


class Transaction:
    """The transaction that is open, if any, and who the producer is: an `Identity`."""

    may_renumber = False
    next_try_seconds = 0.0

    def __init__(
        self, config: ProducerConfig, client: KafkaClient, accumulator: Accumulator
    ) -> None:
        """`client` is for this alone: its user's threads wait on it, one at a time."""
        self._config = config
        self._client = client
        self._name(config.transactional_id)
        self._accumulator = accumulator
        self._calling = threading.Lock()
        self._state = _State.NEW
        self._error: KafkaError | None = None
        self._producer: ProducerId | None = None
        self._added: set[TopicPartition] = set()
        self._asked: frozenset[TopicPartition] = frozenset()
        self._lookup: Lookup[None] | None = None
        self._has_begun = False
        """Whether the coordinator knows of it: one without a record is not ended there."""

    def _name(self, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self._coordinator = TransactionCoordinator(self._client, transactional_id)

    # -- from its user's threads -------------------------------------------------------------------

    def init(self) -> None:
        """Take the transactional id; who had it before is fenced, what was open is aborted."""
        with self._called(_State.NEW):
            timeout_ms = self._config.transaction_timeout_ms
            self._producer = self._coordinator.init_producer_id(
                timeout_ms, timeout_ms=self._config.max_block_ms
            )
            self._state = _State.READY

    def take(self, transactional_id: str, transaction_timeout_ms: int) -> None:
        """Go on under another transactional id, and begin a transaction."""
        with self._called(_State.NEW, _State.READY):
            self._name(transactional_id)
            self._producer = self._coordinator.init_producer_id(
                transaction_timeout_ms, timeout_ms=self._config.max_block_ms
            )
            self._begin()

    def prepare(self) -> PreparedTransaction | None:
        """Wait for all records, and leave the end to others; None where there is no record."""
        with self._called(_State.OPEN):
            self._accumulator.flush(None)
            if self._error is not None:
                raise self._error
            prepared = PreparedTransaction(self.transactional_id, self._current())
            self._state = _State.READY
            return prepared if self._has_begun else None

    def begin(self) -> None:
        """Begin a transaction; the brokers learn of it by its first record."""
        with self._called(_State.READY):
            self._begin()

    def _begin(self) -> None:
        self._added.clear()
        self._has_begun = False
        self._state = _State.OPEN

    def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], member: Member
    ) -> None:
        """Have a group's offsets committed with the transaction."""
        with self._called(_State.OPEN):
            producer, timeout_ms = self._current(), self._config.max_block_ms
            self._has_begun = True
            self._coordinator.add_offsets(producer, member.group_id, timeout_ms=timeout_ms)
            self._coordinator.commit_offsets(producer, member, offsets, timeout_ms=timeout_ms)

    def commit(self) -> None:
        """Wait for all records, and end the transaction with them."""
        with self._called(_State.OPEN, _State.FAILED, _State.COMMITTING):
            self._accumulator.flush(None)
            if self._error is not None:
                raise self._error
            self._state = _State.COMMITTING
            if self._has_begun:
                self._end(commit=True)
            self._state = _State.READY

    def abort(self) -> None:
        """Drop what is not sent yet, wait for the rest, and end the transaction without them."""
        with self._called(_State.OPEN, _State.FAILED, _State.ABORTING):
            has_failed = self._state is not _State.OPEN
            self._error = self._error or TransactionAbortedError("its transaction is aborted")
            self._state = _State.ABORTING
            self._accumulator.flush(None)
            try:
                if self._has_begun:
                    self._end(commit=False)
            except ProducerFencedError:  # It may be this one's own, which was open for too long.
                has_failed = True
            if (
                has_failed
            ):  # The leaders may not know all sequences: those of a new epoch begin at 0.
                self._producer = self._coordinator.init_producer_id(
                    self._config.transaction_timeout_ms,
                    self._producer,
                    timeout_ms=self._config.max_block_ms,
                )
            self._error = None
            self._state = _State.READY

    def check_open(self) -> None:
        """Raise where a record cannot be sent now."""
        self._raise_if_over()
        if self._state is not _State.OPEN:
            raise TransactionStateError(f"a record cannot be sent: {self._state.value}") from (
                self._error
            )

    def _raise_if_over(self) -> None:
        """Say again what ended the producer, such as that it is fenced: aborting does not help."""
        if self._state is _State.OVER and self._error is not None:
            raise self._error

    @property
    def is_open(self) -> bool:
        """Whether one is open, or has failed and is not aborted yet."""
        return self._state in {_State.OPEN, _State.FAILED, _State.ABORTING}

    @contextmanager
    def _called(self, *states: _State) -> Iterator[None]:
        """Check that a call fits, and say what an error leaves of the transaction."""
        if not self._calling.acquire(blocking=False):
            raise TransactionStateError("another thread begins or ends a transaction just now")
        try:
            self._raise_if_over()
            if self._state not in states:
                raise TransactionStateError(self._state.value) from self._error
            yield
        except KafkaError as error:
            self._take(error)
            raise
        finally:
            self._calling.release()

    def _take(self, error: KafkaError) -> None:
        if isinstance(error, TransactionAbortableError) and self._state is _State.OPEN:
            self._fail(error)
        elif is_lasting(error) and not isinstance(error, LocalError) and self._error is not error:
            self._error, self._state = error, _State.OVER

    def _end(self, *, commit: bool) -> None:
        self._coordinator.end(self._current(), commit=commit, timeout_ms=self._config.max_block_ms)
        self._has_begun = False

    def _current(self) -> ProducerId:
        if self._producer is None:
            raise TransactionStateError(_State.NEW.value)
        return self._producer

    # -- from the producer's thread ----------------------------------------------------------------

    def step(self, lookups: Lookups, queues: Sequence[PartitionQueue]) -> None:
        """Have the partitions added that are about to be written to."""
        if self._lookup is not None and self._lookup.is_done:
            try:
                self._lookup.result()
                self._added |= self._asked
            except TransactionAbortableError as error:
                self._fail(error)
            except KafkaError as error:
                if is_lasting(error):
                    self._error, self._state = error, _State.OVER
            self._lookup = None
        wanted = frozenset(each.topic_partition for each in queues if not each.is_empty)
        wanted -= self._added
        if self._state is _State.OPEN and self._lookup is None and wanted:
            producer, transactional_id = self._current(), self.transactional_id
            self._asked, self._has_begun = wanted, True
            self._lookup = lookups.ask(
                lambda client: TransactionCoordinator(client, transactional_id).add_partitions(
                    producer, wanted, timeout_ms=LOOKUP_MS
                )
            )

    def refusal(self) -> KafkaError | None:
        """Return why the transaction's records are not sent any more, if so."""
        return self._error

    def may_send(self, topic_partition: TopicPartition) -> bool:
        """Whether the partition is in the transaction by now."""
        return topic_partition in self._added

    def producer_of(self, queue: PartitionQueue) -> ProducerId | None:
        """Return the producer; after an abort it may have a new epoch, with sequences from 0 on."""
        if queue.producer != self._producer:
            queue.producer, queue.next_sequence = self._producer, 0
        return queue.producer

    def renumber(self, queue: PartitionQueue) -> None:
        """Within a transaction no partition is renumbered: it fails."""

    def failed(self, error: KafkaError) -> None:
        """Take note that records were not written: the transaction can only be aborted."""
        if self._state is _State.OPEN:
            self._fail(error)

    def _fail(self, error: KafkaError) -> None:
        self._error, self._state = error, _State.FAILED
