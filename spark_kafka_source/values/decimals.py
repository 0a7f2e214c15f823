"""Decimals as Arrow has them, 128 bits, of two's complement in as many bytes as were written."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

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


def minimal_bytes(array: pa.Array, size: int | None = None) -> pa.BinaryArray:
    """The unscaled values in the fewest bytes, or in `size`, the highest first."""
    count = len(array)
    data = np.frombuffer(array.buffers()[1], np.uint8)
    rows = data[array.offset * _BYTES :][: count * _BYTES].reshape(count, _BYTES)[:, ::-1]
    if size is None:
        present = _needed(rows)
    else:
        sign = np.where(rows[:, :1] >= 128, 255, 0).astype(np.uint8)
        rows = np.concatenate((np.repeat(sign, max(size - _BYTES, 0), axis=1), rows), axis=1)
        rows = rows[:, rows.shape[1] - size :]
        present = np.ones(rows.shape, np.bool_)
    bounds = np.zeros(count + 1, np.int32)
    np.cumsum(present.sum(axis=1), out=bounds[1:])
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(np.ascontiguousarray(rows[present]))]
    return pa.Array.from_buffers(pa.binary(), count, buffers)


def _needed(rows: Octets) -> npt.NDArray[np.bool_]:
    """Which bytes say more than the sign of the next one does."""
    sign = np.where(rows[:, :1] >= 128, 255, 0)
    # A byte of the sign only is left out if the one after it begins with that sign.
    other = (rows[:, :-1] != sign) | ((rows[:, 1:] >= 128) != (sign > 0))
    needed: npt.NDArray[np.bool_] = np.ones(rows.shape, np.bool_)
    needed[:, :-1] = np.logical_or.accumulate(other, axis=1)
    return needed
