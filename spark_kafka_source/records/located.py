"""What stage 2a finds: arrays of where in a chunk's data each record's fields lie."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spark_kafka_source.records.varints import Integers

Mask = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Slices:
    """Slices of a chunk's data, one per row, in their order and without overlap.

    `bounds` has the start and the end of each in turn. A null one has no bytes.
    """

    bounds: Positions
    null: Mask

    @classmethod
    def room(cls, count: int) -> "Slices":
        """Room for so many, to be filled in."""
        return cls(np.empty(2 * count, np.int32), np.empty(count, np.bool_))

    @classmethod
    def of(cls, start: Integers, length: Integers) -> "Slices":
        """Those that start here and are so long, -1 where they are null."""
        slices = cls.room(len(start))
        slices.bounds[0::2] = start
        slices.bounds[1::2] = start + np.maximum(length, 0)
        np.less(length, 0, out=slices.null)
        return slices

    def rows(self, first: int, stop: int) -> "Slices":
        """The rows from `first` to `stop`; a view."""
        return Slices(self.bounds[2 * first : 2 * stop], self.null[first:stop])

    def where(self, wanted: Mask) -> "Slices":
        """The rows that are wanted; a copy."""
        return Slices(self.bounds.reshape(-1, 2)[wanted].reshape(-1), self.null[wanted])


@dataclass(frozen=True, slots=True)
class Located:
    """One row per record, in arrays; positions count bytes of the chunk's data.

    From `headers_start` to `end` lie `header_count` headers, not looked into so far.
    """

    offset: Integers
    timestamp_ms: Integers
    timestamp_type: Integers
    key: Slices
    value: Slices
    headers_start: Integers
    header_count: Integers
    end: Integers

    def rows(self, first: int, stop: int) -> "Located":
        """The rows from `first` to `stop`; a view."""
        if first == 0 and stop >= len(self.offset):
            return self
        return Located(
            self.offset[first:stop],
            self.timestamp_ms[first:stop],
            self.timestamp_type[first:stop],
            self.key.rows(first, stop),
            self.value.rows(first, stop),
            self.headers_start[first:stop],
            self.header_count[first:stop],
            self.end[first:stop],
        )

    def where(self, wanted: Mask) -> "Located":
        """The rows that are wanted; a copy."""
        return Located(
            self.offset[wanted],
            self.timestamp_ms[wanted],
            self.timestamp_type[wanted],
            self.key.where(wanted),
            self.value.where(wanted),
            self.headers_start[wanted],
            self.header_count[wanted],
            self.end[wanted],
        )
