"""The records that wait, by partition. Callers of `send` and the producer's thread share them."""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from spark_kafka_source.errors import KafkaError, LocalError
from spark_kafka_source.net import Deadline, Wakeup
from spark_kafka_source.producer.batch import OpenBatch, ProducerBatch
from spark_kafka_source.producer.batch_sizes import BatchSizes
from spark_kafka_source.producer.buffer_memory import BufferMemory
from spark_kafka_source.producer.config import ProducerConfig
from spark_kafka_source.producer.delivery import Delivery, Run
from spark_kafka_source.producer.sequences import ProducerId
from spark_kafka_source.records import Compression, EncodedBatch, Integers, Row
from spark_kafka_source.topic_partition import TopicPartition


@dataclass(eq=False, slots=True)
class PartitionQueue:
    """The batches of one partition: those that wait, in order, and last the open one.

    Only the producer's thread uses the batches in flight and the sequences.
    """

    topic_partition: TopicPartition
    waiting: deque[ProducerBatch] = field(default_factory=deque)
    open: OpenBatch | None = None
    in_flight: list[ProducerBatch] = field(default_factory=list)
    producer: ProducerId | None = None
    next_sequence: int = 0
    is_known: bool = False
    """Whether the leader has taken a batch with these sequences. Until then it takes any number."""

    def begin_sequences(self, producer: ProducerId | None) -> None:
        """Number the next batches from 0, for this producer."""
        self.producer, self.next_sequence, self.is_known = producer, 0, False

    @property
    def most_in_flight(self) -> float:
        """The most batches in flight with which the leader keeps their order.

        A leader that does not know the producer accepts the second batch after the first failed.
        """
        return 1 if self.producer is not None and not self.is_known else math.inf

    @property
    def is_empty(self) -> bool:
        """Whether no batch waits in the queue."""
        return self.open is None and not self.waiting


class Part(NamedTuple):
    """Rows for one partition."""

    topic_partition: TopicPartition
    rows: pa.RecordBatch | list[Row]
    size: int
    """The most bytes that the rows take."""
    places: Integers | range | None = None
    """The places of the rows in the sent columns; see `Run`."""


_Closed = tuple[OpenBatch, ProducerBatch]
"""The open batch to encode, and the closed batch that gets the result."""


