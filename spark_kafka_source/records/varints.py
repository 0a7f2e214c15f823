"""Zigzag varints: decoding of one or of many at once, and encoding of one.

https://protobuf.dev/programming-guides/encoding/#varints defines them: seven bits a byte, the
lowest first. Kafka calls them varint (32 bits, 5 bytes at most) and varlong (64 bits, 10 bytes).
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from spark_kafka_source.errors import ProtocolError
from spark_kafka_source.records.types import Bytes

Integers = npt.NDArray[np.int64]
Octets = npt.NDArray[np.uint8]

VARINT_BYTES = 5
VARLONG_BYTES = 10
MORE = 128
"""The bit that says that another byte follows."""

NOWHERE = 1 << 40
"""The position after a varint that does not end: beyond every buffer."""


def varint(data: Bytes, position: int, max_bytes: int = VARINT_BYTES) -> tuple[int, int]:
    """Return the zigzag varint at `position`, and the next position. Or raise `ProtocolError`."""
    value = 0
    for index, byte in enumerate(data[position : position + max_bytes]):
        value |= (byte & 127) << 7 * index
        if byte < 128:
            return (value >> 1) ^ -(value & 1), position + index + 1
    raise ProtocolError(f"no varint of {max_bytes} bytes or fewer at byte {position}")


def varints(
    data: Octets, positions: Integers, max_bytes: int = VARINT_BYTES
) -> tuple[Integers, Integers]:
    """Return the zigzag varints at all `positions`, and the positions after them.

    Never reads outside `data`, and never fails. If no varint ends within `max_bytes`, the position
    after it is `NOWHERE` or beyond the end of `data`. The caller checks all positions once.
    """
    low: Octets = data.take(positions, mode="clip")
    after = positions + 1
    if low.max(initial=0) < MORE:
        return _signed(low), after
    more = low >> 7
    high: Octets = data.take(after, mode="clip") * more
    after += more
    value = _signed((low & 127) | high.astype(np.uint16) << 7)
    if high.max() >= MORE:
        rows = np.flatnonzero(high >= MORE)
        value[rows], after[rows] = _long_varints(data, positions[rows], max_bytes)
    return value, after


def _long_varints(data: Octets, positions: Integers, max_bytes: int) -> tuple[Integers, Integers]:
    value = np.zeros(len(positions), np.uint64)
    more: Octets = np.ones(len(positions), np.uint8)
    after = positions.copy()
    for shift in range(0, 7 * max_bytes, 7):
        byte: Octets = data.take(after, mode="clip") * more
        value |= (byte & 127).astype(np.uint64) << np.uint64(shift)
        after += more
        more = byte >> np.uint8(7)
        if not more.any():
            break
    else:
        after[more != 0] = NOWHERE
    return _signed(value), after


def _signed(zigzag: npt.NDArray[np.integer[Any]]) -> Integers:
    """Unfold unsigned integers of any width in that width: narrow types are faster."""
    one = zigzag.dtype.type(1)
    folded = (zigzag >> one) ^ -(zigzag & one)
    return folded.view(f"i{zigzag.itemsize}").astype(np.int64, copy=False)


def encode_varint(value: int) -> bytes:
    """Encode a signed 64-bit integer as a zigzag varint. Kafka's varint and varlong are alike."""
    left = (value << 1) ^ (value >> 63)
    if left < 128:
        return bytes((left,))
    septets = bytearray()
    while left > 127:
        septets.append(left & 127 | 128)
        left >>= 7
    septets.append(left)
    return bytes(septets)
