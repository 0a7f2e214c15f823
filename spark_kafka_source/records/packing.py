"""Encoder of whole columns to zigzag varints, packed row by row into an Arrow column.

`varints` decodes them, and explains zigzag varints.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_kafka_source.records.varints import MORE, VARLONG_BYTES, Integers, Octets

Widths: TypeAlias = int | Octets
"""The size in bytes of each row's varint, or one number if all have the same size."""

SEPTET = 7
SIGNED = tuple(map(np.dtype, (np.int8, np.int16, np.int32, np.int64)))
UNSIGNED = {each: np.dtype(f"u{each.itemsize}") for each in SIGNED}
PAIR = np.dtype("<u2")
_PAIRS = np.arange(1 << 2 * SEPTET).astype(PAIR)
_PAIRS[MORE:] = (_PAIRS[MORE:] & (MORE - 1)) | MORE | (_PAIRS[MORE:] >> SEPTET) << 8
"""All varints of one or two bytes, the most frequent ones, indexed by their zigzag values."""

OFFSET_TYPES: dict[pa.DataType, type[np.int32] | type[np.int64]] = {
    pa.binary(): np.int32,
    pa.large_binary(): np.int64,
}


@dataclass(frozen=True, slots=True)
class Varints:
    """Column of varints: one row each, or a single row if all are the same."""

    zigzag: npt.NDArray[np.unsignedinteger[Any]]
    widths: Widths
    least: int
    most: int
    """The smallest and the largest width."""

    @classmethod
    def of(cls, values: Integers | npt.NDArray[np.int32] | int) -> "Varints":
        """Make a column of signed integers. `values` has at least one row."""
        if isinstance(values, int):
            return _alike(values)
        lowest, highest = int(values.min()), int(values.max())
        if lowest == highest:
            return _alike(lowest)
        zigzag = _zigzag(values, lowest, highest)
        least, most = _width_bounds(lowest, highest)
        widths = least if least == most else varint_widths(zigzag, least, most)
        return cls(zigzag, widths, least, most)

    def rows(self, start: int, stop: int) -> "Varints":
        """Return the rows from `start` to `stop`."""
        if len(self.zigzag) == 1:
            return self
        widths = self.widths if isinstance(self.widths, int) else self.widths[start:stop]
        return Varints(self.zigzag[start:stop], widths, self.least, self.most)

    def fill(self, columns: Octets) -> None:
        """Write the bytes of each varint to a row of `columns`, as wide as the longest varint."""
        if self.most == PAIR.itemsize:
            columns.view(PAIR)[:, 0] = _PAIRS.take(self.zigzag)
            return
        for place in range(self.most):
            columns[:, place] = self._octet(place)

    def mark(self, present: npt.NDArray[np.bool_]) -> None:
        """Mark which of the written bytes belong to their varints."""
        for place in range(self.least, self.most):
            present[:, place] = self.zigzag >= self.zigzag.dtype.type(1 << SEPTET * place)

    def _octet(self, place: int) -> Octets:
        """Return the byte of each varint at this place, if it has one."""
        if self.most == 1:
            return self.zigzag.astype(np.uint8)
        septet = self.zigzag >> self.zigzag.dtype.type(SEPTET * place)
        octet = septet.astype(np.uint8)
        if place < self.least - 1:
            octet |= MORE
        elif place < self.most - 1:
            octet &= MORE - 1
            octet |= (septet >= MORE).view(np.uint8) << np.uint8(SEPTET)
        return octet


@lru_cache(maxsize=256)
def _alike(value: int) -> Varints:
    zigzag = _zigzag(np.array([value]), value, value)
    width, _ = _width_bounds(value, value)
    return Varints(zigzag, width, width, width)


@dataclass(frozen=True, slots=True)
class PackedColumn:
    """Rows packed by `pack`, addressed by their row numbers in the table."""

    array: pa.Array
    first: int

    def part(self, start: int, stop: int) -> pa.Array:
        """Return the rows from `start` to `stop`, and one more: the next row or the last one."""
        return self.array.slice(start - self.first, stop - start + 1)


def varint_width(zigzag: int) -> int:
    """Return the size in bytes of one varint."""
    return max(1, -(-zigzag.bit_length() // SEPTET))


def varint_widths(
    zigzag: npt.NDArray[np.unsignedinteger[Any]], least: int = 1, most: int = VARLONG_BYTES
) -> Octets:
    """Return the size in bytes of each varint. The caller knows that it is `least` to `most`."""
    widths = np.full(len(zigzag), least, np.uint8)
    for width in range(least, min(most, varint_width(int(zigzag.max(initial=0))))):
        widths += zigzag >= zigzag.dtype.type(1 << SEPTET * width)
    return widths


def pack(
    columns: Sequence[Varints], count: int, binary: pa.DataType, last: bytes = b""
) -> pa.Array:
    """Pack the varints of all `columns` side by side, into one element for each of `count` rows.

    `last` becomes one more element at the end. `binary` is `pa.binary()` or `pa.large_binary()`.
    """
    most = sum(column.most for column in columns)
    rows = np.empty((count, most), np.uint8)
    bounds = np.empty(count + 2, OFFSET_TYPES[binary])
    places = list(pairwise(accumulate((column.most for column in columns), initial=0)))
    for column, (start, stop) in zip(columns, places, strict=True):
        column.fill(rows[:, start:stop])
    if all(column.least == column.most for column in columns):
        bounds[:-1] = np.arange(0, (count + 1) * most, most)
        packed = rows.ravel()
    else:
        present = np.ones((count, most), np.bool_)
        for column, (start, stop) in zip(columns, places, strict=True):
            column.mark(present[:, start:stop])
        bounds[0] = 0
        _widths(columns, count).cumsum(out=bounds[1:-1])
        packed = rows[present]
    bounds[-1] = bounds[-2] + len(last)
    data = np.concatenate((packed, np.frombuffer(last, np.uint8))) if last else packed
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    return pa.Array.from_buffers(binary, count + 1, buffers)


def _widths(columns: Sequence[Varints], count: int) -> npt.NDArray[np.int32]:
    """Return the total width of each row. A column may have one width or one per row."""
    alike = sum(column.most for column in columns if column.least == column.most)
    widths = np.full(count, alike, np.int32)
    for column in columns:
        if column.least < column.most:
            widths += column.widths
    return widths


def _zigzag(
    signed: npt.NDArray[np.signedinteger[Any]], lowest: int, highest: int
) -> npt.NDArray[np.unsignedinteger[Any]]:
    """Fold the signs, in the narrowest type that holds all values: narrow types are faster."""
    bits = max(_folded(lowest), _folded(highest)).bit_length()
    narrow = next(each for each in SIGNED if bits <= 8 * each.itemsize)
    signed = signed.astype(narrow, copy=False)
    one, sign = narrow.type(1), narrow.type(8 * narrow.itemsize - 1)
    folded = (signed << one) ^ (signed >> sign)
    return folded.view(UNSIGNED[narrow])


def _width_bounds(lowest: int, highest: int) -> tuple[int, int]:
    """Return the least and the most bytes of varints in this range of numbers."""
    ends = varint_width(_folded(lowest)), varint_width(_folded(highest))
    return (1 if lowest < 0 <= highest else min(ends)), max(ends)


def _folded(value: int) -> int:
    return 2 * value if value >= 0 else -2 * value - 1
