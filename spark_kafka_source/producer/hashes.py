"""Hashes of all keys of a column at once, as Kafka's own producers compute them.

Each step of a hash runs for all keys that are long enough for it. If only a few keys are much
longer than the others, they are hashed one by one.
"""

import zlib
from collections.abc import Callable
from struct import iter_unpack

import numpy as np
import numpy.typing as npt

from spark_kafka_source.records import ByteColumn, Integers

Hashes = npt.NDArray[np.uint32]
Octets = npt.NDArray[np.uint8]

FEW = 16
"""At most this many keys are hashed faster one by one."""

WORD_BYTES = 4
WORD = np.dtype("<u4")
MASK = (1 << 32) - 1

MURMUR2_SEED = 0x9747B28C
MURMUR2_FACTOR = 0x5BD1E995
MURMUR2_SHIFT = 24
_MASKS = np.array([0, 0xFF, 0xFFFF, 0xFFFFFF], np.uint32)
"""Masks of the lowest bytes of a word; the index is the number of bytes."""

CRC32_POLYNOMIAL = 0xEDB88320


def murmur2(keys: ByteColumn) -> Hashes:
    """Return Java's `org.apache.kafka.common.utils.Utils.murmur2` of each key, as unsigned 32 bits.

    A null hashes as an empty key.
    """
    data, starts = keys.data, keys.starts
    words = _words(data)
    lengths = np.maximum(keys.lengths, 0)
    steps = lengths // WORD_BYTES
    hashes = lengths.astype(np.uint32) ^ np.uint32(MURMUR2_SEED)
    # All keys have these steps, so no rows are selected: that costs more than the hash itself.
    step = int(steps.min()) if len(steps) > FEW else 0
    for earlier in range(step):
        hashes = _mixed(hashes, words[starts + WORD_BYTES * earlier])
    rows = np.flatnonzero(steps > step)
    while len(rows) > FEW:
        hashes[rows] = _mixed(hashes[rows], words[starts[rows] + WORD_BYTES * step])
        step += 1
        rows = rows[steps[rows] > step]
    for row in rows.tolist():
        first, stop = (int(starts[row]) + WORD_BYTES * int(each) for each in (step, steps[row]))
        hashes[row] = _mixed_one_by_one(int(hashes[row]), data[first:stop].tobytes())
    return _finished(hashes, words, starts + lengths, lengths % WORD_BYTES)


def murmur2_of(key: bytes) -> int:
    """Return the murmur2 hash of one key."""
    words = len(key) // WORD_BYTES * WORD_BYTES
    value = _mixed_one_by_one(len(key) ^ MURMUR2_SEED, key[:words])
    if words < len(key):
        rest = int.from_bytes(key[words:], "little")
        value = (value ^ rest) * MURMUR2_FACTOR & MASK
    value = (value ^ value >> 13) * MURMUR2_FACTOR & MASK
    return value ^ value >> 15


def _words(data: Octets) -> Hashes:
    """Return the word of 4 bytes that begins at each byte. Short data is filled with zeros."""
    if len(data) < WORD_BYTES:
        return np.frombuffer(data.tobytes().ljust(WORD_BYTES, b"\0"), WORD)
    return np.ndarray(len(data) - WORD_BYTES + 1, WORD, data, strides=(1,))


def _mixed(hashes: Hashes, words: Hashes) -> Hashes:
    factor = np.uint32(MURMUR2_FACTOR)
    words = words * factor
    words ^= words >> np.uint32(MURMUR2_SHIFT)
    words *= factor
    mixed: Hashes = (hashes * factor) ^ words
    return mixed


def _mixed_one_by_one(value: int, words: bytes) -> int:
    for (word,) in iter_unpack("<I", words):
        mixed = word * MURMUR2_FACTOR & MASK
        mixed = (mixed ^ mixed >> MURMUR2_SHIFT) * MURMUR2_FACTOR & MASK
        value = (value * MURMUR2_FACTOR & MASK) ^ mixed
    return value


def _finished(hashes: Hashes, words: Hashes, ends: Integers, left: Integers) -> Hashes:
    """Mix in the last bytes of each key, of which `left` are no whole word, and finish."""
    # Read the word that ends with the key; near the beginning of the data, read the first word.
    at = np.maximum(ends - WORD_BYTES, 0)
    last = words[at] >> (8 * (ends - left - at)).astype(np.uint32)
    last &= _MASKS[left]
    factor = np.uint32(MURMUR2_FACTOR)
    hashes = np.where(left > 0, (hashes ^ last) * factor, hashes)
    hashes ^= hashes >> np.uint32(13)
    hashes *= factor
    hashes ^= hashes >> np.uint32(15)
    return hashes


def crc32(keys: ByteColumn) -> Hashes:
    """Return the CRC-32 of each key, that of `zlib`. A null hashes as an empty key."""
    data, starts = keys.data, keys.starts
    lengths = np.maximum(keys.lengths, 0)
    hashes = np.full(len(lengths), MASK, np.uint32)
    rows, place = np.flatnonzero(lengths), 0
    while len(rows) > FEW:
        held = hashes[rows]
        octets = held.astype(np.uint8) ^ data[starts[rows] + place]
        hashes[rows] = _CRC32_TABLE[octets] ^ held >> np.uint32(8)
        place += 1
        rows = rows[lengths[rows] > place]
    hashes ^= np.uint32(MASK)
    for row in rows.tolist():
        whole = data[starts[row] : starts[row] + lengths[row]]
        hashes[row] = zlib.crc32(whole.tobytes())
    return hashes


def _crc32_table() -> Hashes:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = table >> np.uint32(1) ^ (table & np.uint32(1)) * np.uint32(CRC32_POLYNOMIAL)
    return table


_CRC32_TABLE = _crc32_table()

Hash = Callable[[ByteColumn], Hashes]
HashOfOne = Callable[[bytes], int]
