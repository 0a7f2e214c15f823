"""Slots of all levels, filled by a decoder, and the parent of each element."""

from itertools import accumulate

import numpy as np

from spark_kafka_source.records.varints import Integers
from spark_kafka_source.values.columns import Layout

ITEMS_A_ROW = 3
"""The initial room, in items per row for each level. There is less room if the slots together would
have more numbers than there are bytes."""
LEAST_NUMBERS = 8_192
"""The least initial room of all levels together. A row that finds too little is read again from its
start, so few rows, of which each may have many items, need more than their number says."""

_NONE = np.zeros(0, np.int64)


class Slots:
    """Arrays of all slots, and parents of all elements. `sizes` counts each level's elements."""

    def __init__(self, layout: Layout, rows: int) -> None:
        self.layout = layout
        self.sizes = [rows] + [0] * (len(layout.levels_above) - 1)
        self._levels = layout.slot_levels
        # Most slots of rows are replaced as a whole, so memory is allocated only when needed.
        self._arrays = [_NONE] * len(layout.slot_levels)
        self.parents = [_NONE] * len(layout.levels_above)
        self.levels_above = layout.levels_above

    def add(self, level: int, parents: Integers, counts: Integers) -> Integers:
        """Add `counts` elements to these parents, and return the number of each parent's first."""
        ends = np.cumsum(counts)
        size = self.sizes[level]
        total = size + int(ends[-1])
        if total > len(self.parents[level]):
            self._grow(level, total)
        self.parents[level][size:total] = np.repeat(parents, counts)
        self.sizes[level] = total
        return size + ends - counts

    def fill(self, slot: int, values: Integers) -> None:
        """Set the slot to these values, one for each row, without a copy."""
        self._arrays[slot] = values

    def array(self, slot: int) -> Integers:
        """Return the slot's array, for writing."""
        if not self._levels[slot] and not len(self._arrays[slot]):
            self._arrays[slot] = np.zeros(self.sizes[0], np.int64)
        return self._arrays[slot]

    def replace(self, rows: Integers, other: "Slots") -> None:
        """Replace all that these rows have with the rows of `other`, in the same order."""
        firsts = self.sizes.copy()
        for level, above in enumerate(self.levels_above):
            if level:
                parents, size = self.parents[level], self.sizes[level]
                added = other.parents[level]
                if above == 0:
                    parents[:size][np.isin(parents[:size], rows)] = -1
                moved = rows[added] if above == 0 else added + firsts[above]
                if len(added):
                    self.add(level, np.where(added < 0, -1, moved), np.ones(len(added), np.int64))
        for slot, level in enumerate(self._levels):
            values = other.values(slot, level)
            if level:
                self._arrays[slot][firsts[level] : self.sizes[level]] = values
            else:
                # A copy, since slots may share an array: one value ends where the next one begins.
                self._arrays[slot] = self.array(slot).copy()
                self._arrays[slot][rows] = values

    def _grow(self, level: int, total: int) -> None:
        """Double the room, so that growth is rare."""
        room = max(total, min(2 * len(self.parents[level]), total + (1 << 20)))
        size = self.sizes[level]
        for slot, of in enumerate(self._levels):
            if of == level:
                self._arrays[slot] = _larger(self._arrays[slot], size, room)
        self.parents[level] = _larger(self.parents[level], size, room)

    def values(self, slot: int, level: int) -> Integers:
        """Return the valid part of a slot."""
        values, size = self._arrays[slot], self.sizes[level]
        return values if len(values) == size else self.array(slot)[:size]

    def lay(self, elements: list[Integers], sizes: list[int]) -> None:
        """Set the arrays of all slots, and then the parents of each level, without a copy."""
        slots = len(self._levels)
        self._arrays, self.parents, self.sizes = elements[:slots], elements[slots:], sizes


def _larger(array: Integers, size: int, room: int) -> Integers:
    larger = np.zeros(room, np.int64)
    larger[:size] = array[:size]
    return larger


class Memory:
    """Block of memory that a kernel fills: the elements of all slots, the parents of all levels."""

    def __init__(self, layout: Layout, rows: int, data_bytes: int) -> None:
        levels = len(layout.levels_above)
        self._slot_levels = layout.slot_levels
        of_items = levels - 1 + sum(level > 0 for level in layout.slot_levels)
        numbers = min(ITEMS_A_ROW * rows * of_items, data_bytes)
        items = max(numbers, LEAST_NUMBERS) // max(of_items, 1)
        self._rooms = [rows] + [items] * (levels - 1)
        self.level_of = np.array(layout.slot_levels, np.int64)
        self.sizes = np.zeros(levels, np.int64)
        self.sizes[0] = rows
        self._lay()

    def _lay(self) -> None:
        *self.places, size = accumulate(self._each(self._rooms), initial=0)
        self.cells = np.zeros(size, np.int64)
        self.bases = np.array(self.places, np.int64)
        self.rooms = np.array(self._rooms, np.int64)

    def _each(self, of_levels: list[int]) -> list[int]:
        """Return the level's value for each slot, and for each level's parents. Rows have none."""
        return [*(of_levels[level] for level in self._slot_levels), 0, *of_levels[1:]]

    def arguments(self) -> tuple[Integers, ...]:
        """Return the arguments of a kernel for this memory, from `memory` to `before`."""
        return self.cells, self.bases, self.level_of, self.rooms, self.sizes, self.sizes.copy()

    def elements(self) -> list[Integers]:
        """Return the elements of each slot, and then the parents of each level."""
        places = zip(self.places, self._each(self.sizes.tolist()), strict=True)
        return [self.cells[place : place + count] for place, count in places]

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
            self.cells[place : place + len(elements)] = elements
