"""Reader of numbers at many positions of the same bytes at once. It never reads outside them.

Positions are 0 or more. Beyond the end it returns zeros, or the last bytes. The caller compares the
positions after each value with the value's end.
"""

import numpy as np
import numpy.typing as npt

from spark_kafka_source.records.types import Bytes
from spark_kafka_source.records.varints import NOWHERE, Integers, Octets

Uint64s = npt.NDArray[np.uint64]
Bounds = npt.NDArray[np.int32]

_WORD = 8
_MORE = np.uint64(0x8080808080808080)
_ONES = np.uint64(0x0101010101010101)
_FOLDS = tuple(
    (np.uint64(low), np.uint64(high), np.uint64(shift))
    for low, high, shift in (
        (0x007F007F007F007F, 0x7F007F007F007F00, 1),
        (0x00003FFF00003FFF, 0x3FFF00003FFF0000, 2),
        (0x000000000FFFFFFF, 0x0FFFFFFF00000000, 4),
    )
)
"""Steps that fold septets: into pairs, then into fours, then into one number of 56 bits."""
_ONE, _SEVEN, _TOP = np.uint64(1), np.uint64(7), np.uint64(56)


class OctetReader:
    """Reader of one buffer."""

    def __init__(self, data: Bytes | Octets) -> None:
        self.data: Octets = np.frombuffer(data, np.uint8)
        self.data.flags.writeable = False
        whole = self.data
        if len(whole) < _WORD:
            whole = np.concatenate((whole, np.zeros(_WORD - len(whole), np.uint8)))
        self._last = len(whole) - _WORD
        # A view of the eight bytes from every position on, without a copy.
        self._words: Uint64s = np.ndarray((self._last + 1,), "<u8", whole.data, strides=(1,))
        self.longs: Integers = self._words.view("<i8")
        """The same as signed numbers, for kernels, which check positions themselves."""
        padded = np.concatenate((whole[self._last :], np.zeros(_WORD, np.uint8)))
        self._tail: Uint64s = np.ndarray((_WORD + 1,), "<u8", padded.data, strides=(1,)).copy()

    def octets(self, at: Integers) -> Octets:
        """Return the byte at each position."""
        if not len(self.data):
            return np.zeros(len(at), np.uint8)
        return self.data.take(at, mode="clip")

    def words(self, at: Integers) -> Uint64s:
        """Return the eight bytes from each position on, with the first byte as the lowest."""
        beyond = at > self._last
        if not np.count_nonzero(beyond):
            gathered: Uint64s = self._words[at]
        else:
            gathered = self._words[np.minimum(at, self._last)]
            rows = np.flatnonzero(beyond)
            gathered[rows] = self._tail[np.minimum(at[rows] - self._last, _WORD)]
        return gathered.astype(np.uint64, copy=False)

    def varints(self, at: Integers) -> tuple[Integers, Integers]:
        """Return zigzag varints and the positions after them, `NOWHERE` after one over 64 bits."""
        low = self.octets(at)
        after = at + 1
        rows = (low >= 128).nonzero()[0]
        if not len(rows):
            return _signed(low), after
        if 2 * len(rows) > len(at):
            long, after = self._long(at)
            return unzigzag(long), after
        value = _signed(low)
        long, after[rows] = self._long(at[rows])
        value[rows] = unzigzag(long)
        return value, after

    def unsigned(self, at: Integers) -> tuple[Integers, Integers]:
        """Return varints as their 64 bits, and the positions after them, as `varints` does."""
        low = self.octets(at)
        value, after = low.astype(np.int64), at + 1
        rows = (low >= 128).nonzero()[0]
        if not len(rows):
            return value, after
        if 2 * len(rows) > len(at):
            long, after = self._long(at)
            return long.view(np.int64), after
        long, after[rows] = self._long(at[rows])
        value[rows] = long.view(np.int64)
        return value, after

    def _long(self, at: Integers) -> tuple[Uint64s, Integers]:
        word = self.words(at)
        stop = ~word & _MORE
        below = (stop & (~stop + _ONE)) - _ONE
        value = word & below & ~_MORE
        for low, high, shift in _FOLDS:
            value = (value & low) | ((value & high) >> shift)
        after = at + (((below & _ONES) * _ONES) >> _TOP).view(np.int64)
        if not stop.all():
            rows = np.flatnonzero(stop == 0)
            value[rows], after[rows] = self._nine_or_ten_bytes(value[rows], at[rows])
        return value, after

    def _nine_or_ten_bytes(self, value: Uint64s, at: Integers) -> tuple[Uint64s, Integers]:
        """Complete varints of nine or ten bytes. `value` holds the first eight already."""
        ninth, tenth = self.octets(at + 8), self.octets(at + 9)
        ten = ninth >= 128
        value |= (ninth & 127).astype(np.uint64) << _TOP
        value |= (tenth & ten).astype(np.uint64) << (_TOP + _SEVEN)
        return value, np.where(ten, np.where(tenth > 1, NOWHERE, at + 10), at + 9)


def unzigzag(value: Uint64s) -> Integers:
    """Decode zigzag numbers to signed numbers."""
    return (value >> _ONE ^ (~(value & _ONE) + _ONE)).view(np.int64)


def _signed(zigzag: Octets) -> Integers:
    return ((zigzag >> 1) ^ -(zigzag & 1)).view(np.int8).astype(np.int64)
