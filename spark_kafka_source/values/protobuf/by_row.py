"""Compiled engine on rows. It leaves rare rows to the other engines."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

import numpy as np

from spark_kafka_source.records.varints import Integers
from spark_kafka_source.values import by_row
from spark_kafka_source.values.by_row import Rows
from spark_kafka_source.values.compiled import Kernels
from spark_kafka_source.values.faults import Fault
from spark_kafka_source.values.kernels import NULL_ROW
from spark_kafka_source.values.outcome import WHOLE, Outcome
from spark_kafka_source.values.protobuf.kernels import FRAME, MAX_DEPTH
from spark_kafka_source.values.protobuf.program import Program, Table
from spark_kafka_source.values.protobuf.room import Room
from spark_kafka_source.values.protobuf.waves import MessageWaves
from spark_kafka_source.values.slots import Slots


def messages_by_row(
    kernels: Kernels, programs: Sequence[Program], rows: Rows, slots: Slots, outcome: Outcome
) -> None:
    """Fill the slots of all rows in order, and mark the bad rows.

    All programs share the table of one reader, so the writer of a row makes no difference here.
    """
    count = len(rows.starts)
    numbers = np.zeros(count, np.int64) if rows.program_of is None else rows.program_of
    numbers = np.where(rows.null, NULL_ROW, numbers).astype(np.int64)
    outcome.add(np.flatnonzero((numbers < 0) & ~rows.null), Fault.NO_PROGRAM, WHOLE)
    left = np.flatnonzero(numbers >= 0)
    if len(left) and not Room(slots.layout, outcome).wide:
        left = _run(kernels, programs[0].table, rows, numbers, slots)
    if len(left):
        waves = MessageWaves(programs[0], rows.source, 0, slots, outcome)
        some = None if len(left) == count else left
        waves.run(left, some, rows.starts[left], rows.ends[left])


def _run(kernels: Kernels, table: Table, rows: Rows, numbers: Integers, slots: Slots) -> Integers:
    """Run the kernel, and return the rows that it left out. Nothing of them is kept."""
    source, starts, ends = rows.source, *map(np.ascontiguousarray, (rows.starts, rows.ends))
    linked = _linked(table)
    room = by_row.Room(slots.layout, len(starts), len(source.data))
    stack = np.empty((MAX_DEPTH, FRAME), np.int64)
    scratch = np.zeros(2, np.int64)
    left = np.zeros(len(starts), np.uint8)
    first = 0
    while True:
        first = kernels.run(
            source.data, source.longs, starts, ends, numbers, first,
            linked.rows, linked.nodes, linked.closed, linked.closed_firsts,
            room.memory, room.bases, room.level_of, room.rooms, room.sizes, room.sizes.copy(),
            stack, scratch, scratch.view(np.float32), scratch.view(np.float64), left,
        )  # fmt: skip
        if first == len(starts):
            break
        room.grow(*scratch.tolist())
    slots.lay(room.elements(), room.sizes.tolist())
    return np.flatnonzero(left)


@dataclass(frozen=True, slots=True, eq=False)
class _Linked:
    """Table as arrays."""

    rows: Integers
    nodes: Integers
    closed: Integers
    closed_firsts: Integers


@lru_cache(maxsize=64)
def _linked(table: Table) -> _Linked:
    none = np.zeros(0, np.int64)
    return _Linked(
        table.table,
        np.array([(node.first, node.stop) for node in table.nodes], np.int64),
        np.concatenate([none, *table.closed]),
        np.array([*accumulate(map(len, table.closed), initial=0)], np.int64),
    )
