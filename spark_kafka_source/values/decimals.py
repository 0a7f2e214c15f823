"""Decimals: from two's complement of any size to Arrow's 128 bits, and back."""

import numpy as np
import pyarrow as pa

from spark_kafka_source.records.varints import Integers, Octets
from spark_kafka_source.values.faults import Mask
from spark_kafka_source.values.octets import OctetReader, Uint64s

_BYTES, _HALF = 16, 8
_HALF_DIGITS = 19
"""Any number with fewer digits than this fits in half of the bytes."""
_LOW = (1 << 64) - 1


def decimals(
    source: OctetReader, start: Integers, end: Integers, precision: int
) -> tuple[Integers, Mask]:
    """Return all decimals as two halves each, and a mask of the bad ones. A bad one becomes 0.

    The highest byte comes first. A decimal without bytes, or with too many digits, is bad.
    """
    length = end - start
    low = _number(source, np.maximum(end - _HALF, start), length)
    high = low >> 8 * _HALF - 1
    bad = length <= 0
    long = (length > _HALF).nonzero()[0]
    if len(long):
        first = np.maximum(end[long] - _BYTES, start[long])
        high[long] = _number(source, first, length[long] - _HALF)
        bad |= _beyond(low.view(np.uint64), high, precision)
        for row in (length > _BYTES).nonzero()[0].tolist():
            # More bytes than needed are fine if they only repeat the sign. Java accepts them too.
            above = source.data[start[row] : end[row] - _BYTES]
            bad[row] |= not (above == (255 if high[row] < 0 else 0)).all()
    elif precision < _HALF_DIGITS:
        bad |= (low >= 10**precision) | (low <= -(10**precision))
    halves = np.empty((len(low), 2), np.int64)
    halves[:, 0], halves[:, 1] = low, high
    if np.count_nonzero(bad):
        halves[bad] = 0
    return halves, bad


def _number(source: OctetReader, at: Integers, size: Integers) -> Integers:
    """Return the numbers of up to eight bytes at these positions."""
    first = source.words(at).byteswap().view(np.int64)
    number: Integers = first >> 8 * (_HALF - np.minimum(np.maximum(size, 1), _HALF))
    return number


def _beyond(low: Uint64s, high: Integers, precision: int) -> Mask:
    """Return which numbers have more digits than `precision`."""
    most = 10**precision - 1
    least_low, least_high = -most & _LOW, -most >> 64
    above = (high > most >> 64) | ((high == most >> 64) & (low > np.uint64(most & _LOW)))
    below = (high < least_high) | ((high == least_high) & (low < np.uint64(least_low)))
    beyond: Mask = above | below
    return beyond


def minimal_bytes(array: pa.Array, size: int | None = None) -> pa.BinaryArray:
    """Return the unscaled values in the fewest bytes, or in `size` bytes, highest byte first."""
    count = len(array)
    data = np.frombuffer(array.buffers()[1], np.uint8)
    data = data[array.offset * _BYTES :][: count * _BYTES]
    low, high = data.view("<i8").reshape(count, 2).T
    rows = data.reshape(count, _BYTES)[:, ::-1]
    if size is None and np.array_equal(high, low >> 8 * _HALF - 1):
        rows, present = _short(low)
    elif size is None:
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


def _short(low: Integers) -> tuple[Octets, Mask]:
    """Return the bytes of 64-bit numbers with the needed ones first, and which are needed."""
    most = low ^ (low >> 8 * _HALF - 1)
    width = np.ones(len(low), np.int64)
    for size in range(1, _HALF):
        width += most >= 1 << 8 * size - 1
    first = (low << 8 * (_HALF - width)).byteswap().view(np.uint8).reshape(len(low), _HALF)
    widest = int(width.max(initial=0))
    return first[:, :widest], np.arange(widest) < width[:, np.newaxis]


def _needed(rows: Octets) -> Mask:
    """Return which bytes are needed, beyond those that only repeat the sign."""
    sign = np.where(rows[:, :1] >= 128, 255, 0)
    # A byte of only the sign can be dropped if the next byte starts with the same sign bit.
    other = (rows[:, :-1] != sign) | ((rows[:, 1:] >= 128) != (sign > 0))
    needed: Mask = np.ones(rows.shape, np.bool_)
    needed[:, :-1] = np.logical_or.accumulate(other, axis=1)
    return needed
