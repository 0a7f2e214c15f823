"""Layout of bytes for Arrow, in plain Python that numba compiles (see `compiled`).

An engine has found the bounds, and has compared them with the end of their row.
"""

from spark_kafka_source.records.varints import Integers, Octets
from spark_kafka_source.values.octets import Bounds

HIGH_BITS = -0x7F7F7F7F7F7F7F80
"""The high bits of eight bytes, as a signed number. ASCII sets none of them."""


def measure(starts: Integers, ends: Integers, offsets: Bounds) -> int:
    """Write the offset of each slice in a gap-free layout, and return the total bytes."""
    total = 0
    offsets[0] = 0
    for row in range(len(starts)):
        total += int(ends[row]) - int(starts[row])
        if total >= 1 << 31:
            return total
        offsets[row + 1] = total
    return total


def gather(  # noqa: PLR0917  # numba takes arrays, one by one
    data: Octets,
    words: Integers,
    starts: Integers,
    ends: Integers,
    offsets: Bounds,
    out: Octets,
    out_words: Integers,
) -> bool:
    """Copy the slices to their offsets, and return whether all bytes are ASCII.

    `words` are the eight bytes from each position of `data` on, and `out_words` those of `out`.
    Slices are copied eight bytes at a time, so `out` has seven bytes more than the slices.
    """
    high, whole = 0, len(words)
    for row in range(len(starts)):
        at, to = int(starts[row]), int(offsets[row])
        size = int(ends[row]) - at
        done = 0
        if at + size <= whole:
            while done + 8 <= size:
                word = int(words[at + done])
                out_words[to + done] = word
                high |= word
                done += 8
            if done < size:
                word = int(words[at + done]) & ((1 << 8 * (size - done)) - 1)
                out_words[to + done] = word
                high |= word
        else:
            for place in range(size):
                byte = int(data[at + place])
                out[to + place] = byte
                high |= byte
    return high & HIGH_BITS == 0
