"""Columns on their way into batches: the topic, the partition and the order of each row."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_kafka_source.options.kinds import INT32_MAX
from spark_kafka_source.producer.accumulator import Accumulator, Part
from spark_kafka_source.producer.delivery import Run
from spark_kafka_source.producer.parcel import Parcel
from spark_kafka_source.producer.partitioners import NO_PARTITION, PartitionRows, group_by_partition
from spark_kafka_source.records import (
    FEW_ROWS,
    HEADER_BYTES,
    MAX_BATCH_BYTES,
    ColumnTypeError,
    Integers,
    RowTooLargeError,
    UnencodableRowError,
    as_rows,
    encode_columns,
    record_sizes,
)
from spark_kafka_source.topic_partition import TopicPartition

PIECE_BYTES = 8 << 20
"""The size of the pieces in which rows are sorted by partition; sorting copies a piece."""

_RECORD_COLUMNS = ("key", "value", "headers", "timestamp")


@dataclass(frozen=True, eq=False, slots=True)
class Piece:
    """Some of the sent rows, with the most bytes that each takes."""

    columns: pa.RecordBatch
    sizes: Integers
    first_row: int
    rows: Integers | None = None
    """The rows taken, counted from `first_row`; None for all rows."""

    def take(self, rows: Integers) -> "Piece":
        """Return a piece with only these rows."""
        taken = rows if self.rows is None else self.rows[rows]
        columns = self.columns.take(pa.array(rows))
        return Piece(columns, self.sizes[rows], self.first_row, taken)

    def given_rows(self, places: Integers) -> list[int]:
        """Return the places of these rows in the given table, for errors."""
        rows: list[int] = self._given(places).tolist()
        return rows

    def rows_in(self, grouped: PartitionRows) -> Integers | range:
        """Return the places of the rows in the given table, in the order of `grouped`."""
        if len(grouped.partitions) > 1 or self.rows is not None:
            return self._given(grouped.rows)
        return range(self.first_row, self.first_row + len(grouped.rows))

    def _given(self, places: Integers) -> Integers:
        rows: Integers = (places if self.rows is None else self.rows[places]) + self.first_row
        return rows


def pieces_of(
    columns: pa.Table | pa.RecordBatch, max_request_bytes: int, buffer_bytes: int
) -> list[Piece]:
    """Check all rows, and return them in pieces, in their order.

    Raises `ColumnTypeError`, `RowTooLargeError` and `UnencodableRowError`, which name rows by
    their place in the given table.
    """
    batches = [columns] if isinstance(columns, pa.RecordBatch) else columns.to_batches()
    pieces = []
    first_row = 0
    for batch in batches:
        sizes = _sizes(batch, first_row, max_request_bytes)
        _check_sizes(sizes, first_row, buffer_bytes)
        for start, stop in _cuts(sizes):
            piece = batch.slice(start, stop - start)
            pieces.append(Piece(piece, sizes[start:stop], first_row + start))
        first_row += batch.num_rows
    return pieces


def _sizes(batch: pa.RecordBatch, first_row: int, max_request_bytes: int) -> Integers:
    try:
        return record_sizes(batch, max_request_bytes=max_request_bytes)
    except UnencodableRowError as error:
        raise type(error)([first_row + row for row in error.rows], error.reason) from None


def _check_sizes(sizes: Integers, first_row: int, buffer_bytes: int) -> None:
    places = np.flatnonzero(sizes + HEADER_BYTES > buffer_bytes)
    if len(places):
        size = sizes[places[0]] + HEADER_BYTES
        reason = f"its record may take {size} bytes; 'kafka.buffer.memory' is {buffer_bytes}"
        raise RowTooLargeError((places + first_row).tolist(), reason)


def _cuts(sizes: Integers) -> Iterator[tuple[int, int]]:
    """Yield the bounds of pieces of about `PIECE_BYTES` each, none much smaller than another."""
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    pieces = max(round(total / PIECE_BYTES), 1)
    cuts = np.searchsorted(ends, total / pieces * np.arange(1, pieces)) + 1
    yield from pairwise(np.unique([0, *cuts, len(sizes)]).tolist())


def by_topic(piece: Piece) -> list[tuple[str, Piece]]:
    """Return the rows of each topic that the column `topic` names, in their order.

    Raises `ColumnTypeError` without such a column, and `UnencodableRowError` for a null in it.
    """
    names = piece.columns["topic"] if "topic" in piece.columns.schema.names else None
    if names is None or not (
        pa.types.is_string(names.type) or pa.types.is_large_string(names.type)
    ):
        found = "missing" if names is None else names.type
        raise ColumnTypeError("topic", found, "a string, where no topic is given for all rows")
    if names.null_count:
        rows = np.flatnonzero(names.is_null().to_numpy(zero_copy_only=False))
        reason = "its topic is null, and none is given for all rows"
        raise UnencodableRowError(piece.given_rows(rows), reason)
    encoded = pc.dictionary_encode(names)
    topics: list[str] = encoded.dictionary.to_pylist()
    if len(topics) == 1:
        return [(topics[0], piece)]
    rows_of = group_by_partition(encoded.indices.to_numpy().astype(np.int64))
    return [(topics[number], piece.take(rows)) for number, rows in rows_of]


def given_partitions(piece: Piece) -> Integers:
    """Return the partition of each row from the column `partition`, or `NO_PARTITION`.

    Raises `ColumnTypeError`, and `UnencodableRowError` for a number that no partition can have.
    """
    if "partition" not in piece.columns.schema.names:
        return np.full(len(piece.sizes), NO_PARTITION, np.int64)
    column = piece.columns["partition"]
    if not (pa.types.is_integer(column.type) or pa.types.is_null(column.type)):
        raise ColumnTypeError("partition", column.type, "a whole number")
    # A number of more than 63 bits becomes negative, which is refused as well.
    filled = pc.fill_null(column.cast(pa.int64(), safe=False), NO_PARTITION)
    # The caller writes into the array, and Arrow's own memory must not change.
    partitions: Integers = filled.to_numpy(zero_copy_only=False).copy()
    given = ~column.is_null().to_numpy(zero_copy_only=False)
    wrong = np.flatnonzero(given & ((partitions < 0) | (partitions > INT32_MAX)))
    if len(wrong):
        reason = f"its partition is {column[int(wrong[0])].as_py()}: they are counted from 0 on"
        raise UnencodableRowError(piece.given_rows(wrong), reason)
    return partitions


def check_partitions(
    piece: Piece, partitions: Integers, topic: str, count: int, waited: str = ""
) -> None:
    """Raise `UnencodableRowError` for a partition that the topic does not have.

    `waited` says how long it was waited for.
    """
    wrong = np.flatnonzero(partitions >= count)
    if len(wrong):
        partition = partitions[wrong[0]]
        reason = f"its partition is {partition}, and topic {topic!r} has {count}, from 0 on{waited}"
        raise UnencodableRowError(piece.given_rows(wrong), reason)


def append(
    accumulator: Accumulator,
    topic: str,
    piece: Piece,
    partitions: Integers,
    parcel: Parcel | None = None,
) -> Iterator[Run]:
    """Put the rows into batches of their partitions, and yield the place of each run of rows.

    `parcel` is the one that the rows come from, if `send` took them.
    """
    names = [name for name in piece.columns.schema.names if name in _RECORD_COLUMNS]
    columns = piece.columns.select(names)
    if not names:  # A record batch without columns has no rows, either.
        columns = pa.RecordBatch.from_arrays([pa.nulls(len(piece.sizes))], ["value"])
    grouped = group_by_partition(partitions)
    sizes = piece.sizes if len(grouped.partitions) == 1 else piece.sizes[grouped.rows]
    rows = _Rows(topic, columns, grouped.rows, np.cumsum(sizes), piece.rows_in(grouped))
    enough = accumulator.sizes.of_records(topic) // 2
    bounds = pairwise(grouped.bounds.tolist())
    large, small = list[_PartitionRun](), list[_PartitionRun]()
    for partition, bound in zip(grouped.partitions.tolist(), bounds, strict=True):
        run = _PartitionRun(partition, *bound)
        is_alone = rows.size(run.start, run.stop) >= enough or (
            parcel is not None and accumulator.is_next(TopicPartition(topic, partition), parcel)
        )
        (large if is_alone else small).append(run)
    yield from _append_batches(accumulator, rows, large, parcel)
    yield from _append_short(accumulator, rows, small, parcel)


class _PartitionRun(NamedTuple):
    partition: int
    start: int
    stop: int

    @property
    def is_few(self) -> bool:
        """Whether its rows are encoded sooner one by one than as columns."""
        return self.stop - self.start <= FEW_ROWS


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of a piece, in the order of their partitions."""

    topic: str
    columns: pa.RecordBatch
    order: Integers
    """The row of `columns` at each place of that order."""
    ends: Integers
    """The number of bytes up to and with each place."""
    given: Integers | range
    """The row of the given table at each place."""

    def before(self, place: int) -> int:
        """Return the number of bytes before a place."""
        return int(self.ends[place - 1]) if place else 0

    def size(self, start: int, stop: int) -> int:
        """Return the number of bytes from `start` to `stop`."""
        return self.before(stop) - self.before(start)

    def of(self, runs: Sequence[_PartitionRun]) -> pa.RecordBatch:
        """Return the rows of these runs, in their order."""
        places = np.concatenate([self.order[run.start : run.stop] for run in runs])
        return self.columns.take(pa.array(places))

    def end_of(self, start: int, most_bytes: float) -> int:
        """Return the end of the rows from `start` that take so many bytes at most."""
        return int(np.searchsorted(self.ends, self.before(start) + most_bytes, side="right"))


