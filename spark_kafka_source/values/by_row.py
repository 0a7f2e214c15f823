"""Compiled engine: it decodes one row after the other, each row with its own program."""

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
"""The initial room, in items per row for each level. There is less room if the slots together would
have more numbers than there are bytes."""

_ARGUMENT, _END = map(Row._fields.index, ("argument", "end"))


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The bytes, the bounds of each row in them, the null rows, and each row's program number."""

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
    """Fill the slots of all rows in order, and mark the bad rows."""
    linked = link(tuple(programs))
    source, starts, ends = rows.source, *map(np.ascontiguousarray, (rows.starts, rows.ends))
    numbers = np.where(rows.null, NULL_ROW, 0 if rows.program_of is None else rows.program_of)
    constants = len(source.data) - linked.constants
    room = Room(slots.layout, len(starts), len(source.data))
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
    slots.lay(room.elements(), room.sizes.tolist())


@dataclass(frozen=True, slots=True, eq=False)
class Linked:
    """Tables of several programs, joined into one."""

    table: Integers
    firsts: Integers
    """The start of each program in the table, and the end of the last."""
    mapping: Integers
    constants: int
    """The total size of all programs' constants in bytes."""


@lru_cache(maxsize=64)
def link(programs: tuple[Program, ...]) -> Linked:
    """Join the programs. Each keeps its own places in the table."""
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
    """One block of memory for the elements of all slots, and for the parents of all levels."""

    def __init__(self, layout: Layout, rows: int, data_bytes: int) -> None:
        levels = len(layout.levels_above)
        self._slot_levels = layout.slot_levels
        of_items = levels - 1 + sum(level > 0 for level in layout.slot_levels)
        items = min(ITEMS_A_ROW * rows, data_bytes // max(of_items, 1))
        self._rooms = [rows] + [items] * (levels - 1)
        self.level_of = np.array(layout.slot_levels, np.int64)
        self.sizes = np.zeros(levels, np.int64)
        self.sizes[0] = rows
        self._lay()

    def _lay(self) -> None:
        *self.places, size = accumulate(self._each(self._rooms), initial=0)
        self.memory = np.zeros(size, np.int64)
        self.bases = np.array(self.places, np.int64)
        self.rooms = np.array(self._rooms, np.int64)

    def _each(self, of_levels: list[int]) -> list[int]:
        """Return the level's value for each slot, and for each level's parents. Rows have none."""
        return [*(of_levels[level] for level in self._slot_levels), 0, *of_levels[1:]]

    def elements(self) -> list[Integers]:
        """Return the elements of each slot, and then the parents of each level."""
        places = zip(self.places, self._each(self.sizes.tolist()), strict=True)
        return [self.memory[place : place + count] for place, count in places]

    def grow(self, level: int, size: int) -> None:
        """Double the room of this level and of all half-full levels, so that growth is rare.

        This level gets room for at least `size` elements.
        """
        kept, sizes = self.elements(), self.sizes.tolist()
        for other in range(1, len(sizes)):
            if other == level or 2 * sizes[other] > self._rooms[other]:
                self._rooms[other] *= 2
        self._rooms[level] = max(size, self._rooms[level])
        self._lay()
        for elements, place in zip(kept, self.places, strict=True):
            self.memory[place : place + len(elements)] = elements
