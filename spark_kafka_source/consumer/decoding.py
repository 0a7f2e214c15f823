"""Decoding of fetched chunks into records, and the records of a fetch that are still unread."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from spark_kafka_source.consumer.consumer_records import PartitionRecords
from spark_kafka_source.consumer.deserializers import Deserializers, RecordDeserializationError
from spark_kafka_source.errors import CorruptRecordError
from spark_kafka_source.fetch.config import FetchConfig
from spark_kafka_source.fetch.positions import Fetched
from spark_kafka_source.records import Chunk, RecordLimit, record_batch
from spark_kafka_source.topic_partition import TopicPartition

if TYPE_CHECKING:  # Most consumers do not need these.
    from spark_kafka_source.consumer.typed_decoding import TypedDecoding
    from spark_kafka_source.typed import BadRecordError


_Failure: TypeAlias = "BadRecordError | CorruptRecordError | RecordDeserializationError"


class NotReadyYetError(Exception):
    """Error while a schema lookup, or a write of dead letters, runs. Its end wakes the consumer."""


@dataclass(frozen=True, slots=True)
class Decoding:
    """Decoding of bytes into records: the columns and the limits.

    `offset` must be among the columns, because it tells where a part of a batch ends.
    """

    columns: tuple[str, ...]
    fetch: FetchConfig
    limit: RecordLimit = field(default_factory=RecordLimit)
    typed: "TypedDecoding | None" = None
    """Decoder of keys and values, or None: they stay bytes."""
    deserializers: Deserializers = field(default_factory=lambda: Deserializers({}))
    """The user's deserializers, of parts that stay bytes."""

    def decoded(self, chunk: Chunk) -> "tuple[pa.RecordBatch, _Failure | None]":
        """Return the records, and the error of the bad record after them, or None.

        Raises `CorruptRecordError` if no record before the corrupt one can be read.
        """
        try:
            return self._decoded(chunk)
        except CorruptRecordError as error:
            before = chunk.before(error.offset)
            if not before.segments:
                raise
            batch, failure = self._decoded(before)
            if not batch.num_rows and failure is None:
                raise
            return batch, failure or error

    def _decoded(self, chunk: Chunk) -> "tuple[pa.RecordBatch, BadRecordError | None]":
        if self.typed is None:
            return record_batch(chunk, self.columns), None
        return self.typed.decoded(chunk)


class UnreadRecords:
    """Records of one fetch of one partition, from `offset` on, in order.

    `next_offset` is after the returned records. `cut_batch_bytes` is known at the end: see `Chunk`.
    """

    def __init__(self, where: TopicPartition, fetched: Fetched, decoding: Decoding) -> None:
        self.offset = self.next_offset = fetched.offset
        self.leader_epoch = fetched.leader_epoch
        self.cut_batch_bytes = 0
        self._where, self._decoding = where, decoding
        self._chunks = fetched.chunks
        self._chunk: Chunk | None = None
        self._failure: _Failure | None = None
        self._batch: pa.RecordBatch | None = None
        self._row = 0
        self._after_batch = fetched.offset

    def next_records(self, max_records: int) -> PartitionRecords | None:
        """Return up to `max_records` of the next records, or None after the last one.

        `next_offset` moves behind them. Raises `CorruptRecordError`, the `BadRecordError` or
        `RecordDeserializationError` of the next record, and `NotReadyYetError` while their schema
        is not known.
        """
        while self._batch is None or self._row >= self._batch.num_rows:
            if self._failure is not None:
                raise self._failure
            self._chunk = self._chunk or next(self._chunks, None)
            if self._chunk is None:
                return None
            self._batch = self._decoded(self._chunk)
            self._row, self._chunk = 0, None
            if not self._batch.num_rows:
                self.next_offset = self._after_batch
        records = self._deserialized(self._batch, max_records)
        self._row += records.batch.num_rows
        ended = self._row >= self._batch.num_rows
        last_offset = records.batch.column("offset")[-1].as_py()
        self.next_offset = self._after_batch if ended else last_offset + 1
        return records

    def _deserialized(self, batch: pa.RecordBatch, max_records: int) -> PartitionRecords:
        """Return the next records before the first bad one. If it is the next, raise its error."""
        part = batch.slice(self._row, max_records)
        records, failure = self._decoding.deserializers.deserialized(self._where, part)
        if failure is not None:
            count = records.batch.num_rows
            if not count:
                raise failure
            self._batch, self._failure = batch.slice(0, self._row + count), failure
            self._after_batch = failure.offset
        return records

    def _decoded(self, chunk: Chunk) -> pa.RecordBatch:
        batch, self._failure = self._decoding.decoded(chunk)
        self.cut_batch_bytes = chunk.cut_batch_bytes
        failure = self._failure
        self._after_batch = chunk.next_offset if failure is None else failure.offset
        return batch
