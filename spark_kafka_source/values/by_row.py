"""The engine that is compiled: one row after the other, whichever program each is read by."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

import numpy as np

from spark_kafka_source.records.varints import Integers
from spark_kafka_source.values.columns import Layout
from spark_kafka_source.values.compiled import Kernels
from spark_kafka_source.values.kernels import FRAME, NULL_ROW
from spark_kafka_source.values.octets import OctetReader
from spark_kafka_source.values.outcome import Mask, Outcome
from spark_kafka_source.values.program import Op, Program, Row
from spark_kafka_source.values.slots import Slots
from spark_kafka_source.values.walk import MAX_NESTING

ITEMS_A_ROW = 3
"""For so many items of each level a row there is room at first."""

_ARGUMENT, _END = map(Row._fields.index, ("argument", "end"))


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The bytes, where each row lies in them, which are null, and the number of its program."""

    source: OctetReader
    starts: Integers
    ends: Integers
    null: Mask
    program_of: Integers | None


def decode_by_row(
    kernels: Kernels,
    programs: Sequence[Program],
    rows: Rows,
    slots: Slots,
    outcome: Outcome,
) -> None:
    """Fill the slots of all rows in their order, and say which are bad."""
    linked = link(tuple(programs))
    source, starts, ends = rows.source, *map(np.ascontiguousarray, (rows.starts, rows.ends))
    numbers = np.where(rows.null, NULL_ROW, 0 if rows.program_of is None else rows.program_of)
    constants = len(source.data) - linked.constants
    room = Room(slots.layout, len(starts))
    stack = np.empty((MAX_NESTING, FRAME), np.int64)
    scratch = np.zeros(2, np.int64)
    first = 0
    while True:
        first = kernels.run(
            source.data, source.longs, starts, ends, numbers, first,
            linked.table, linked.firsts, linked.mapping, constants,
            room.memory, room.bases, room.level_of, room.rooms, room.sizes, room.sizes.copy(),
            stack, scratch, scratch.view(np.float32), scratch.view(np.float64),
            outcome.status, outcome.place,
        )  # fmt: skip
        if first == len(starts):
            break
        room.grow(*scratch.tolist())
    slots.lay(room.memory, room.places, room.sizes.tolist())


@dataclass(frozen=True, slots=True, eq=False)
class Linked:
    """The tables of several programs as one."""

    table: Integers
    firsts: Integers
    """Where in the table each begins, and the last ends."""
    mapping: Integers
    constants: int
    """How many bytes they have of them, together."""


@lru_cache(maxsize=64)
def link(programs: tuple[Program, ...]) -> Linked:
    """All of them, each with places of its own."""
    tables, mappings, firsts = [], [], [0]
    mapped = constants = 0
    for program in programs:
        table = program.table
        argument, op = table[:, _ARGUMENT], table[:, 0]
        table[:, _END] += firsts[-1]
        argument[op == Op.CALL] += firsts[-1]
        argument[op == Op.ENUM] += mapped
        argument[op == Op.DEFAULT] += constants
        tables.append(table)
        mappings.append(program.mapping)
        firsts.append(firsts[-1] + len(table))
        mapped += len(program.mapping)
        constants += len(program.constants)
    none = np.zeros((0, len(Row._fields)), np.int64)
    table = np.concatenate([none, *tables])
    return Linked(table, np.array(firsts), np.concatenate([none[0:0, 0], *mappings]), constants)


class Room:
    """One piece of memory for the elements of all slots, and for the parents of all levels."""

    def __init__(self, layout: Layout, rows: int) -> None:
        levels = len(layout.levels_above)
        self._slot_levels = layout.slot_levels
        self._rooms = [rows] + [ITEMS_A_ROW * rows] * (levels - 1)
        self.level_of = np.array(layout.slot_levels, np.int64)
        self.sizes = np.zeros(levels, np.int64)
        self.sizes[0] = rows
        self._lay()

    def _lay(self) -> None:
        rooms = [self._rooms[level] for level in self._slot_levels]
        # Rows have no parents.
        *self.places, size = accumulate((*rooms, 0, *self._rooms[1:]), initial=0)
        self.memory = np.zeros(size, np.int64)
        self.bases = np.array(self.places, np.int64)
        self.rooms = np.array(self._rooms, np.int64)

    def grow(self, level: int, size: int) -> None:
        """Twice as much for this level, so that it happens seldom, and for this size at least."""
        memory, places = self.memory, self.places
        self._rooms[level] = max(size, 2 * self._rooms[level])
        self._lay()
        counts = self.sizes.tolist()
        levels = (*self._slot_levels, *range(len(counts)))
        for of, old, new in zip(levels, places, self.places, strict=True):
            self.memory[new : new + counts[of]] = memory[old : old + counts[of]]
