"""Zigzag varints of whole columns, packed row by row into an Arrow column.

The way back is `varints`, which says what a zigzag varint is.
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
"""How many bytes each row's varint takes: one number where all take as many."""

SEPTET = 7
SIGNED = tuple(map(np.dtype, (np.int8, np.int16, np.int32, np.int64)))
UNSIGNED = {each: np.dtype(f"u{each.itemsize}") for each in SIGNED}
PAIR = np.dtype("<u2")
_PAIRS = np.arange(1 << 2 * SEPTET).astype(PAIR)
_PAIRS[MORE:] = (_PAIRS[MORE:] & (MORE - 1)) | MORE | (_PAIRS[MORE:] >> SEPTET) << 8
"""All varints of one byte or two, which most are, by what they are of."""

OFFSET_TYPES: dict[pa.DataType, type[np.int32] | type[np.int64]] = {
    pa.binary(): np.int32,
    pa.large_binary(): np.int64,
}


@dataclass(frozen=True, slots=True)
class Varints:
    """A column of varints: a row each, or one where all are alike."""

    zigzag: npt.NDArray[np.unsignedinteger[Any]]
    widths: Widths
    least: int
    most: int
    """No width is less, and none more."""

    @classmethod
    def of(cls, values: Integers | npt.NDArray[np.int32] | int) -> "Varints":
        """Those of signed integers; `values` has a row or more."""
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
        """Those of the rows from `start` to `stop`."""
        if len(self.zigzag) == 1:
            return self
        widths = self.widths if isinstance(self.widths, int) else self.widths[start:stop]
        return Varints(self.zigzag[start:stop], widths, self.least, self.most)

    def fill(self, columns: Octets) -> None:
        """Writes one row for each row of `columns`, which are as many as the longest has bytes."""
        if self.most == PAIR.itemsize:
            columns.view(PAIR)[:, 0] = _PAIRS.take(self.zigzag)
            return
        for place in range(self.most):
            columns[:, place] = self._octet(place)

    def mark(self, present: npt.NDArray[np.bool_]) -> None:
        """Says which of those bytes count."""
        for place in range(self.least, self.most):
            present[:, place] = self.zigzag >= self.zigzag.dtype.type(1 << SEPTET * place)

    def _octet(self, place: int) -> Octets:
        """The byte at this place, where there is one."""
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
    """What `pack` makes of some rows, by their numbers in the table that they are of."""

    array: pa.Array
    first: int

    def part(self, start: int, stop: int) -> pa.Array:
        """The rows from `start` to `stop`, and the one after them: the next, or what is last."""
        return self.array.slice(start - self.first, stop - start + 1)


def varint_width(zigzag: int) -> int:
    """The bytes of one varint."""
    return max(1, -(-zigzag.bit_length() // SEPTET))


def varint_widths(
    zigzag: npt.NDArray[np.unsignedinteger[Any]], least: int = 1, most: int = VARLONG_BYTES
) -> Octets:
    """The bytes of each, which are known to be `least` to `most`."""
    widths = np.full(len(zigzag), least, np.uint8)
    for width in range(least, min(most, varint_width(int(zigzag.max(initial=0))))):
        widths += zigzag >= zigzag.dtype.type(1 << SEPTET * width)
    return widths


def pack(
    columns: Sequence[Varints], count: int, binary: pa.DataType, last: bytes = b""
) -> pa.Array:
    """The varints of all `columns` next to each other: an element for each of `count` rows.

    `last` is one element more, after those. `binary` is `pa.binary()` or `pa.large_binary()`.
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
    """The bytes of all columns in each row, of which some have not the same in all."""
    alike = sum(column.most for column in columns if column.least == column.most)
    widths = np.full(count, alike, np.int32)
    for column in columns:
        if column.least < column.most:
            widths += column.widths
    return widths


def _zigzag(
    signed: npt.NDArray[np.signedinteger[Any]], lowest: int, highest: int
) -> npt.NDArray[np.unsignedinteger[Any]]:
    """In the fewest bits that hold them all: the fewer, the sooner."""
    bits = max(_folded(lowest), _folded(highest)).bit_length()
    narrow = next(each for each in SIGNED if bits <= 8 * each.itemsize)
    signed = signed.astype(narrow, copy=False)
    one, sign = narrow.type(1), narrow.type(8 * narrow.itemsize - 1)
    folded = (signed << one) ^ (signed >> sign)
    return folded.view(UNSIGNED[narrow])


def _width_bounds(lowest: int, highest: int) -> tuple[int, int]:
    """No varint of a number between them has fewer bytes, and none more."""
    ends = varint_width(_folded(lowest)), varint_width(_folded(highest))
    return (1 if lowest < 0 <= highest else min(ends)), max(ends)


def _folded(value: int) -> int:
    return 2 * value if value >= 0 else -2 * value - 1
