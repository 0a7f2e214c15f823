"""Result of stage 2a: arrays with the position of each record's fields in a chunk's data."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spark_kafka_source.records.varints import Integers

Mask = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Slices:
    """Slices of a chunk's data, one per row, in order and without overlap.

    `bounds` holds start and end of each slice in turn. A null slice has no bytes.
    """

    bounds: Positions
    null: Mask

    @classmethod
    def room(cls, count: int) -> "Slices":
        """Allocate room for `count` slices."""
        return cls(np.empty(2 * count, np.int32), np.empty(count, np.bool_))

    @classmethod
    def of(cls, start: Integers, length: Integers) -> "Slices":
        """Make slices from starts and lengths. The length of a null slice is -1."""
        slices = cls.room(len(start))
        slices.bounds[0::2] = start
        slices.bounds[1::2] = start + np.maximum(length, 0)
        np.less(length, 0, out=slices.null)
        return slices

    def rows(self, first: int, stop: int) -> "Slices":
        """Return the rows from `first` to `stop`, as a view."""
        return Slices(self.bounds[2 * first : 2 * stop], self.null[first:stop])

    def where(self, mask: Mask) -> "Slices":
        """Return the rows that the mask names, as a copy."""
        return Slices(self.bounds.reshape(-1, 2)[mask].reshape(-1), self.null[mask])


@dataclass(frozen=True, slots=True)
class Stamps:
    """The offsets and times of records, one row per record in each array."""

    offset: Integers
    timestamp_ms: Integers
    timestamp_type: Integers


@dataclass(frozen=True, slots=True)
class Located(Stamps):
    """Located records, one row per record in each array. Positions are bytes in the chunk's data.

    The `header_count` headers lie from `headers_start` to `end`. They are not checked yet.
    """

    key: Slices
    value: Slices
    headers_start: Integers
    header_count: Integers
    end: Integers

    def rows(self, first: int, stop: int) -> "Located":
        """Return the rows from `first` to `stop`, as a view."""
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

    def where(self, mask: Mask) -> "Located":
        """Return the rows that the mask names, as a copy."""
        return Located(
            self.offset[mask],
            self.timestamp_ms[mask],
            self.timestamp_type[mask],
            self.key.where(mask),
            self.value.where(mask),
            self.headers_start[mask],
            self.header_count[mask],
            self.end[mask],
        )
