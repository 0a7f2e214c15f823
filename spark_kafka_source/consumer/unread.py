"""What one fetch brought and nobody has read yet, as Arrow, a few records at a time."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from spark_kafka_source.fetch.config import FetchConfig
from spark_kafka_source.fetch.fetched import Fetched
from spark_kafka_source.records import Chunk, RecordLimit, record_batch

if TYPE_CHECKING:  # Most consumers need nothing of it.
    from spark_kafka_source.consumer.typed_decoding import TypedDecoding
    from spark_kafka_source.typed import BadRecordError


class NotKnownYetError(Exception):
    """A schema is being asked for; the consumer is woken once there is an answer."""


@dataclass(frozen=True, slots=True)
class Decoding:
    """How records are made of bytes: which columns, and within which bounds.

    `offset` must be among the columns, or nobody could say where a part of a batch ends.
    """

    columns: tuple[str, ...]
    fetch: FetchConfig
    limit: RecordLimit = field(default_factory=RecordLimit)
    typed: "TypedDecoding | None" = None
    """How keys and values are decoded, unless they stay bytes."""

    def decoded(self, chunk: Chunk) -> "tuple[pa.RecordBatch, BadRecordError | None]":
        """Return the records, and what is wrong with the one after them, if anything."""
        if self.typed is None:
            return record_batch(chunk, self.columns), None
        return self.typed.decoded(chunk)


class Unread:
    """Hands out the records of one fetch from `offset` on, in order.

    `next_offset` is after what was handed out. `cut_batch_bytes` is known in the end: see `Chunk`.
    """

    def __init__(self, fetched: Fetched, decoding: Decoding) -> None:
        self.offset = self.next_offset = fetched.offset
        self.leader_epoch = fetched.leader_epoch
        self.cut_batch_bytes = 0
        self._decoding = decoding
        self._chunks = fetched.chunks
        self._chunk: Chunk | None = None
        self._failure: BadRecordError | None = None
        self._batch: pa.RecordBatch | None = None
        self._row = 0
        self._after_batch = fetched.offset

    def take(self, max_records: int) -> pa.RecordBatch | None:
        """Up to so many of the next records, and None once there are no more.

        `next_offset` is then after them. Raises `CorruptRecordError`, and what is wrong with the
        next record; `NotKnownYetError` until it is known how they are decoded.
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
        part = self._batch.slice(self._row, max_records)
        self._row += part.num_rows
        ended = self._row >= self._batch.num_rows
        self.next_offset = self._after_batch if ended else part.column("offset")[-1].as_py() + 1
        return part

    def _decoded(self, chunk: Chunk) -> pa.RecordBatch:
        batch, self._failure = self._decoding.decoded(chunk)
        self.cut_batch_bytes = chunk.cut_batch_bytes
        failure = self._failure
        self._after_batch = chunk.next_offset if failure is None else failure.offset
        return batch
