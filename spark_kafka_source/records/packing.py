"""Zigzag varints of whole columns, packed row by row into an Arrow column.

The way back is `varints`, which says what a zigzag varint is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_kafka_source.records.varints import MORE, VARLONG_BYTES, Integers, Octets

Widths: TypeAlias = int | Octets
"""How many bytes each row's varint takes: one number where all take as many."""

SEPTET = 7
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
    """A column of varints: a row each, or one for all rows."""

    zigzag: npt.NDArray[np.unsignedinteger[Any]]
    widths: Widths
    least: int
    most: int
    """The widths of the shortest and the longest of them."""

    @classmethod
    def of(cls, values: Integers | npt.NDArray[np.int32] | int) -> "Varints":
        """Those of signed integers; `values` has a row or more."""
        signed = np.atleast_1d(np.asarray(values))
        zigzag = _zigzag(signed)
        least, most = varint_width(int(zigzag.min())), varint_width(int(zigzag.max()))
        widths = least if least == most else varint_widths(zigzag, least, most)
        return cls(zigzag, widths, least, most)

    def fill(self, columns: Octets, present: npt.NDArray[np.bool_] | None) -> None:
        """Writes one row for each row of `columns`, and in `present` which of its bytes count."""
        if self.most == 2:
            columns.view(PAIR)[:, 0] = _PAIRS.take(self.zigzag)
        for place in range(self.most if self.most != 2 else 0):
            columns[:, place] = self._octet(place)
        if present is not None:
            for place in range(self.least, self.most):
                present[:, place] = self.zigzag >= self.zigzag.dtype.type(1 << SEPTET * place)

    def _octet(self, place: int) -> Octets:
        """The byte at this place, where there is one."""
        septet = self.zigzag >> self.zigzag.dtype.type(SEPTET * place)
        octet = septet.astype(np.uint8)
        if place < self.least - 1:
            octet |= MORE
        elif place < self.most - 1:
            octet &= MORE - 1
            octet |= (septet >= MORE).view(np.uint8) << np.uint8(SEPTET)
        return octet


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


def pack(columns: Sequence[Varints], count: int, binary: pa.DataType) -> pa.Array:
    """The varints of all `columns` next to each other: an element for each of `count` rows.

    `binary` is `pa.binary()` or `pa.large_binary()`.
    """
    most = sum(column.most for column in columns)
    rows = np.empty((count, most), np.uint8)
    ragged = any(column.least < column.most for column in columns)
    present = np.ones((count, most), np.bool_) if ragged else None
    bounds = np.empty(count + 1, OFFSET_TYPES[binary])
    widths = np.zeros(count, bounds.dtype)
    at = 0
    for column in columns:
        after = at + column.most
        column.fill(rows[:, at:after], None if present is None else present[:, at:after])
        if ragged:
            widths += column.widths
        at = after
    if present is None:
        bounds[:] = np.arange(0, (count + 1) * most, most)
        data = rows.ravel()
    else:
        bounds[0] = 0
        np.cumsum(widths, out=bounds[1:])
        data = np.compress(present.ravel(), rows.ravel())
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    return pa.Array.from_buffers(binary, count, buffers)


def _zigzag(signed: npt.NDArray[np.signedinteger[Any]]) -> npt.NDArray[np.unsignedinteger[Any]]:
    """In the fewest bits that hold them all: the fewer, the sooner."""
    least, most = int(signed.min()), int(signed.max())
    for narrow in (np.int8, np.int16, np.int32):
        limits = np.iinfo(narrow)
        if limits.min <= least and most <= limits.max:
            signed = signed.astype(narrow, copy=False)
            break
    one, sign = signed.dtype.type(1), signed.dtype.type(8 * signed.itemsize - 1)
    folded = (signed << one) ^ (signed >> sign)
    return folded.view(f"u{signed.itemsize}")
