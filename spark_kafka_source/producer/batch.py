"""A batch of one partition, from its first record to the answer of the partition's leader."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pyarrow as pa

from spark_kafka_source.errors import KafkaError
from spark_kafka_source.producer.delivery import NO_OFFSET, Delivery, Outcome
from spark_kafka_source.producer.sequences import ProducerId, next_sequence
from spark_kafka_source.records import (
    MAX_BATCH_BYTES,
    Compression,
    EncodedBatch,
    cut_batch,
    encode_columns,
    join_columns,
    split_batch,
)
from spark_kafka_source.topic_partition import TopicPartition

Headers = Sequence[tuple[str, bytes | None]]
Row = tuple[bytes | None, bytes | None, Headers, int]
"""A record that comes by itself: its key, value, headers and timestamp in milliseconds."""

HEADERS_TYPE = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def columns_of(rows: Sequence[Row]) -> pa.RecordBatch:
    """Return records that came one by one as columns that `encode_columns` takes."""
    keys, values, headers, timestamps_ms = zip(*rows, strict=True)
    columns = {
        "key": pa.array(keys, pa.binary()),
        "value": pa.array(values, pa.binary()),
        "timestamp": pa.array(timestamps_ms, pa.int64()),
    }
    if any(headers):
        columns["headers"] = pa.array([list(each) for each in headers], HEADERS_TYPE)
    return pa.RecordBatch.from_pydict(columns)


@dataclass(eq=False, slots=True)
class ProducerBatch:
    """A batch that takes no more records, on its way to the leader."""

    topic_partition: TopicPartition
    delivery: Delivery
    created_at_seconds: float
    record_count: int
    reserved_bytes: int
    """Of `buffer.memory`."""
    first: int = 0
    """The number of its first record in the delivery."""
    encoded: EncodedBatch | None = None
    """None until whoever closed the batch has encoded it."""
    left: "OpenBatch | None" = None
    """Its records, where who closed it was interrupted: the producer's thread is to encode them."""
    producer: ProducerId | None = None
    base_sequence: int = -1
    order: int = 0
    """Batches of a partition are sent for the first time in this order; 0 before it."""
    tries: int = 0
    retry_at_seconds: float = 0.0
    error: KafkaError | None = field(default=None, repr=False)
    """What went wrong the last time."""
    is_over: bool = False

    @classmethod
    def of(cls, topic_partition: TopicPartition, encoded: EncodedBatch) -> "ProducerBatch":
        """Make one of records that never were in an open batch."""
        count, delivery = encoded.record_count, Delivery(topic_partition)
        delivery.closed(count)
        now_seconds = time.monotonic()
        return cls(topic_partition, delivery, now_seconds, count, encoded.size, encoded=encoded)

    def __lt__(self, other: "ProducerBatch") -> bool:
        """Whether it is to be sent before another that was sent once, too."""
        return (self.order, self.first) < (other.order, other.first)

    def delivered(self, offset: int = NO_OFFSET, append_time_ms: int = -1) -> None:
        """Tell those that wait for its records where they are."""
        self._over(Outcome(self.first, self.record_count, offset, append_time_ms, None))

    def failed(self, error: KafkaError) -> None:
        """Tell those that wait for its records that they are not there, and why."""
        self._over(Outcome(self.first, self.record_count, NO_OFFSET, -1, error))

    def _over(self, outcome: Outcome) -> None:
        if not self.is_over:
            self.is_over = True
            self.delivery.is_over(outcome)

    def halves(self, compression: Compression) -> list["ProducerBatch"]:
        """Return its records as two batches, for a broker that finds it too large."""
        encoded = self._encoded()
        first, second = split_batch(encoded, compression)
        return self._parts([(0, first), (first.record_count, second)])

    def without(self, numbers: Sequence[int], compression: Compression) -> list["ProducerBatch"]:
        """Return its records but some, by their numbers in it, as a batch for each run."""
        ends = [-1, *sorted(set(numbers)), self.record_count]
        runs = [(left + 1, right) for left, right in pairwise(ends) if left + 1 < right]
        starts = [start for start, _ in runs]
        cut = cut_batch(self._encoded(), runs, compression)
        return self._parts(list(zip(starts, cut, strict=True)))

    def failed_record(self, number: int, error: KafkaError) -> None:
        """Say that one record is not there; `without` has the others."""
        self.delivery.is_over(Outcome(self.first + number, 1, NO_OFFSET, -1, error))

    def _encoded(self) -> EncodedBatch:
        if self.encoded is None:
            raise ValueError("the batch is not encoded yet")
        return self.encoded

    def _parts(self, found: list[tuple[int, EncodedBatch]]) -> list["ProducerBatch"]:
        """Sequences count records: a part has those that its records had."""
        left = self.reserved_bytes
        parts = []
        for start, encoded in found:
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
            )
            parts.append(part)
        if parts:
            parts[-1].reserved_bytes += left
        return parts


class OpenBatch:
    """A batch that takes more records: rows that came one by one, and pieces of columns.

    Not for two threads at once. One that Ctrl-C interrupts leaves it sound: a record is in it by
    one step, and then counts.
    """

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition = topic_partition
        self.delivery = Delivery(topic_partition)
        self.created_at_seconds = time.monotonic()
        self.size = 0
        """What its records take at most, in bytes, before their compression."""
        self._pieces: list[tuple[int, pa.RecordBatch | list[Row]]] = []
        """Each after the number of its first record."""

    @property
    def record_count(self) -> int:
        """How many records it has so far."""
        if not self._pieces:
            return 0
        first, piece = self._pieces[-1]
        return first + len(piece)

    def append(self, row: Row, size: int) -> int:
        """Add one record of at most `size` bytes; return its number."""
        first, rows = self._pieces[-1] if self._pieces else (0, None)
        if not isinstance(rows, list):
            first, rows = self.record_count, list[Row]()
            self._pieces.append((first, rows))
        self.size += size
        rows.append(row)
        return first + len(rows) - 1

    def append_columns(self, columns: pa.RecordBatch, size: int) -> int:
        """Add rows that take at most `size` bytes; return the number of the first."""
        first = self.record_count
        self.size += size
        self._pieces.append((first, columns))
        return first

    def close(self) -> ProducerBatch:
        """Return the batch that takes no more; it is still to be encoded."""
        self.delivery.closed(self.record_count)
        return ProducerBatch(
            self.topic_partition,
            self.delivery,
            self.created_at_seconds,
            self.record_count,
            self.size,
        )

    def encode(self, compression: Compression, timestamp_ms: int) -> EncodedBatch:
        """Return its records as one batch; those without a timestamp get this one."""
        pieces = [
            columns_of(each) if isinstance(each, list) else each
            for _, each in self._pieces
            if len(each)
        ]
        (encoded,) = encode_columns(
            join_columns(pieces, timestamp_ms),
            compression=compression,
            max_batch_bytes=MAX_BATCH_BYTES,
            max_request_bytes=MAX_BATCH_BYTES,
            timestamp_ms=timestamp_ms,
        )
        return encoded
