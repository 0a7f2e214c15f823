"""Rows of one buffer, as the engines of all formats take them."""

from dataclasses import dataclass

import numpy as np

from spark_kafka_source.records.types import Bytes
from spark_kafka_source.records.varints import Integers, Octets
from spark_kafka_source.values.faults import Mask
from spark_kafka_source.values.octets import OctetReader

FEW = 8
"""Up to this many rows are faster one after the other, though Python runs the kernel."""

NULL_ROW = -2
"""The program number of a null row: nothing is read. -1 is a row without a program."""


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """Values in the bytes of a chunk: the value of a row is `data[starts[row]:ends[row]]`."""

    data: Bytes | Octets
    starts: Integers
    ends: Integers
    null: Mask | None = None
    """The rows whose value is null. None if there is none."""
    program_of: Integers | None = None
    """The index of each row's program, or -1 for a row without a program, which is bad. Without it
    the first program reads all rows."""

    @property
    def nulls(self) -> Mask:
        """The null rows, also if there is none."""
        return np.zeros(len(self.starts), np.bool_) if self.null is None else self.null

    @property
    def bounds(self) -> tuple[Integers, Integers]:
        """The starts and the ends, as numbers of 64 bits."""
        return self.starts.astype(np.int64, copy=False), self.ends.astype(np.int64, copy=False)


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The bytes, the bounds of each row in them, the null rows, and each row's program number."""

    source: OctetReader
    starts: Integers
    ends: Integers
    null: Mask
    program_of: Integers | None

    def of(self, rows: Integers) -> "Rows":
        """Return some of the rows."""
        numbers = None if self.program_of is None else self.program_of[rows]
        return Rows(self.source, self.starts[rows], self.ends[rows], self.null[rows], numbers)


@dataclass(frozen=True, slots=True)
class Wave:
    """Rows at the same operation, and the end of the value in each.

    `elements` are the elements to fill, or None for all elements of the level in order.
    """

    rows: Integers
    elements: Integers | None
    end: Integers

    def of(self, places: Integers) -> "Wave":
        """Return a part of the wave."""
        elements = places if self.elements is None else self.elements[places]
        return Wave(self.rows[places], elements, self.end[places])

    def ids(self) -> Integers:
        """The numbers of the elements."""
        return self.rows if self.elements is None else self.elements
