"""Limit for the memory of a row's items, relative to the bytes of the row.

An empty message in a list takes two bytes, and becomes a number in each column of the list. With
many columns, a few bytes make many numbers.
"""

import numpy as np

from spark_kafka_source.records.varints import Integers
from spark_kafka_source.values.columns import Layout
from spark_kafka_source.values.faults import Fault
from spark_kafka_source.values.outcome import COLUMNS, Outcome

SLOTS_OF_A_BYTE = 64
SLOTS_OF_A_ROW = 1 << 14
"""The numbers that a row may take beyond those for its bytes: a few items of very many columns."""
_LEAST_BYTES = 2


class Room:
    """Count of numbers in wide levels, whose items may make more numbers than bytes justify."""

    def __init__(self, layout: Layout, outcome: Outcome) -> None:
        widths = np.bincount(layout.slot_levels, minlength=len(layout.levels_above))
        most = SLOTS_OF_A_BYTE * _LEAST_BYTES
        self.wide = {level: n for level, n in enumerate(widths.tolist()) if level and n > most}
        self._layout, self._outcome = layout, outcome
        self._left = np.zeros(len(outcome.status) if self.wide else 0, np.int64)

    def begin(self, rows: Integers, sizes: Integers) -> None:
        """Begin with rows of these sizes in bytes."""
        if self.wide:
            self._left[rows] = SLOTS_OF_A_ROW + SLOTS_OF_A_BYTE * sizes

    def has_one(self, level: int, row: int) -> bool:
        """Count one more item, and return whether there is room for it."""
        self._left[row] -= self.wide.get(level, 0)
        return bool(self._left[row] >= 0)

    def kept(self, level: int, rows: Integers) -> Integers | None:
        """Return the items that have room, each of one of `rows`. None for all. Others are bad."""
        if level not in self.wide or not len(rows):
            return None
        counts = np.bincount(rows, minlength=len(self._left))
        self._left -= counts * self.wide[level]
        over = np.flatnonzero(self._left < 0)
        if not len(over):
            return None
        self._outcome.add(over, Fault.COUNT, COLUMNS - self._layout.slot_levels.index(level))
        return np.flatnonzero(self._left[rows] >= 0)
