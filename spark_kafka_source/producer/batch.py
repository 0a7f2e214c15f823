"""A batch of one partition, from its first record to the answer of the partition's leader."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from spark_kafka_source.errors import KafkaError
from spark_kafka_source.producer.delivery import NO_OFFSET, Delivery, Outcome
from spark_kafka_source.producer.sequences import ProducerId, next_sequence
from spark_kafka_source.records import (
    MAX_BATCH_BYTES,
    Compression,
    EncodedBatch,
    Integers,
    decoded_batch,
    encode_columns,
    split_batch,
)
from spark_kafka_source.topic_partition import TopicPartition

Headers = Sequence[tuple[str, bytes | None]]

HEADERS_TYPE = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


class RecordRows:
    """Records that came one by one, as lists of Python objects."""

    def __init__(self) -> None:
        self.keys: list[bytes | None] = []
        self.values: list[bytes | None] = []
        self.headers: list[Headers] = []
        self.timestamps_ms: list[int] = []
        self.has_headers = False

    def append(
        self, key: bytes | None, value: bytes | None, headers: Headers, timestamp_ms: int
    ) -> None:
        """Add one record."""
        self.keys.append(key)
        self.values.append(value)
        self.headers.append(headers)
        self.timestamps_ms.append(timestamp_ms)
        self.has_headers = self.has_headers or bool(headers)

    def to_columns(self) -> pa.RecordBatch:
        """Return them as columns that `encode_columns` takes."""
        columns = {
            "key": pa.array(self.keys, pa.binary()),
            "value": pa.array(self.values, pa.binary()),
            "timestamp": pa.array(self.timestamps_ms, pa.int64()),
        }
        if self.has_headers:
            columns["headers"] = pa.array([list(each) for each in self.headers], HEADERS_TYPE)
        return pa.RecordBatch.from_pydict(columns)


class OpenBatch:
    """A batch that takes more records: rows that came one by one, and pieces of columns.

    Not for two threads at once.
    """

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition = topic_partition
        self.delivery = Delivery(topic_partition)
        self.created_at_seconds = time.monotonic()
        self.record_count = 0
        self.size = 0
        """What its records take at most, in bytes, before their compression."""
        self._pieces: list[pa.RecordBatch | RecordRows] = []

    def append(
        self,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        timestamp_ms: int,
        size: int,
    ) -> int:
        """Add one record of at most `size` bytes; return its number."""
        rows = self._pieces[-1] if self._pieces else None
        if not isinstance(rows, RecordRows):
            rows = RecordRows()
            self._pieces.append(rows)
        rows.append(key, value, headers, timestamp_ms)
        self.size += size
        self.record_count += 1
        return self.record_count - 1

    def append_columns(self, columns: pa.RecordBatch, size: int) -> int:
        """Add rows that take at most `size` bytes; return the number of the first."""
        self._pieces.append(columns)
        first = self.record_count
        self.size += size
        self.record_count += columns.num_rows
        return first

    def encode(self, compression: Compression, timestamp_ms: int) -> EncodedBatch:
        """Return its records as one batch; those without a timestamp get this one."""
        pieces = [
            each.to_columns() if isinstance(each, RecordRows) else each for each in self._pieces
        ]
        (encoded,) = encode_columns(
            _joined(pieces),
            compression=compression,
            max_batch_bytes=MAX_BATCH_BYTES,
            max_request_bytes=MAX_BATCH_BYTES,
            timestamp_ms=timestamp_ms,
        )
        return encoded


def _joined(pieces: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(pieces) == 1:
        return pieces[0]
    schemas = pa.unify_schemas([each.schema for each in pieces], promote_options="permissive")
    return pa.concat_batches([_as(schemas, each) for each in pieces])


def _as(schema: pa.Schema, piece: pa.RecordBatch) -> pa.RecordBatch:
    if piece.schema == schema:
        return piece
    columns = [
        piece[each.name].cast(each.type)
        if each.name in piece.schema.names
        else pa.nulls(piece.num_rows, each.type)
        for each in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


@dataclass(eq=False, slots=True)
class ProducerBatch:
    """A batch that takes no more records, on its way to the leader; its sender's thread has it."""

    topic_partition: TopicPartition
    encoded: EncodedBatch
    delivery: Delivery
    first: int
    """The number of its first record in the delivery: that of a batch that was split has several"""
    created_at_seconds: float
    reserved_bytes: int
    """Of `buffer.memory`."""
    is_transactional: bool = False
    producer: ProducerId | None = None
    base_sequence: int = -1
    tries: int = 0
    retry_at_seconds: float = 0.0
    error: KafkaError | None = field(default=None, repr=False)
    """What went wrong the last time."""
    is_over: bool = False

    @property
    def record_count(self) -> int:
        """How many records it has."""
        return self.encoded.record_count

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

    def halves(self, compression: Compression) -> tuple["ProducerBatch", "ProducerBatch"]:
        """Return its records as two batches, for a broker that finds it too large.

        Sequences count records, so that the halves keep those that the batch had.
        """
        first, second = split_batch(self.encoded, compression)
        count, half_bytes = first.record_count, self.reserved_bytes // 2
        head = replace(self, encoded=first, reserved_bytes=half_bytes)
        tail = replace(
            self,
            encoded=second,
            reserved_bytes=self.reserved_bytes - half_bytes,
            first=self.first + count,
            base_sequence=self.base_sequence
            if self.producer is None
            else next_sequence(self.base_sequence, count),
        )
        return head, tail
