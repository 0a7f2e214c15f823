"""The partitions of rows, and the way of a parcel's records into batches."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from spark_kafka_source.errors import LocalError
from spark_kafka_source.producer.accumulator import Accumulator, Part
from spark_kafka_source.producer.columns import (
    Piece,
    append,
    by_topic,
    check_partitions,
    given_partitions,
)
from spark_kafka_source.producer.delivery import Run
from spark_kafka_source.producer.given_partitioner import GivenPartitioner, SentObjects
from spark_kafka_source.producer.metrics import ProducerMetrics
from spark_kafka_source.producer.parcel import Parcel, SentRow
from spark_kafka_source.producer.partitioners import (
    NO_PARTITION,
    KeyPartitioner,
)
from spark_kafka_source.producer.record import checked_partition
from spark_kafka_source.producer.topics import Partitions, Topics
from spark_kafka_source.producer.transaction import Transaction
from spark_kafka_source.records import (
    ByteColumn,
    Integers,
    Row,
    columns_of,
)
from spark_kafka_source.topic_partition import TopicPartition

_FEW_RECORDS = 200
"""Up to this number, records of `send` cost less one by one than as columns."""

Planned = tuple[str, Piece, Integers]
"""Rows of one topic, and the partition of each."""


@dataclass(slots=True)
class _FewRows:
    topic_partition: TopicPartition
    rows: list[Row] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    size: int = 0


@dataclass(frozen=True, eq=False, slots=True)
class Placing:
    """Give rows their partitions, and put them into batches. Any thread may use it."""

    accumulator: Accumulator
    topics: Topics
    partitioner: GivenPartitioner | None
    key_partitioner: KeyPartitioner | None
    """None if keys are ignored, or if a function chooses."""
    transaction: Transaction | None
    metrics: ProducerMetrics

    def send(self, topic: str | None, pieces: Sequence[Piece]) -> list[Run]:
        """Put rows of `send_columns` into batches. All partitions are checked before."""
        planned: list[Planned] = [
            (name, part, self._checked(name, part))
            for piece in pieces
            for name, part in ([(topic, piece)] if topic is not None else by_topic(piece))
        ]
        for name, _, partitions in planned:
            self._announce(name, np.unique(partitions).tolist())
        for name in dict.fromkeys(name for name, _, _ in planned):
            self.accumulator.place_earlier(name)
        runs: list[Run] = []
        for name, part, partitions in planned:
            runs += append(self.accumulator, name, part, partitions)
        return runs

    def place(self, parcel: Parcel) -> None:
        """Put the records of a parcel into batches, in the producer's thread. Never raises."""
        runs: list[Run] = []
        try:
            if parcel.rows:
                self._place(parcel, runs)
        except Exception as error:
            # Records are checked before they are added, so no record has caused this.
            failure = LocalError(f"records of topic {parcel.topic!r}: {error!r}")
            failure.__cause__ = error
            runs.append(parcel.lost(runs, failure))
            self.metrics.failed.record(runs[-1].count)
            if self.transaction is not None:  # Before anyone hears of it, so no commit follows.
                self.transaction.failed(failure, was_sent=False)
        self.accumulator.placed(parcel, runs)

    def chosen(self, topic: str, partition: int | None, sent: SentObjects | None) -> int | None:
        """Return the partition that the caller or the given partitioner chooses for a record.

        Return None if neither does. `sent` is None without a given partitioner. Waits until the
        topic's partitions are known. Raises `UnknownPartitionError`.
        """
        if partition is not None:
            partition = checked_partition(topic, partition)
            self.topics.of(topic, partition + 1).check(partition, self.topics.waited)
            return partition
        if self.partitioner is None or sent is None:
            if not self.topics.knows(topic, None):
                self.topics.of(topic)
            return None
        chosen = _as_given(self.partitioner, self.topics.of(topic), sent)
        return None if chosen == NO_PARTITION else chosen

    def _place(self, parcel: Parcel, runs: list[Run]) -> None:
        topic, rows = parcel.topic, parcel.take_rows()
        if len(rows) <= _FEW_RECORDS:
            runs += self.accumulator.append(self._parts(parcel, rows), parcel)
            return
        keys, values, headers, times, sizes, chosen = zip(*rows, strict=True)
        columns = columns_of(keys, values, headers, times)
        lengths = [ByteColumn.of(name, columns[name]).lengths for name in ("key", "value")]
        parcel.facts = columns["timestamp"].to_numpy(), *lengths
        piece = Piece(columns, np.array(sizes), 0)
        partitions = np.full(len(rows), NO_PARTITION, np.int64)
        if chosen.count(None) < len(chosen):
            partitions[:] = [NO_PARTITION if each is None else each for each in chosen]
        self._fill(self.topics.of(topic), piece, partitions)
        self._announce(topic, np.unique(partitions).tolist())
        for run in append(self.accumulator, topic, piece, partitions, parcel):
            runs.append(run)  # An error leaves the earlier runs.

    def _parts(self, parcel: Parcel, rows: Sequence[SentRow]) -> list[Part]:
        """Return a few records by partition. They stay rows: columns would cost more."""
        topic, partitions = parcel.topic, self.topics.of(parcel.topic)
        keys, values, _, times, *_ = zip(*rows, strict=True)
        parcel.facts = times, _lengths(keys), _lengths(values)
        most = self.accumulator.sizes.of_records(topic)
        parts: list[_FewRows] = []
        open_parts: dict[int, _FewRows] = {}
        for number, (key, value, headers, time_ms, size, chosen) in enumerate(rows):
            partition = self._partition(partitions, key, size) if chosen is None else chosen
            part = open_parts.get(partition)
            if part is None or part.size + size > most:
                part = open_parts[partition] = _FewRows(TopicPartition(topic, partition))
                parts.append(part)
            part.rows.append((key, value, headers, time_ms))
            part.places.append(number)
            part.size += size
        self._announce(topic, open_parts)
        return [Part(part.topic_partition, part.rows, part.size, part.places) for part in parts]

    def _partition(self, partitions: Partitions, key: bytes | None, size: int) -> int:
        """Return the partition of a record's key, or any."""
        partition = NO_PARTITION
        if self.key_partitioner is not None:
            partition = self.key_partitioner.partition(key, partitions.count)
        return partitions.next_one(size) if partition == NO_PARTITION else partition

    def _announce(self, topic: str, partitions: Iterable[int]) -> None:
        if self.transaction is not None:
            self.transaction.announce(TopicPartition(topic, partition) for partition in partitions)

    def _checked(self, topic: str, piece: Piece) -> Integers:
        """Return the partition of each row: its own, or that of the function, or as `_fill`."""
        numbers = given_partitions(piece)
        partitions = self.topics.of(topic, int(numbers.max(initial=NO_PARTITION)) + 1)
        check_partitions(piece, numbers, topic, partitions.count, self.topics.waited)
        left = np.flatnonzero(numbers == NO_PARTITION)
        if self.partitioner is not None and len(left):
            rows, partitioner = _as_sent(piece, left), self.partitioner
            numbers[left] = [_as_given(partitioner, partitions, objects) for objects in rows]
        self._fill(partitions, piece, numbers)
        return numbers

    def _fill(self, partitions: Partitions, piece: Piece, numbers: Integers) -> None:
        """Give rows without a partition that of their key, or any."""
        left = np.flatnonzero(numbers == NO_PARTITION)
        if len(left) and self.key_partitioner is not None and "key" in piece.columns.schema.names:
            keys = piece.columns["key"]
            keys = keys if len(left) == len(numbers) else keys.take(pa.array(left))
            numbers[left] = self.key_partitioner.partitions(keys, partitions.count)
            left = np.flatnonzero(numbers == NO_PARTITION)
        if len(left):
            numbers[left] = partitions.next_ones(piece.sizes[left])


def _lengths(data: Sequence[bytes | None]) -> list[int]:
    return [-1 if each is None else len(each) for each in data]


def _as_given(partitioner: GivenPartitioner, partitions: Partitions, sent: SentObjects) -> int:
    chosen = partitioner.choose(sent, partitions.info)
    if chosen is None:
        return NO_PARTITION
    chosen = checked_partition(partitions.name, chosen)
    partitions.check(chosen)
    return chosen


def _as_sent(piece: Piece, rows: Integers) -> Iterator[SentObjects]:
    """Yield the keys and values of rows for a partitioner. Columns have bytes, and no objects."""
    taken = pa.array(rows)
    columns = [
        piece.columns[name].take(taken).cast(pa.binary()).to_pylist()
        if name in piece.columns.schema.names
        else [None] * len(rows)
        for name in ("key", "value")
    ]
    for key, value in zip(*columns, strict=True):
        yield SentObjects(key, key, value, value)
