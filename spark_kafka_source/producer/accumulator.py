"""The records that wait: by topic in parcels, then by partition in batches.

The way of a record from `send` to its outcome:

    the caller's thread                     the producer's thread

    send                                    place_due_parcels: a full parcel, or after linger.ms
      │ add                                   │
      ▼                                       ▼
    Parcel of the topic ──────────────────▶ Placing: the record's partition
                                              │ append
    send_columns ── append, append_batch ──▶  ▼
                                            OpenBatch ──▶ ProducerBatch, closed and encoded
                                                            │ head, pop_head
                                              ┌─────────────┘
                                              ▼
                                            Sender: a Produce request ──────▶ the leader
                                                                                 │
                                            ProduceAnswers ◀──── its answer ─────┘
                                              │ put_back, to send a batch again
                                              ▼
    SendFuture, on_delivery ◀────────────── Delivery: offsets, or an error

The module is long because one lock guards all that both threads share.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import pyarrow as pa

from spark_kafka_source.errors import KafkaError, KafkaTimeoutError, LocalError
from spark_kafka_source.net import Deadline, Wakeup
from spark_kafka_source.producer.batch import OpenBatch, PartitionQueue, ProducerBatch
from spark_kafka_source.producer.batch_sizes import BatchSizes
from spark_kafka_source.producer.buffer_memory import BufferMemory
from spark_kafka_source.producer.config import ProducerConfig
from spark_kafka_source.producer.delivery import (
    Delivery,
    OnDelivery,
    Places,
    Run,
    refuse_wait,
)
from spark_kafka_source.producer.parcel import Parcel, SendFuture, SentRow
from spark_kafka_source.records import Compression, EncodedBatch, Row
from spark_kafka_source.spelling import spelt
from spark_kafka_source.topic_partition import TopicPartition


class Part(NamedTuple):
    """Rows for one partition."""

    topic_partition: TopicPartition
    rows: pa.RecordBatch | list[Row]
    size: int
    """The most bytes that the rows take."""
    places: Places | None = None
    """The places of the rows in what was sent; see `Run`."""


_ROOM_BYTES = 64 * 1024
"""Parcels take room in blocks of this size. Each take costs more time than a record."""

_MOST_ROOM = 1 / 64
"""The largest part of `buffer.memory` in a block. Other topics may need what a parcel leaves."""

_PLACED_BYTES = 1 << 20
"""The producer's thread places so many bytes of parcels, and then looks at its requests again."""

_Closed = tuple[OpenBatch, ProducerBatch]
"""The open batch to encode, and the closed batch that gets the result."""


