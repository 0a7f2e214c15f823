"""Slots of all levels, filled by a decoder, and the parent of each element."""

import numpy as np

from spark_kafka_source.records.varints import Integers
from spark_kafka_source.values.columns import Layout

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
        self._forgotten: dict[int, dict[int, int]] = {}

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

    def append(self, level: int, parent: int) -> int:
        """Add one element, and return its number."""
        size = self.sizes[level]
        if size == len(self.parents[level]):
            self._grow(level, size + 1)
        self.parents[level][size] = parent
        self.sizes[level] = size + 1
        return size

    def forget(self, level: int, parent: int) -> None:
        """Detach all elements that a parent has so far."""
        if self.sizes[level]:
            self._forgotten.setdefault(level, {})[parent] = self.sizes[level]

    def settle(self) -> None:
        """Set the parent of all detached elements to -1."""
        for level, until in self._forgotten.items():
            parents = self.parents[level][: self.sizes[level]]
            least = np.zeros(self.sizes[self.levels_above[level]], np.int64)
            least[list(until)] = list(until.values())
            parents[np.arange(len(parents)) < least[parents]] = -1

    def fill(self, slot: int, values: Integers) -> None:
        """Set the slot to these values, one for each row, without a copy."""
        self._arrays[slot] = values

    def array(self, slot: int) -> Integers:
        """Return the slot's array, for writing."""
        if not self._levels[slot] and not len(self._arrays[slot]):
            self._arrays[slot] = np.zeros(self.sizes[0], np.int64)
        return self._arrays[slot]

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
