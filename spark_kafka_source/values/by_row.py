"""The engine that is compiled: one row after the other, whichever program each is read by."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

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
    room = Room.of(slots.layout, len(starts))
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
        level, size = scratch.tolist()
        room = room.larger(level, size)
    room.fill(slots)


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


@dataclass(frozen=True, slots=True, eq=False)
class Room:
    """One piece of memory for the elements of all slots, and for the parents of all levels."""

    memory: Integers
    bases: Integers
    level_of: Integers
    rooms: Integers
    sizes: Integers

    @classmethod
    def of(cls, layout: Layout, rows: int) -> "Room":
        """Room for so many rows, and some items of each level."""
        levels = len(layout.levels_above)
        rooms = np.full(levels, ITEMS_A_ROW * rows)
        sizes = np.zeros(levels, np.int64)
        rooms[0] = sizes[0] = rows
        return cls._laid(np.array(layout.slot_levels, np.int64), rooms, sizes)

    @classmethod
    def _laid(cls, level_of: Integers, rooms: Integers, sizes: Integers) -> "Room":
        counts = _of_each(level_of, rooms)
        ends = np.cumsum(counts)
        return cls(np.zeros(int(ends[-1]), np.int64), ends - counts, level_of, rooms, sizes)

    def larger(self, level: int, size: int) -> "Room":
        """Twice as much for this level, so that it happens seldom, and for this size at least."""
        rooms = self.rooms.copy()
        rooms[level] = max(size, 2 * int(rooms[level]))
        room = self._laid(self.level_of, rooms, self.sizes)
        for old, new in zip(self._elements(), room._elements(), strict=True):
            new[:] = old
        return room

    def fill(self, slots: Slots) -> None:
        """Hand the elements over."""
        slots.sizes = self.sizes.tolist()
        elements = self._elements()
        for slot in range(len(self.level_of)):
            slots.fill(slot, next(elements))
        slots.parents = list(elements)

    def _elements(self) -> Iterator[Integers]:
        """Those of each slot, and the parents of each level."""
        counts = _of_each(self.level_of, self.sizes)
        for base, count in zip(self.bases.tolist(), counts.tolist(), strict=True):
            yield self.memory[base : base + count]


def _of_each(level_of: Integers, levels: Integers) -> Integers:
    """What is of each level, for each slot, and for the parents of each level: rows have none."""
    each = levels[np.concatenate((level_of, np.arange(len(levels))))]
    each[len(level_of)] = 0
    return each