class Accumulator:
    """Take records from any thread, and give batches to the producer's thread."""

    def __init__(self, config: ProducerConfig) -> None:
        self.wakeup = Wakeup()
        """Woken when there may be a batch to send."""
        self.memory = BufferMemory(config.buffer_memory, self.wakeup.wake)
        self.producer_thread: threading.Thread | None = None
        """The producer's thread. It must not wait for room or records: only it makes room."""
        self.batch_ended: Callable[[TopicPartition], object] = lambda _: None
        """Called when an open batch has waited for `linger.ms`: the next record without a key may
        go to another partition."""
        self.place: Callable[[Parcel], object] = lambda _: None
        """Called in the producer's thread to put a parcel's records into batches. Never raises."""
        self.compression: Compression = config.compression
        self.sizes = BatchSizes(config)
        self._linger_seconds = config.linger_ms / 1000
        self._max_block_ms = config.max_block_ms
        self._spelling = config.spelling
        self._room_bytes = min(_ROOM_BYTES, int(config.buffer_memory * _MOST_ROOM))
        # One thread may take it twice: the garbage collector closes a forgotten producer.
        self._lock = threading.RLock()
        self._parcels: deque[Parcel] = deque()
        """The parcels that are not placed, in their order."""
        self._open_parcels: dict[str, Parcel] = {}
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        self._unfinished: dict[int, Delivery] = {}
        self._flushing = 0
        self._refusal: KafkaError | None = None
        self._held: KafkaError | None = None

    # -- from any thread ---------------------------------------------------------------------------

    def add_at_once(
        self, topic: str, row: SentRow, on_delivery: OnDelivery | None
    ) -> SendFuture | None:
        """Add a record if the topic's open parcel has room for it. If not, return None.

        While records are refused, no parcel is open.
        """
        with self._lock:
            parcel = self._open_parcels.get(topic)
            if parcel is None or parcel.size + row[4] > parcel.limit:
                return None
            future = parcel.add(row, on_delivery)
        if parcel.size >= parcel.full_bytes:
            self.wakeup.wake()
        return future

    def add(self, topic: str, row: SentRow, on_delivery: OnDelivery | None = None) -> SendFuture:
        """Add a record to the topic's parcel. `on_delivery` is told the record's outcome.

        Waits for room. Raises `BufferFullError`, or the error of `refuse` or `hold`.
        """
        future = self.add_at_once(topic, row, on_delivery)
        if future is not None:
            return future
        with spelt(self._spelling):
            return self._add(topic, row, on_delivery)

    def _add(self, topic: str, row: SentRow, on_delivery: OnDelivery | None) -> SendFuture:
        room = self._wait_for_room(row[4], block=self._room_bytes)
        try:
            with self._lock:
                self._raise_if_refused_now()
                parcel = self._parcel_for(topic, row[4])
                parcel.give(room)
                room = 0
                future = parcel.add(row, on_delivery)
        finally:
            self.memory.give_back(room)
        if parcel.size >= parcel.full_bytes:
            self.wakeup.wake()
        return future

    def _parcel_for(self, topic: str, size: int) -> Parcel:
        """Return the topic's open parcel. Close a full one, and open another."""
        parcel = self._open_parcels.get(topic)
        if parcel is not None and parcel.size + size > parcel.full_bytes:
            self._close_parcel(parcel)
            parcel = None
        if parcel is None:
            parcel = Parcel(topic, self.sizes.of_records(topic), self.producer_thread)
            self._parcels.append(parcel)
            self._open_parcels[topic] = parcel
            self.wakeup.wake()
        return parcel

    def _close_parcel(self, parcel: Parcel) -> None:
        parcel.is_closed = True
        if self._open_parcels.get(parcel.topic) is parcel:
            self._open_parcels.pop(parcel.topic, None)  # The garbage collector may come before.

    def _close_parcels(self) -> None:
        for parcel in list(self._open_parcels.values()):
            self._close_parcel(parcel)

    def place_earlier(self, topic: str) -> None:
        """Have the earlier records of a topic placed in batches, before others follow them.

        Raises `KafkaTimeoutError` if that is not done within `max.block.ms`.
        """
        with self._lock:
            parcels = [parcel for parcel in self._parcels if parcel.topic == topic]
            for parcel in parcels:
                self._close_parcel(parcel)
        if parcels and threading.current_thread() is self.producer_thread:
            for parcel in parcels:
                self.place(parcel)
        elif parcels:
            self.wakeup.wake()
            if not parcels[-1].wait_for_places(self._max_block_ms / 1000):
                within = f"within {self._max_block_ms} ms ('kafka.max.block.ms')"
                raise KafkaTimeoutError(f"records of topic {topic!r} were not sent {within}")

    def append(self, parts: Sequence[Part], parcel: Parcel | None = None) -> list[Run]:
        """Add rows to the open batches of their partitions. Return the place of each part.

        All parts together take at most `buffer.memory`, and each of them `sizes.of_records`, unless
        it is a single row. Rows of a parcel have room, and were let in. Others wait for room. Then
        it raises `BufferFullError`, or the error of `refuse` or `hold`.
        """
        unused = sum([part.size for part in parts])  # Quicker than a generator.
        self._use_room(parcel, unused)
        runs, closed = list[Run](), list[_Closed]()
        try:
            with self._lock:
                if parcel is None:
                    self._raise_if_refused_now()
                began = time.monotonic() if parcel is None else parcel.created_at_seconds
                known = len(self._unfinished)
                for part in parts:
                    unused -= part.size
                    runs.append(self._add_part(part, closed, began))
                is_one_new = len(self._unfinished) > known
            self._encode(closed)
            if parcel is None and (closed or is_one_new):
                self.wakeup.wake()
        except BaseException:  # For example Ctrl-C, after which a user may go on.
            self.memory.give_back(unused)
            self._repair([part.topic_partition for part in parts], closed)
            raise
        return runs

    def _use_room(self, parcel: Parcel | None, size: int) -> None:
        if parcel is None:
            self._wait_for_room(size)
        else:  # A batch's header may make it negative; all of it is given back in the end.
            parcel.room -= size

    def _add_part(self, part: Part, closed: list[_Closed], created_at_seconds: float) -> Run:
        """Add rows to the open batch with room for them, and close full ones."""
        queue = self._queue_of(part.topic_partition)
        most = self.sizes.of_records(part.topic_partition.topic)
        if queue.open is not None and queue.open.size + part.size > most:
            self._close(queue, queue.open, closed)
        batch = queue.open
        if batch is None:
            delivery = Delivery(part.topic_partition, self.producer_thread)
            batch = queue.open = OpenBatch(delivery, created_at_seconds)
            self._unfinished[id(batch.delivery)] = batch.delivery
        run = Run(batch.delivery, batch.append(part.rows, part.size), len(part.rows), part.places)
        if batch.size >= most:
            self._close(queue, batch, closed)
        return run

    def append_batch(
        self,
        topic_partition: TopicPartition,
        size: int,
        encode: Callable[[], EncodedBatch],
        parcel: Parcel | None = None,
    ) -> Run:
        """Add rows as a separate batch that `encode` makes. They take at most `size` bytes.

        Waits for room, and raises as `append` does. The open batch goes out before it.
        """
        self._use_room(parcel, size)
        unused, closed = size, list[_Closed]()
        try:
            encoded = encode()
            began = time.monotonic() if parcel is None else parcel.created_at_seconds
            delivery = Delivery(topic_partition, self.producer_thread)
            batch = ProducerBatch.of(delivery, encoded, began)
            with self._lock:
                if parcel is None:
                    self._raise_if_refused_now()
                queue = self._queue_of(topic_partition)
                if queue.open is not None:
                    self._close(queue, queue.open, closed)
                unused -= encoded.size
                queue.waiting.append(batch)
                self._unfinished[id(batch.delivery)] = batch.delivery
        except BaseException:
            self.memory.give_back(unused)
            self._repair([topic_partition], closed)
            raise
        self.memory.give_back(unused)
        self._encode(closed)
        if parcel is None:  # Else this is the thread to wake.
            self.wakeup.wake()
        return Run(batch.delivery, 0, batch.record_count)

    def _repair(self, topic_partitions: Iterable[TopicPartition], closed: list[_Closed]) -> None:
        """Repair the queues after an interrupt. The producer's thread encodes what is left."""
        with self._lock:
            queues = [self._queues[each] for each in topic_partitions if each in self._queues]
            for opened, batch in closed:
                batch.unencoded = opened
            for queue in queues:
                if any(queue.open is opened and batch in queue.waiting for opened, batch in closed):
                    queue.open = None
                deliveries = [batch.delivery for batch in queue.waiting]
                deliveries += [] if queue.open is None else [queue.open.delivery]
                self._unfinished |= {id(delivery): delivery for delivery in deliveries}
        self.wakeup.wake()

    def _wait_for_room(self, size: int, block: int = 0) -> int:
        is_emptying = threading.current_thread() is self.producer_thread
        deadline = Deadline.after_ms(0 if is_emptying else self._max_block_ms)
        return self.memory.take(size, deadline, block)

    def queued(self, topic_partition: TopicPartition) -> int:
        """Return how many batches of a partition wait."""
        queue = self._queues.get(topic_partition)
        return 0 if queue is None else len(queue.waiting)

    def unfinished(self) -> list[Delivery]:
        """Return all deliveries whose outcome is not complete."""
        with self._lock:
            return list(self._unfinished.values())

    def parcels(self) -> list[Parcel]:
        """Return the parcels whose records are not in batches yet."""
        with self._lock:
            return list(self._parcels)

    def left(self) -> int:
        """Return how many parcels and batches have no outcome yet."""
        return len(self.parcels()) + len(self.unfinished())

    def flush(self, deadline: Deadline | None) -> bool:
        """Send all batches at once, and wait for them. Return whether all are done in time.

        Raises `LocalError` in a callback, which would wait for its own thread.
        """
        self.refuse_callbacks()
        with self._lock:
            self._flushing += 1
            waited: list[Parcel | Delivery] = [*self._parcels, *self._unfinished.values()]
        self.wakeup.wake()
        try:
            return all(
                each.wait(None if deadline is None else deadline.remaining_seconds())
                for each in waited
            )
        finally:
            with self._lock:
                self._flushing -= 1

    def refuse_callbacks(self) -> None:
        """Raise `LocalError` in the producer's thread, which cannot wait for its own work."""
        refuse_wait(self.producer_thread, None)

    def refuse_topic(self, topic: str) -> None:
        """Raise `LocalError` in the producer's thread, where others need what it does meanwhile."""
        instead = f"Before, 'partitions_for({topic!r})' in another thread waits for them"
        refuse_wait(self.producer_thread, None, (f"partitions of topic {topic!r}", instead))

    def hold(self, error: KafkaError | None) -> None:
        """Refuse records with this error, until a call with None."""
        with self._lock:
            self._held = error
            self._close_parcels()

    def refuse(self, error: KafkaError) -> None:
        """Refuse all further records with this error."""
        with self._lock:
            self._refusal = self._refusal or error
            self._close_parcels()
        self.memory.close(self._refusal)
        self.wakeup.wake()

    def _raise_if_refused_now(self) -> None:
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

    def place_due_parcels(self) -> float:
        """Place the parcels that are full or have waited for `linger.ms`.

        Return the monotonic time in seconds at which the next one is due, or infinity.
        """
        now_seconds, next_seconds, size = time.monotonic(), math.inf, 0
        for parcel in self.parcels():
            with self._lock:
                is_full = parcel.is_closed or parcel.size >= parcel.full_bytes
                ready_seconds = 0.0 if is_full else self.ready_at_seconds(parcel)
                is_due = ready_seconds <= now_seconds and size < _PLACED_BYTES
                if is_due:
                    self._close_parcel(parcel)
            if not is_due:
                next_seconds = min(next_seconds, ready_seconds)
            elif not parcel.is_placed:  # A callback may have placed it.
                size += parcel.size
                self.place(parcel)
        return next_seconds

    def placed(self, parcel: Parcel, runs: Sequence[Run]) -> None:
        """Forget a parcel whose records are in these runs, and give back the rest of its room."""
        with self._lock:
            self._close_parcel(parcel)
            self._parcels.remove(parcel)
            room, parcel.room = parcel.room, 0
        self.memory.give_back(room)
        parcel.place(runs)

    def queues(self) -> list[PartitionQueue]:
        """Return the queues that are not empty."""
        with self._lock:
            return [each for each in self._queues.values() if each.in_flight or not each.is_empty]

    def is_next(self, topic_partition: TopicPartition, parcel: Parcel) -> bool:
        """Whether rows of a parcel go out before any others of the partition, and at once."""
        queue = self._queues.get(topic_partition)
        is_due = self.ready_at_seconds(parcel) <= time.monotonic()
        return is_due and (queue is None or queue.is_empty)

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
            if head.unencoded is not None:
                closed.append((head.unencoded, head))
                head.unencoded = None
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

    def ready_at_seconds(self, opened: OpenBatch | Parcel) -> float:
        """Return the monotonic time in seconds at which it is sent, full or not."""
        if self._flushing or self.memory.is_exhausted or self._refusal is not None:
            return 0.0
        return opened.created_at_seconds + self._linger_seconds

    def pop_head(self, queue: PartitionQueue) -> ProducerBatch:
        """Remove the next batch from the queue, and return it."""
        with self._lock:
            return queue.waiting.popleft()

    def batches(self, queue: PartitionQueue) -> list[ProducerBatch]:
        """Return the closed batches: first the batches in flight, then the waiting ones."""
        with self._lock:  # Another thread may add one any time.
            return [*queue.in_flight, *queue.waiting]

    def put_back(self, queue: PartitionQueue, batches: list[ProducerBatch]) -> None:
        """Return batches to the queue, in the order in which they were first sent."""
        with self._lock:
            sent = [batch for batch in queue.waiting if batch.order]
            new = [batch for batch in queue.waiting if not batch.order]
            queue.waiting = deque([*sorted([*sent, *batches]), *new])

    def drop(
        self, queue: PartitionQueue, keeps: Callable[[ProducerBatch], bool]
    ) -> list[ProducerBatch]:
        """Remove and return the waiting batches that `keeps` does not keep. The open one stays."""
        with self._lock:
            dropped = [batch for batch in queue.waiting if not keeps(batch)]
            if dropped:
                queue.waiting = deque(batch for batch in queue.waiting if keeps(batch))
        return dropped

    def close_open(self) -> None:
        """Close all open batches."""
        closed: list[_Closed] = []
        with self._lock:
            for queue in self._queues.values():
                if queue.open is not None:
                    self._close(queue, queue.open, closed)
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