def _append_batches(
    accumulator: Accumulator, rows: _Rows, runs: list[_PartitionRun], parcel: Parcel | None
) -> Iterator[Run]:
    """Encode runs that fill batches alone. Their rows are not copied before."""
    most = accumulator.sizes.of_records(rows.topic)
    parts = [part for run in runs for part in _even_parts(rows, run, most)]
    if not parts:
        return
    order = np.concatenate([rows.order[run.start : run.stop] for run in runs])
    batches = encode_columns(
        rows.columns,
        None if len(rows.order) == len(order) and len(runs) == 1 else order,
        bounds=np.cumsum([0, *(part.stop - part.start for part in parts)]),
        compression=accumulator.compression,
        max_batch_bytes=MAX_BATCH_BYTES,
        max_request_bytes=MAX_BATCH_BYTES,
        timestamp_ms=time.time_ns() // 1_000_000,
    )
    for partition, start, stop in parts:
        where, size = TopicPartition(rows.topic, partition), rows.size(start, stop)
        run = accumulator.append_batch(where, size + HEADER_BYTES, lambda: next(batches), parcel)
        yield replace(run, rows=rows.given[start:stop])


def _even_parts(rows: _Rows, run: _PartitionRun, batch_bytes: int) -> Iterator[_PartitionRun]:
    """Cut a run into as few batches as possible, none much smaller than another."""
    start = run.start
    while start < run.stop:
        left = rows.size(start, run.stop)
        share = left / -(-left // batch_bytes)
        stop = min(max(rows.end_of(start, share), start + 1), run.stop)
        yield _PartitionRun(run.partition, start, stop)
        start = stop


def _append_short(
    accumulator: Accumulator, rows: _Rows, runs: list[_PartitionRun], parcel: Parcel | None
) -> Iterator[Run]:
    """Put runs into the open batches of their partitions. A few rows go one by one."""
    few = [run for run in runs if run.is_few]
    single = iter(as_rows(rows.of(few), time.time_ns() // 1_000_000) if few else ())
    parts: list[Part] = []
    room = most = accumulator.sizes.of_records(rows.topic)
    for run in runs:
        size = rows.size(run.start, run.stop)
        if parts and size > room:
            yield from accumulator.append(parts, parcel)
            parts, room = [], most
        room -= size
        where, places = TopicPartition(rows.topic, run.partition), rows.given[run.start : run.stop]
        taken = list(islice(single, len(places))) if run.is_few else rows.of([run])
        parts.append(Part(where, taken, size, places))
    if parts:
        yield from accumulator.append(parts, parcel)