class Accumulator:
    """Take records from any thread, and give batches to the producer's thread."""

    def __init__(self, config: ProducerConfig) -> None:
        self.wakeup = Wakeup()
        """Woken when there may be a batch to send."""
        self.memory = BufferMemory(config.buffer_memory, self.wakeup.wake)
        self.emptied_by: threading.Thread | None = None
        """The producer's thread. It must not wait for room or records: only it makes room."""
        self.batch_ended: Callable[[TopicPartition], object] = lambda _: None
        """Called when an open batch has waited for `linger.ms`: the next record without a key may
        go to another partition."""
        self.compression: Compression = config.compression
        self.sizes = BatchSizes(config)
        self._linger_seconds = config.linger_ms / 1000
        self._max_block_ms = config.max_block_ms
        # One thread may take it twice: the garbage collector closes a forgotten producer.
        self._lock = threading.RLock()
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        self._unfinished: dict[int, Delivery] = {}
        self._flushing = 0
        self._refusal: KafkaError | None = None
        self._held: KafkaError | None = None

    # -- from any thread ---------------------------------------------------------------------------

    def append(self, parts: Sequence[Part]) -> list[Run]:
        """Add rows to the open batches of their partitions. Return the place of each part.

        All parts together take at most `buffer.memory`, and each of them `sizes.of_records`, unless
        it is a single row. Waits for room. Raises `BufferFullError`, or the error of `refuse` or
        `hold`.
        """
        unused = sum([each.size for each in parts])  # Quicker than a generator.
        self._take_room(unused)
        runs, closed = list[Run](), list[_Closed]()
        try:
            with self._lock:
                self._check_taken()
                known = len(self._unfinished)
                for each in parts:
                    unused -= each.size
                    runs.append(self._added(each, closed))
                is_one_new = len(self._unfinished) > known
            self._encode(closed)
            if closed or is_one_new:
                self.wakeup.wake()
        except BaseException:  # For example Ctrl-C, after which a user may go on.
            self.memory.give_back(unused)
            self._mend([each.topic_partition for each in parts], closed)
            raise
        return runs

    def _added(self, part: Part, closed: list[_Closed]) -> Run:
        """Add rows to the open batch with room for them, and close full ones."""
        queue = self._queue_of(part.topic_partition)
        most = self.sizes.of_records(part.topic_partition.topic)
        if queue.open is not None and queue.open.size + part.size > most:
            self._close(queue, queue.open, closed)
        batch = queue.open
        if batch is None:
            batch = queue.open = OpenBatch(part.topic_partition)
            self._unfinished[id(batch.delivery)] = batch.delivery
        run = Run(batch.delivery, batch.append(part.rows, part.size), len(part.rows), part.places)
        if batch.size >= most:
            self._close(queue, batch, closed)
        return run

    def append_batch(
        self, topic_partition: TopicPartition, size: int, encode: Callable[[], EncodedBatch]
    ) -> Run:
        """Add rows as a separate batch that `encode` makes. They take at most `size` bytes.

        Waits for room, and raises as `append` does. The open batch goes out before it.
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
            self._mend([topic_partition], closed)
            raise
        self.memory.give_back(unused)
        self._encode(closed)
        self.wakeup.wake()
        return Run(batch.delivery, 0, batch.record_count)

    def _mend(self, topic_partitions: Iterable[TopicPartition], closed: list[_Closed]) -> None:
        """Repair the queues after an interrupt. The producer's thread encodes what is left."""
        with self._lock:
            queues = [self._queues[each] for each in topic_partitions if each in self._queues]
            for opened, batch in closed:
                batch.left = opened
            for queue in queues:
                if any(queue.open is each and batch in queue.waiting for each, batch in closed):
                    queue.open = None
                deliveries = [each.delivery for each in queue.waiting]
                deliveries += [] if queue.open is None else [queue.open.delivery]
                self._unfinished |= {id(each): each for each in deliveries}
        self.wakeup.wake()

    def _take_room(self, size: int) -> None:
        is_emptying = threading.current_thread() is self.emptied_by
        self.memory.take(size, Deadline.after_ms(0 if is_emptying else self._max_block_ms))

    def queued(self, topic_partition: TopicPartition) -> int:
        """Return how many batches of a partition wait."""
        queue = self._queues.get(topic_partition)
        return 0 if queue is None else len(queue.waiting)

    def unfinished(self) -> list[Delivery]:
        """Return all deliveries whose outcome is not complete."""
        with self._lock:
            return list(self._unfinished.values())

    def flush(self, deadline: Deadline | None) -> bool:
        """Send all batches at once, and wait for them. Return whether all are done in time.

        Raises `LocalError` in a callback, which would wait for its own thread.
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
        """Raise `LocalError` in the producer's thread, which cannot wait for its own work."""
        if threading.current_thread() is self.emptied_by:
            raise LocalError("a callback of the producer cannot wait for its records to be sent")

    def hold(self, error: KafkaError | None) -> None:
        """Refuse records with this error, until a call with None."""
        with self._lock:
            self._held = error

    def refuse(self, error: KafkaError) -> None:
        """Refuse all further records with this error."""
        with self._lock:
            self._refusal = self._refusal or error
        self.memory.close(self._refusal)
        self.wakeup.wake()

    def _check_taken(self) -> None:
        """Raise the error with which records are refused now, if there is one."""
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
        """Close the open batch. It takes its place in the queue before it is encoded."""
        batch = opened.close()
        closed.append((opened, batch))
        queue.waiting.append(batch)
        queue.open = None

    def _encode(self, closed: list[_Closed]) -> None:
        """Encode batches without the lock. No other thread encodes them."""
        for opened, batch in closed:
            if batch.encoded is not None or batch.error is not None:
                continue
            try:
                encoded = opened.encode(self.compression, time.time_ns() // 1_000_000)
            except Exception as error:
                # Rows are checked before they are added, so no row has caused this.
                batch.error = LocalError(f"a batch of {batch.topic_partition}: {error!r}")
                batch.error.__cause__ = error
            else:
                with self._lock:
                    spared = max(batch.reserved_bytes - encoded.size, 0)
                    batch.reserved_bytes -= spared
                    batch.encoded = encoded
                self.memory.give_back(spared)

    # -- from the producer's thread ----------------------------------------------------------------

    def queues(self) -> list[PartitionQueue]:
        """Return the queues that are not empty."""
        with self._lock:
            return [each for each in self._queues.values() if each.in_flight or not each.is_empty]

    def queue(self, topic_partition: TopicPartition) -> PartitionQueue:
        """Return the queue of a partition that was written to before."""
        return self._queues[topic_partition]

    def head(self, queue: PartitionQueue) -> ProducerBatch | None:
        """Return the encoded batch to send next, or None.

        An open batch that has waited for `linger.ms` is closed and encoded here, unless others are
        before it. So is any open batch while a caller waits for room or in `flush`. A batch that
        is larger than leaders take is split here.
        """
        closed: list[_Closed] = []
        with self._lock:
            batch = queue.open
            is_over = batch is not None and time.monotonic() >= self.ready_at_seconds(batch)
            if is_over:
                self.batch_ended(queue.topic_partition)
            if not queue.waiting and batch is not None and is_over:
                self._close(queue, batch, closed)
            if not queue.waiting:
                return None
            head = queue.waiting[0]
            if head.left is not None:
                closed.append((head.left, head))
                head.left = None
        if closed:
            self._encode(closed)
            # A part of the thread's step, such as the one that fails refused batches, came before.
            self.wakeup.wake()
        if head.encoded is None:
            return None if head.error is None else head
        most = self.sizes.of_encoded(queue.topic_partition.topic)
        if most is None or head.encoded.size <= most or head.is_sent or head.record_count == 1:
            return head
        parts = head.split(most, self.compression)
        with self._lock:
            queue.waiting.popleft()
            queue.waiting.extendleft(reversed(parts))
        return parts[0]

    def ready_at_seconds(self, batch: OpenBatch) -> float:
        """Return the monotonic time in seconds at which an open batch is sent, full or not."""
        if self._flushing or self.memory.is_exhausted or self._refusal is not None:
            return 0.0
        return batch.created_at_seconds + self._linger_seconds

    def take(self, queue: PartitionQueue) -> ProducerBatch:
        """Remove the next batch from the queue, and return it."""
        with self._lock:
            return queue.waiting.popleft()

    def batches(self, queue: PartitionQueue) -> list[ProducerBatch]:
        """Return the closed batches: first those in flight, then those that wait."""
        with self._lock:  # Another thread may add one any time.
            return [*queue.in_flight, *queue.waiting]

    def put_back(self, queue: PartitionQueue, batches: list[ProducerBatch]) -> None:
        """Return batches to the queue, in the order in which they were first sent."""
        with self._lock:
            sent = [each for each in queue.waiting if each.order]
            new = [each for each in queue.waiting if not each.order]
            queue.waiting = deque([*sorted([*sent, *batches]), *new])

    def drop(
        self, queue: PartitionQueue, is_wanted: Callable[[ProducerBatch], bool]
    ) -> list[ProducerBatch]:
        """Remove the waiting batches that are not wanted, and return them. The open one stays."""
        with self._lock:
            dropped = [each for each in queue.waiting if not is_wanted(each)]
            if dropped:
                queue.waiting = deque(each for each in queue.waiting if is_wanted(each))
        return dropped

    def close_open(self) -> None:
        """Close all open batches."""
        closed: list[_Closed] = []
        with self._lock:
            for each in self._queues.values():
                if each.open is not None:
                    self._close(each, each.open, closed)
        self._encode(closed)

    def release(self, batch: ProducerBatch) -> None:
        """Give back the memory of a finished batch."""
        with self._lock:
            freed, batch.reserved_bytes, batch.encoded = batch.reserved_bytes, 0, None
            if batch.delivery.is_done:
                self._unfinished.pop(id(batch.delivery), None)
        self.memory.give_back(freed)

    def raise_if_refused(self) -> None:
        """Raise the error with which all further records are refused, if there is one."""
        if self._refusal is not None:
            raise self._refusal.with_traceback(None)
