"""Decimals as Arrow has them, 128 bits, of two's complement in as many bytes as were written."""

import numpy as np
import numpy.typing as npt

from spark_kafka_source.records.varints import Integers, Octets

_BYTES = 16
_LOW = (1 << 64) - 1


def decimals(
    data: Octets, start: Integers, end: Integers, precision: int
) -> tuple[Octets, npt.NDArray[np.bool_]]:
    """All of them, 16 bytes each, and which are bad: without bytes, or of too many digits.

    The highest byte comes first. Each bad one is 0.
    """
    length = end - start
    bad = length <= 0
    rows = np.zeros((len(start), _BYTES), np.uint8)
    if len(data):
        negative = data.take(start, mode="clip") >= 128
        rows[negative] = 255
        for place in range(min(_BYTES, int(length.max(initial=0)))):
            there = length > place
            found = data.take(end - 1 - place, mode="clip")
            rows[:, place] = np.where(there, found, rows[:, place])
        for row in np.flatnonzero(length > _BYTES).tolist():
            # More bytes than are needed, which Java takes, too.
            above = data[start[row] : end[row] - _BYTES]
            sign = 255 if rows[row, -1] >= 128 else 0
            bad[row] = not (above == sign).all()
    bad |= _beyond(rows, precision)
    rows[bad] = 0
    return rows.reshape(-1), bad


def _beyond(rows: Octets, precision: int) -> npt.NDArray[np.bool_]:
    """Which have more digits than that."""
    halves = rows.view("<u8")
    low, high = halves[:, 0], halves[:, 1].view(np.int64)
    most = 10**precision - 1
    least_low, least_high = -most & _LOW, -most >> 64
    above = (high > most >> 64) | ((high == most >> 64) & (low > np.uint64(most & _LOW)))
    below = (high < least_high) | ((high == least_high) & (low < np.uint64(least_low)))
    beyond: npt.NDArray[np.bool_] = above | below
    return beyond
