"""A batch of one partition, from its first record to the leader's answer; and their queue."""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise

import pyarrow as pa

from spark_kafka_source.errors import KafkaError
from spark_kafka_source.producer.delivery import NO_OFFSET, Delivery, Outcome
from spark_kafka_source.producer.sequences import ProducerId, next_sequence
from spark_kafka_source.records import (
    FEW_ROWS,
    MAX_BATCH_BYTES,
    Bytes,
    Compression,
    EncodedBatch,
    Row,
    columns_of,
    cut_batch,
    encode_columns,
    encode_rows,
    join_columns,
    split_batch,
)
from spark_kafka_source.topic_partition import TopicPartition


@dataclass(eq=False, slots=True)
class ProducerBatch:
    """A batch that takes no more records, on its way to the leader."""

    topic_partition: TopicPartition
    delivery: Delivery
    created_at_seconds: float
    record_count: int
    reserved_bytes: int
    """Its share of `buffer.memory`."""
    first: int = 0
    """The number of the batch's first record in the delivery."""
    encoded: EncodedBatch | None = None
    """None until the thread that closed the batch has encoded it."""
    unencoded: "OpenBatch | None" = None
    """The records, if the thread that closed the batch was interrupted. The producer's thread
    then encodes them."""
    producer: ProducerId | None = None
    base_sequence: int = -1
    order: int = 0
    """The order in which a partition's batches are first sent; 0 before that."""
    is_sent: bool = False
    """Whether it was sent. The leader may have it, so that its records stay together."""
    tries: int = 0
    retry_at_seconds: float = 0.0
    error: KafkaError | None = field(default=None, repr=False)
    """The error of the last attempt."""
    is_finished: bool = False

    @classmethod
    def of(
        cls, delivery: Delivery, encoded: EncodedBatch, created_at_seconds: float
    ) -> "ProducerBatch":
        """Make a batch of records that were never in an open batch."""
        where, count, size = delivery.topic_partition, encoded.record_count, encoded.size
        delivery.closed(count)
        return cls(where, delivery, created_at_seconds, count, size, encoded=encoded)

    def __lt__(self, other: "ProducerBatch") -> bool:
        """Whether this batch goes before another one when both are sent again."""
        return (self.order, self.first) < (other.order, other.first)

    def delivered(self, offset: int = NO_OFFSET, append_time_ms: int = -1) -> None:
        """Tell the waiting callers where the records are."""
        self._finish(Outcome(self.first, self.record_count, offset, append_time_ms, None))

    def failed(self, error: KafkaError) -> None:
        """Tell the waiting callers why the records failed."""
        self._finish(Outcome(self.first, self.record_count, NO_OFFSET, -1, error))

    def _finish(self, outcome: Outcome) -> None:
        if not self.is_finished:
            self.is_finished = True
            self.delivery.add(outcome)

    def split(self, most_bytes: int, compression: Compression) -> list["ProducerBatch"]:
        """Return the records as two or more batches of about so many bytes."""
        parts = split_batch(self._encoded(), most_bytes, compression)
        starts = accumulate((encoded.record_count for encoded in parts[:-1]), initial=0)
        return self._parts(list(zip(starts, parts, strict=True)))

    def without(self, numbers: Sequence[int], compression: Compression) -> list["ProducerBatch"]:
        """Return the records except these numbers, as one batch for each run."""
        ends = [-1, *sorted(set(numbers)), self.record_count]
        runs = [(left + 1, right) for left, right in pairwise(ends) if left + 1 < right]
        starts = [start for start, _ in runs]
        cut = cut_batch(self._encoded(), runs, compression)
        return self._parts(list(zip(starts, cut, strict=True)))

    def failed_record(self, number: int, error: KafkaError) -> None:
        """Fail one record; `without` returns the others."""
        self.delivery.add(Outcome(self.first + number, 1, NO_OFFSET, -1, error))

    def pieces(self, transactional: bool) -> tuple[Bytes, Bytes]:
        """Return the bytes to send, in two pieces."""
        if self.producer is None:
            return self._encoded().pieces()
        return self._encoded().pieces(
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.epoch,
            base_sequence=self.base_sequence,
            transactional=transactional,
        )

    def _encoded(self) -> EncodedBatch:
        if self.encoded is None:
            raise ValueError("the batch is not encoded yet")
        return self.encoded

    def _parts(self, numbered: list[tuple[int, EncodedBatch]]) -> list["ProducerBatch"]:
        """Return the parts. Each record keeps its sequence, since sequences count records."""
        left = self.reserved_bytes
        parts = []
        for start, encoded in numbered:
            share = min(left, encoded.size)
            left -= share
            sequence = next_sequence(self.base_sequence, start) if self.producer else -1
            part = replace(
                self,
                encoded=encoded,
                record_count=encoded.record_count,
                first=self.first + start,
                reserved_bytes=share,
                base_sequence=sequence,
                is_sent=False,
            )
            parts.append(part)
        if parts:
            parts[-1].reserved_bytes += left
        return parts


class OpenBatch:
    """A batch that takes more records: single rows and pieces of columns.

    Only one thread may use it at a time. Ctrl-C cannot break it: one step adds rows, and they count
    from then on.
    """

    def __init__(self, delivery: Delivery, created_at_seconds: float) -> None:
        self.topic_partition = delivery.topic_partition
        self.delivery = delivery
        self.created_at_seconds = created_at_seconds
        """The monotonic time at which the first record was sent."""
        self.size = 0
        """The most bytes that the records take, before compression."""
        self._pieces: list[tuple[int, pa.RecordBatch | list[Row]]] = []
        """Pairs of the number of a piece's first record, and the piece."""

    @property
    def record_count(self) -> int:
        """The number of records so far."""
        if not self._pieces:
            return 0
        first, piece = self._pieces[-1]
        return first + len(piece)

    def append(self, rows: pa.RecordBatch | list[Row], size: int) -> int:
        """Add rows that take at most `size` bytes. Return the number of the first row."""
        number = self.record_count
        self.size += size
        last = self._pieces[-1][1] if self._pieces else None
        if isinstance(last, list) and isinstance(rows, list):
            last.extend(rows)
        else:
            self._pieces.append((number, rows))
        return number

    def close(self) -> ProducerBatch:
        """Close the batch and return it. It is not encoded yet."""
        self.delivery.closed(self.record_count)
        return ProducerBatch(
            self.topic_partition,
            self.delivery,
            self.created_at_seconds,
            self.record_count,
            self.size,
        )

    def encode(self, compression: Compression, timestamp_ms: int) -> EncodedBatch:
        """Return the records as one batch. `timestamp_ms` fills missing timestamps."""
        _, only = self._pieces[0]
        if isinstance(only, list) and len(self._pieces) == 1 and len(only) <= FEW_ROWS:
            return encode_rows(only, compression)
        pieces = [
            columns_of(*zip(*piece, strict=True)) if isinstance(piece, list) else piece
            for _, piece in self._pieces
            if len(piece)
        ]
        (encoded,) = encode_columns(
            join_columns(pieces, timestamp_ms),
            compression=compression,
            max_batch_bytes=MAX_BATCH_BYTES,
            max_request_bytes=MAX_BATCH_BYTES,
            timestamp_ms=timestamp_ms,
        )
        return encoded


@dataclass(eq=False, slots=True)
class PartitionQueue:
    """The batches of one partition: the waiting ones, in order, and last the open one.

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
