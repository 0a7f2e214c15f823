"""The transactions of one producer: KIP-98, and KIP-360 for the new epoch after an abort.

The user's threads begin and end transactions, and wait for that. The producer's thread adds the
partitions that it is about to write to. The module is long because both use one state.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import NamedTuple, TypeVar

from spark_kafka_source.client import LOOKUP_MS, KafkaClient
from spark_kafka_source.errors import (
    BrokerError,
    KafkaError,
    KafkaTimeoutError,
    LocalError,
    UnsupportedVersionError,
)
from spark_kafka_source.groups import Member, OffsetAndMetadata
from spark_kafka_source.net import Conversation
from spark_kafka_source.producer.accumulator import Accumulator
from spark_kafka_source.producer.batch import PartitionQueue
from spark_kafka_source.producer.config import ProducerConfig
from spark_kafka_source.producer.delivery import NO_OFFSET
from spark_kafka_source.producer.errors import (
    TransactionAbortableError,
    TransactionAbortedError,
    TransactionStateError,
)
from spark_kafka_source.producer.generation import Generation
from spark_kafka_source.producer.identity import Identity
from spark_kafka_source.producer.sequences import (
    NO_TOPIC_ID,
    Place,
    PreparedTransaction,
    ProducerId,
)
from spark_kafka_source.producer.transaction_coordinator import TransactionCoordinator
from spark_kafka_source.protocol.messages.produce import ProduceRequest
from spark_kafka_source.topic_partition import TopicPartition

T = TypeVar("T")


class Beginning(NamedTuple):
    """The id and epoch of a transaction that begins without a question to the coordinator."""

    transactional_id: str
    producer: ProducerId
    generation: Generation = Generation.FIRST


class _State(Enum):
    """The state of a transaction; it says which calls may come next.

           init          begin          commit             all are written
        NEW ───▶ READY ────────▶ OPEN ────────▶ WAITING ───────────────────▶ COMMITTING ──▶ READY
                                  │ │              │                             │
                                  │ └──────────────┤ a record is not written     │ refused
                                  │ abort          ▼                             │
                                  │             FAILED ◀─────────────────────────┘
                                  ▼   abort        │
                               ABORTING ◀──────────┘
                                  │
                                  └──▶ READY

    With an id and epoch of the caller: `begin_at` leads from NEW, READY or FAILED to OPEN.
    `prepare` leads from OPEN through WAITING to NEW, and `abort` through ABORTING to NEW. Ctrl-C
    leads from WAITING back to OPEN. An error that lasts, such as fencing, leads to OVER.
    """

    NEW = "`init_transactions` was not called yet"
    READY = "no transaction is open"
    OPEN = "a transaction is open"
    WAITING = "the producer waits for the records of a transaction that is about to end"
    FAILED = "the transaction has failed and must be aborted"
    COMMITTING = "a commit is not over: call `commit_transaction` again"
    ABORTING = "an abort is not over: call `abort_transaction` again"
    OVER = "the producer cannot be used any more"


_WITH_RECORDS = frozenset({_State.OPEN, _State.WAITING})
_ENDED_OTHERWISE = "INVALID_TXN_STATE"


_NO_MEMBER = (
    "the consumer is in no generation of its group, so its positions cannot be committed;"
    " abort, and the members that get the partitions read the records again"
)


class Transaction(Identity):
    """The open transaction, if any, and the producer's id and epoch.

    The accumulator takes records only while a transaction is open.
    """

    def __init__(
        self,
        config: ProducerConfig,
        client: KafkaClient,
        senders_client: KafkaClient,
        accumulator: Accumulator,
    ) -> None:
        """`client` is for this object alone. One user thread at a time waits on it.

        `senders_client` is the one of the producer's thread.
        """
        self.transactional_id: str = config.transactional_id
        self._config = config
        self._client = client
        self._senders_client = senders_client
        self._coordinator = TransactionCoordinator(client, config.transactional_id)
        self._generation = Generation.FIRST
        self._is_given = False
        """Whether the caller chose the id and epoch, so that only the caller may choose others."""
        self._timeout_ms = config.transaction_timeout_ms
        self._accumulator = accumulator
        self._calling = threading.Lock()
        self._changing = threading.RLock()
        self._error: KafkaError | None = None
        self._producer: ProducerId | None = None
        self._added: set[TopicPartition] = set()
        self._place: Place | None = None
        """The last batch of the transaction that a leader acknowledged with an offset."""
        self._announced: frozenset[TopicPartition] = frozenset()
        self._wanted: frozenset[TopicPartition] = frozenset()
        self._no_request = threading.Event()
        self._no_request.set()
        self._has_begun = False
        """Whether the coordinator may know the transaction; without a record it does not."""
        self._has_gap = False
        """Whether leaders may miss sequences. Then an abort needs a new epoch: its begin at 0."""
        self._state = _State.NEW
        self._set_state(_State.NEW)

    # -- from the user's threads -------------------------------------------------------------------

    def init(self) -> None:
        """Take the transactional id: fence the earlier producer, abort its transaction."""
        with self._in_state(_State.NEW):
            self._producer = self._run(self._coordinator.init_producer_id, self._timeout_ms)
            self._is_given = False
            self._set_state(_State.READY)

    def begin_at(self, beginning: Beginning) -> None:
        """Begin a transaction with an id and epoch that the caller has, and ask nobody.

        A failed transaction stays open: its timeout ends it, or a search for open transactions.
        """
        with self._in_state(_State.NEW, _State.READY, _State.FAILED):
            self._accumulator.flush(None)
            self._wait_for_adding()
            self.transactional_id, self._producer = beginning.transactional_id, beginning.producer
            self._generation, self._is_given = beginning.generation, True
            self._coordinator = TransactionCoordinator(
                self._client, beginning.transactional_id, beginning.generation
            )
            self._error = None
            self._begin()

    def _run(self, talk: Callable[..., Conversation[T]], *args: object, **more: object) -> T:
        """Hold a conversation of a coordinator, for `max.block.ms` at most."""
        return self._client.run(talk(*args, **more, timeout_ms=self._config.max_block_ms))

    def prepare(self) -> PreparedTransaction | None:
        """Wait for all records, and leave the end to another process. None without a record."""
        with self._in_state(_State.OPEN):
            self._wait_for_records()
            topics = tuple(sorted({each.topic for each in self._added}))
            prepared = PreparedTransaction(
                self.transactional_id, self._current(), len(self._added), self._place, topics
            )
            self._become_idle()
            return prepared if self._has_begun else None

    def begin(self) -> None:
        """Begin a transaction. The coordinator learns of it by the first record."""
        with self._in_state(_State.READY):
            self._begin()

    def announce(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Add these partitions together with the first of them that has records to send.

        One request then adds all of them. Without this call, the caller still appends while the
        producer's thread finds records for one partition after another, and each partition costs
        a request.
        """
        self._announced |= frozenset(topic_partitions)

    def _begin(self) -> None:
        self._added.clear()
        self._announced = self._wanted = frozenset()
        self._has_begun = self._has_gap = False
        self._place = None  # No late answer sets it: each earlier batch has its outcome.
        self._set_state(_State.OPEN)

    def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], member: Member | None
    ) -> None:
        """Commit a group's offsets with the transaction."""
        with self._in_state(_State.OPEN):
            if member is None:
                raise TransactionStateError(_NO_MEMBER)
            producer = self._current()
            self._has_begun = True
            self._run(self._coordinator.add_offsets, producer, member.group_id)
            self._run(self._coordinator.commit_offsets, producer, member, offsets)

    def commit(self) -> None:
        """Wait for all records, and commit the transaction."""
        with self._in_state(_State.OPEN, _State.FAILED, _State.COMMITTING):
            if self._state is _State.FAILED and self._error is not None:
                raise self._error.with_traceback(None)
            if self._state is _State.OPEN:
                self._wait_for_records()
                self._set_state(_State.COMMITTING)
            if self._has_begun:
                self._end(commit=True)
            self._set_state(_State.READY)

    def _wait_for_records(self) -> None:
        """Raises the error of a record that was not written; then the transaction has failed."""
        self._set_state(_State.WAITING)
        try:
            self._accumulator.flush(None)
        except BaseException:  # Ctrl-C leaves the transaction open.
            self._set_state(_State.OPEN, _State.WAITING)
            raise
        if self._error is not None:
            raise self._error.with_traceback(None)

    def abort(self) -> None:
        """Drop the records that wait, wait for those in flight, and abort the transaction."""
        with self._in_state(_State.OPEN, _State.FAILED, _State.ABORTING):
            # If nothing has begun, do not ask for a new epoch: the broker would first abort a
            # transaction that a successor has open.
            self._has_gap = self._has_gap or (self._state is _State.FAILED and self._has_begun)
            self._error = self._error or TransactionAbortedError("its transaction is aborted")
            self._set_state(_State.ABORTING)
            self._accumulator.flush(None)
            self._wait_for_adding()
            if self._has_begun:
                self._end_aborted()
            # The epoch may be a guess, and the id's open transaction decided. A question for a new
            # epoch would abort that.
            if self._has_gap and not self._is_given:
                self._producer = self._run(
                    self._coordinator.init_producer_id, self._timeout_ms, self._producer
                )
            self._error = None
            self._become_idle()

    def _become_idle(self) -> None:
        """Have no transaction. The next one needs another given id, if the caller gives them."""
        self._set_state(_State.NEW if self._is_given else _State.READY)

    def _wait_for_adding(self) -> None:
        """Wait: partitions added after the end would begin the next transaction."""
        timeout_ms = self._config.max_block_ms
        if not self._no_request.wait(timeout_ms / 1000):
            found = f"no answer to AddPartitionsToTxn of {self.transactional_id!r}"
            raise KafkaTimeoutError(f"{found} within {timeout_ms} ms ('kafka.max.block.ms')")

    def _end_aborted(self) -> None:
        """Abort. If the transaction has ended already, ask for a new epoch.

        The answer tells whether another producer ended it: then the new epoch is refused. A
        producer that is fenced does not ask: the broker would first abort its successor's open
        transaction.
        """
        try:
            self._end(commit=False)
        except BrokerError as error:
            if error.error.name != _ENDED_OTHERWISE:
                raise
            self._has_begun, self._has_gap = False, True

    def check_open(self) -> None:
        """Raise if a record cannot be sent now."""
        self._raise_if_over()
        if self._state is not _State.OPEN:
            raise self._not_open() from self._error

    def _not_open(self) -> TransactionStateError:
        return TransactionStateError(f"a record cannot be sent: {self._state.value}")

    def _raise_if_over(self) -> None:
        """Raise again the error that ended the producer, such as fencing; an abort is no help."""
        if self._state is _State.OVER and self._error is not None:
            raise self._error.with_traceback(None)

    @contextmanager
    def _in_state(self, *states: _State) -> Iterator[None]:
        """Check that the state allows the call, and set the state after an error."""
        self._accumulator.refuse_callbacks()
        if not self._calling.acquire(blocking=False):
            raise TransactionStateError("another thread begins or ends a transaction just now")
        try:
            self._raise_if_over()
            if self._state not in states:
                raise TransactionStateError(self._state.value) from self._error
            yield
        except KafkaError as error:
            self._note_error(error, _State.OPEN, _State.COMMITTING)
            raise
        finally:
            self._calling.release()

    def _note_error(self, error: KafkaError, *states: _State) -> None:
        """Fail the transaction if it is in one of these states, or end the producer, or neither."""
        if isinstance(error, TransactionAbortableError):
            self._fail(error, *states)
        elif not (error.retriable or isinstance(error, LocalError) or self._error is error):
            with self._changing:
                self._error = error
                self._set_state(_State.OVER)

    def _end(self, *, commit: bool) -> None:
        self._producer = self._run(self._coordinator.end, self._current(), commit=commit)
        self._has_begun = False

    def _current(self) -> ProducerId:
        if self._producer is None:
            raise TransactionStateError(_State.NEW.value)
        return self._producer

    # -- from any thread ---------------------------------------------------------------------------

    def _set_state(self, state: _State, *before: _State) -> bool:
        """Change the state, if it is one of `before` or `before` is empty. Return if it changed."""
        with self._changing:
            if before and self._state not in before:
                return False
            self._state = state
            self._accumulator.hold(None if state is _State.OPEN else self._not_open())
            return True

    def _fail(self, error: KafkaError, *states: _State) -> None:
        """Allow only an abort, if the state is still one of these."""
        with self._changing:
            if self._set_state(_State.FAILED, *states):
                self._error = error

    # -- from the producer's thread ----------------------------------------------------------------

    def note_waiting(self, queues: Sequence[PartitionQueue]) -> None:
        """Note the partitions that are about to be written to."""
        self._wanted = frozenset(queue.topic_partition for queue in queues if not queue.is_empty)

    def ask(self) -> Conversation[bool] | None:
        """Add the wanted partitions, if any. From this call on, an abort waits for the answer."""
        with self._changing:
            new = self._wanted - self._added
            if not new or self._generation.begins_by_writing or self._state not in _WITH_RECORDS:
                return None
            self._no_request.clear()
            return self._add(new | (self._announced - self._added))

    async def _add(self, topic_partitions: frozenset[TopicPartition]) -> bool:
        """Return whether the partitions were added. After a refusal, none of them was."""
        coordinator = TransactionCoordinator(self._senders_client, self.transactional_id)
        try:
            await coordinator.add_partitions(
                self._current(), topic_partitions, timeout_ms=LOOKUP_MS
            )
        except KafkaError as error:
            self.last_error = error
            if error.retriable:  # The broker may have added them; the answer may be lost.
                self._has_begun = True
            if isinstance(error, UnsupportedVersionError):  # The broker has no such request.
                self._fail(error, *_WITH_RECORDS)
            self._note_error(error, *_WITH_RECORDS)
            return False
        else:
            self.last_error = None
            self._added |= topic_partitions
            self._has_begun = True
            return True
        finally:
            self._no_request.set()

    def refusal(self) -> KafkaError | None:
        """Return the error for which the transaction's records are not sent any more, or None."""
        return self._error

    def may_send(self, topic_partition: TopicPartition) -> bool:
        """Whether the partition has been added to the transaction, or is so by its first rows."""
        return self._generation.begins_by_writing or topic_partition in self._added

    @property
    def last_produce_version(self) -> int | None:
        """The last version of Produce in the transaction's generation."""
        return self._generation.max_version(ProduceRequest)

    def producer_of(self, queue: PartitionQueue) -> ProducerId | None:
        """Return the producer's id and epoch. A new epoch's sequences begin at 0."""
        if queue.producer != self._producer:
            queue.begin_sequences(self._producer)
            if self._generation.begins_by_writing:
                self._added.add(queue.topic_partition)
                self._has_begun = True
        return queue.producer

    def batch_written(self, topic_partition: TopicPartition, offset: int) -> None:
        """Note where the leader has the batch, if it tells."""
        if offset != NO_OFFSET:
            topic = self._senders_client.cluster.topics.get(topic_partition.topic)
            topic_id = NO_TOPIC_ID if topic is None else topic.topic_id
            self._place = Place(topic_partition, offset, topic_id)

    def failed(self, error: KafkaError, *, was_sent: bool) -> None:
        """Note that records were not written: only an abort can end the transaction."""
        self._has_gap = self._has_gap or was_sent
        self._fail(error, *_WITH_RECORDS)
