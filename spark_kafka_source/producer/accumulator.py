"""The records that wait to be sent, by partition: what senders and the producer's thread share."""

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from spark_kafka_source.errors import KafkaError, LocalError
from spark_kafka_source.net import Deadline, Wakeup
from spark_kafka_source.producer.batch import OpenBatch, ProducerBatch, Row
from spark_kafka_source.producer.buffer_memory import BufferMemory
from spark_kafka_source.producer.config import ProducerConfig
from spark_kafka_source.producer.delivery import Delivery, Run
from spark_kafka_source.producer.sequences import ProducerId
from spark_kafka_source.records import Compression, EncodedBatch
from spark_kafka_source.topic_partition import TopicPartition


@dataclass(eq=False, slots=True)
class PartitionQueue:
    """The batches of one partition: those that wait, in order, and at the end one that is open.

    What is in flight, and the sequences, belong to the producer's thread.
    """

    topic_partition: TopicPartition
    waiting: deque[ProducerBatch] = field(default_factory=deque)
    open: OpenBatch | None = None
    in_flight: list[ProducerBatch] = field(default_factory=list)
    producer: ProducerId | None = None
    next_sequence: int = 0
    is_known: bool = False
    """Whether the leader has taken a batch with these sequences: before it takes any number."""

    def begin_sequences(self, producer: ProducerId | None) -> None:
        """Number the batches to come from 0 on, as this producer's."""
        self.producer, self.next_sequence, self.is_known = producer, 0, False

    @property
    def most_in_flight(self) -> float:
        """How many batches may be in flight so that none can be written before another.

        A leader that knows nothing of a producer takes the second batch where the first has failed.
        """
        return 1 if self.producer is not None and not self.is_known else math.inf

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits in it."""
        return self.open is None and not self.waiting


_Closed = tuple[OpenBatch, ProducerBatch]
"""What is to be encoded, and what for."""


class Accumulator:
    """Takes records from any thread, and gives batches to one."""

    def __init__(self, config: ProducerConfig) -> None:
        self.wakeup = Wakeup()
        """Woken where there may be something to send."""
        self.memory = BufferMemory(config.buffer_memory, self.wakeup.wake)
        self.emptied_by: threading.Thread | None = None
        """The producer's thread: where it waits for room or for records, nobody else sends them."""
        self.compression: Compression = config.compression
        self._batch_bytes = min(config.batch_size, config.buffer_memory)
        self._linger_seconds = config.linger_ms / 1000
        self._max_block_ms = config.max_block_ms
        # It may be taken twice by one thread: the garbage collector closes a forgotten producer.
        self._lock = threading.RLock()
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        self._unfinished: dict[int, Delivery] = {}
        self._flushing = 0
        self._refusal: KafkaError | None = None
        self._held: KafkaError | None = None

    # -- from any thread ---------------------------------------------------------------------------

    def append(self, topic_partition: TopicPartition, row: Row, size: int) -> tuple[Delivery, int]:
        """Add one record of at most `size` bytes; return its delivery, and its number there.

        Waits for room. Raises `BufferFullError`, and what it was given to `refuse` records with.
        """
        return self._put(topic_partition, size, lambda batch: batch.append(row, size))

    def append_columns(
        self, topic_partition: TopicPartition, columns: pa.RecordBatch, size: int
    ) -> Run:
        """Add rows that take at most `size` bytes, which is no more than `batch_bytes`.

        One row may take more. Waits for room, and raises as `append` does.
        """
        delivery, first = self._put(
            topic_partition, size, lambda batch: batch.append_columns(columns, size)
        )
        return Run(delivery, first, columns.num_rows)

    def append_batch(
        self, topic_partition: TopicPartition, size: int, encode: Callable[[], EncodedBatch]
    ) -> Run:
        """Add rows as a batch of their own, which `encode` makes; they take at most `size` bytes.

        Waits for room, and raises as `append` does. What is in the open batch goes out before it.
        """
        self._take_room(size)
        unused, closed = size, list[_Closed]()
        try:
            encoded = encode()
            batch = ProducerBatch.of(topic_partition, encoded)
            with self._lock:
                self._check_taken()
                queue = self._queue_of(topic_partition)
                if queue.open is not None:
                    self._close(queue, queue.open, closed)
                unused -= encoded.size
                queue.waiting.append(batch)
                self._unfinished[id(batch.delivery)] = batch.delivery
        except BaseException:
            self.memory.give_back(unused)
            self._mend(topic_partition, closed)
            raise
        self.memory.give_back(unused)
        self._encode(closed)
        return Run(batch.delivery, 0, batch.record_count)

    def _put(
        self, topic_partition: TopicPartition, size: int, append: Callable[[OpenBatch], int]
    ) -> tuple[Delivery, int]:
        """Return what `append` does, with the delivery of the batch that is open."""
        self._take_room(size)
        closed: list[_Closed] = []
        try:
            with self._lock:
                batch = self._open_for(topic_partition, size, closed)
                number = append(batch)
                if batch.size >= self._batch_bytes:
                    self._close(self._queues[topic_partition], batch, closed)
            if closed:
                self._encode(closed)
        except BaseException:  # As Ctrl-C, after which a user may go on.
            self._mend(topic_partition, closed)
            raise
        return batch.delivery, number

    def _mend(self, topic_partition: TopicPartition, closed: list[_Closed]) -> None:
        """Put in order what was interrupted; what is to be encoded the producer's thread does."""
        with self._lock:
            queue = self._queues.get(topic_partition)
            for opened, batch in closed:
                batch.left = opened
                if queue is not None and queue.open is opened and batch in queue.waiting:
                    queue.open = None
            if queue is not None:
                deliveries = [each.delivery for each in queue.waiting]
                deliveries += [] if queue.open is None else [queue.open.delivery]
                self._unfinished |= {id(each): each for each in deliveries}
        self.wakeup.wake()

    def _take_room(self, size: int) -> None:
        is_emptying = threading.current_thread() is self.emptied_by
        self.memory.take(size, Deadline.after_ms(0 if is_emptying else self._max_block_ms))

    @property
    def batch_bytes(self) -> int:
        """How large a batch becomes, before its compression."""
        return self._batch_bytes

    def room_in(self, topic_partition: TopicPartition) -> int:
        """Return how many bytes the open batch of a partition takes still."""
        queue = self._queues.get(topic_partition)
        batch = None if queue is None else queue.open
        return self._batch_bytes if batch is None else max(self._batch_bytes - batch.size, 0)

    def queued(self, topic_partition: TopicPartition) -> int:
        """Return how many batches of a partition wait."""
        queue = self._queues.get(topic_partition)
        return 0 if queue is None else len(queue.waiting)

    def unfinished(self) -> list[Delivery]:
        """Return all deliveries of which something is still to be known."""
        with self._lock:
            return list(self._unfinished.values())

    def flush(self, deadline: Deadline | None) -> bool:
        """Have all that is there sent at once, and wait for it; return whether it is over.

        Raises `LocalError` in a callback, which would wait for itself.
        """
        self.refuse_callbacks()
        with self._lock:
            self._flushing += 1
        self.wakeup.wake()
        try:
            return all(
                each.wait(None if deadline is None else deadline.remaining_seconds())
                for each in self.unfinished()
            )
        finally:
            with self._lock:
                self._flushing -= 1

    def refuse_callbacks(self) -> None:
        """Raise `LocalError` in the producer's thread: it cannot wait for what it does itself."""
        if threading.current_thread() is self.emptied_by:
            raise LocalError("a callback of the producer cannot wait for its records to be sent")

    def hold(self, error: KafkaError | None) -> None:
        """Take no records for this reason, until there is none any more."""
        with self._lock:
            self._held = error

    def refuse(self, error: KafkaError) -> None:
        """Take no more records, for this reason."""
        with self._lock:
            self._refusal = self._refusal or error
        self.memory.close(self._refusal)
        self.wakeup.wake()

    def _open_for(
        self, topic_partition: TopicPartition, size: int, closed: list[_Closed]
    ) -> OpenBatch:
        """Return the batch that takes so many bytes; add one that it is the successor of."""
        try:
            self._check_taken()
        except KafkaError:
            self.memory.give_back(size)
            raise
        queue = self._queue_of(topic_partition)
        if queue.open is not None and queue.open.size + size > self._batch_bytes:
            self._close(queue, queue.open, closed)
        if queue.open is None:
            queue.open = OpenBatch(topic_partition)
            self._unfinished[id(queue.open.delivery)] = queue.open.delivery
            self.wakeup.wake()
        return queue.open

    def _check_taken(self) -> None:
        """Raise why no records are taken just now, if so."""
        refusal = self._refusal or self._held
        if refusal is not None:
            raise refusal.with_traceback(None)

    def _queue_of(self, topic_partition: TopicPartition) -> PartitionQueue:
        queue = self._queues.get(topic_partition)
        if queue is None:
            queue = self._queues[topic_partition] = PartitionQueue(topic_partition)
        return queue

    @staticmethod
    def _close(queue: PartitionQueue, opened: OpenBatch, closed: list[_Closed]) -> None:
        """Let it take no more. It has its place among those that wait before it is encoded."""
        batch = opened.close()
        closed.append((opened, batch))
        queue.waiting.append(batch)
        queue.open = None

    def _encode(self, closed: list[_Closed]) -> None:
        """Encode batches that nobody else does, without the lock."""
        for opened, batch in closed:
            if batch.encoded is not None or batch.error is not None:
                continue
            try:
                encoded = opened.encode(self.compression, time.time_ns() // 1_000_000)
            except Exception as error:
                # Rows are checked before they are added, so that this is no row's fault.
                batch.error = LocalError(f"a batch of {batch.topic_partition}: {error!r}")
                batch.error.__cause__ = error
            else:
                with self._lock:
                    spared = max(batch.reserved_bytes - encoded.size, 0)
                    batch.reserved_bytes -= spared
                    batch.encoded = encoded
                self.memory.give_back(spared)
        self.wakeup.wake()

    # -- from the producer's thread ----------------------------------------------------------------

    def queues(self) -> list[PartitionQueue]:
        """Return those that have anything in them."""
        with self._lock:
            return [each for each in self._queues.values() if each.in_flight or not each.is_empty]

    def queue(self, topic_partition: TopicPartition) -> PartitionQueue:
        """Return that of a partition that was written to before."""
        return self._queues[topic_partition]

    def head(self, queue: PartitionQueue) -> ProducerBatch | None:
        """Return the batch that is to be sent next, if it takes no more records.

        One that has waited for `linger.ms` is closed and encoded here; so is any where somebody
        waits for room, or for all to be sent.
        """
        closed: list[_Closed] = []
        with self._lock:
            batch = queue.open
            if queue.waiting:
                head = queue.waiting[0]
                if head.left is not None:
                    closed.append((head.left, head))
                    head.left = None
            elif batch is not None and time.monotonic() >= self.ready_at_seconds(batch):
                self._close(queue, batch, closed)
                head = queue.waiting[0]
            else:
                return None
        if closed:
            self._encode(closed)
        return head if head.encoded is not None or head.error is not None else None

    def ready_at_seconds(self, batch: OpenBatch) -> float:
        """Return when an open batch is to be sent although it takes more, monotonic."""
        if self._flushing or self.memory.is_exhausted or self._refusal is not None:
            return 0.0
        return batch.created_at_seconds + self._linger_seconds

    def take(self, queue: PartitionQueue) -> ProducerBatch:
        """Take the batch that is next out of those that wait."""
        with self._lock:
            return queue.waiting.popleft()

    def batches(self, queue: PartitionQueue) -> list[ProducerBatch]:
        """Return those that take no more records: first what is in flight, then what waits."""
        with self._lock:  # Another thread may add one any time.
            return [*queue.in_flight, *queue.waiting]

    def put_back(self, queue: PartitionQueue, batches: list[ProducerBatch]) -> None:
        """Have batches sent again, in the order in which they were sent first."""
        with self._lock:
            sent = [each for each in queue.waiting if each.order]
            new = [each for each in queue.waiting if not each.order]
            queue.waiting = deque([*sorted([*sent, *batches]), *new])

    def drop(
        self, queue: PartitionQueue, is_wanted: Callable[[ProducerBatch], bool]
    ) -> list[ProducerBatch]:
        """Take those out that are not wanted any more, and return them; the open one stays."""
        with self._lock:
            dropped = [each for each in queue.waiting if not is_wanted(each)]
            if dropped:
                queue.waiting = deque(each for each in queue.waiting if is_wanted(each))
        return dropped

    def close_open(self) -> None:
        """Let no open batch take more records."""
        closed: list[_Closed] = []
        with self._lock:
            for each in self._queues.values():
                if each.open is not None:
                    self._close(each, each.open, closed)
        self._encode(closed)

    def release(self, batch: ProducerBatch) -> None:
        """Give back the room of a batch that is over."""
        with self._lock:
            freed, batch.reserved_bytes, batch.encoded = batch.reserved_bytes, 0, None
            if batch.delivery.is_done:
                self._unfinished.pop(id(batch.delivery), None)
        self.memory.give_back(freed)

    def raise_if_refused(self) -> None:
        """Raise why no more records are taken, if so."""
        if self._refusal is not None:
            raise self._refusal.with_traceback(None)
