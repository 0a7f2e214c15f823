"""The number of rows, their size and their fingerprint, by which replays are compared.

A row's bytes are words of 64 bits. The sum of all words, each times a constant of its own, is the
row's number: multilinear hashing, https://arxiv.org/abs/1202.4961. It tells accidents, not attacks.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_kafka_source.records.batch import crc32c
from spark_kafka_source.records.byte_columns import NULL_LENGTH, ByteColumn
from spark_kafka_source.records.varints import Integers, Octets

Words = npt.NDArray[np.uint64]
Lengths = npt.NDArray[np.int32] | Integers

FINGERPRINTS = 1 << 63
"""Fingerprints are whole numbers below this; sums of them, too, by this modulus."""

_PARTS = ("key", "value")
_WORD = 8
# A row of 8 to 4096 bytes has its first and its last so many words: the fewest with all its bytes.
_WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
_MOST_BYTES = 2 * _WORD * _WIDTHS[-1]
_KINDS = np.searchsorted(
    [_WORD - 1, *(2 * _WORD * width for width in _WIDTHS)], np.arange(_MOST_BYTES + 2)
).astype(np.uint8)
"""The kind of a row by its length: 0 if it is shorter, n for the nth width, or the last if longer.

Each kind reads a row in a way of its own.
"""
# So many stay in the processor's cache.
_BLOCK_BYTES, _BLOCK_ROWS = 1 << 19, 1 << 12


def _mixed(words: Words) -> Words:
    """Return the words so that each bit depends on all bits: the last step of MurmurHash3."""
    for constant in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        words = (words ^ (words >> np.uint64(33))) * np.uint64(constant)
    return words ^ (words >> np.uint64(33))


# Fingerprints are kept in decisions, so each version must have the same constants.
_ODD = _mixed(np.arange(1, 3 + 2 * _WIDTHS[-1], dtype=np.uint64)) | np.uint64(1)
_OF_LENGTH, _OF_KEY, _OF_WORDS = _ODD[0], _ODD[1], _ODD[2:]


def size_of(columns: pa.RecordBatch) -> int:
    """Return the bytes of all keys and values, however the rows are divided into batches."""
    names = [name for name in _PARTS if name in columns.schema.names]
    return sum(pc.sum(pc.binary_length(columns[name])).as_py() or 0 for name in names)


def fingerprint_of(columns: pa.RecordBatch) -> int:
    """Return a number for the keys and values of all rows: the sum of a number for each row.

    The order of rows does not matter, since a replay may divide them among its tasks otherwise.
    Without a column of keys all keys are null, as they are in Kafka.
    """
    keys, values = (_numbers(columns, name) for name in _PARTS)
    # Unless they are mixed, rows that swap their values have the same sum.
    rows = _mixed(keys * _OF_KEY + values)
    return int(np.add.reduce(rows)) % FINGERPRINTS


def _numbers(columns: pa.RecordBatch, name: str) -> Words:
    if name not in columns.schema.names:
        return _of_lengths(np.full(columns.num_rows, NULL_LENGTH))
    column = ByteColumn.of(name, columns[name])
    numbers = _of_lengths(column.lengths)
    # A word can be read, however few bytes there are.
    data = column.data if len(column.data) >= _WORD else np.pad(column.data, (0, _WORD))
    starts, kinds = column.starts, _KINDS.take(column.lengths, mode="clip")
    for kind, rows in _divided(kinds):
        numbers[rows] += _sums(data, starts[rows], column.lengths[rows], kind)
    return numbers


def _of_lengths(lengths: Lengths) -> Words:
    """Return what tells a null from an empty value, and that from a zero."""
    numbers: Words = lengths.astype(np.uint64) * _OF_LENGTH
    return numbers


def _divided(kinds: Octets) -> Iterator[tuple[int, slice | Integers]]:
    """Yield each kind and its rows. Usually there are few."""
    first, last = (int(kinds.min()), int(kinds.max())) if len(kinds) else (0, 0)
    if first == last:
        yield first, slice(None)
        return
    for kind in range(first, last + 1):
        rows = np.flatnonzero(kinds == kind)
        if len(rows):
            yield kind, rows


def _sums(data: Octets, starts: Integers, lengths: Lengths, kind: int) -> Words:
    """Return the sum of the words of each row. All rows are of the same kind."""
    if kind == 0:
        words = _short(data, starts, lengths)
        _fold(words, np.empty_like(words))
        words *= _OF_WORDS[0]
        return words
    if kind > len(_WIDTHS):
        bounds = zip(starts.tolist(), (starts + lengths).tolist(), strict=True)
        return np.array([crc32c(data.data[start:end]) for start, end in bounds], np.uint64)
    sums = np.empty(len(starts), np.uint64)
    width = _WIDTHS[kind - 1]
    # Both do the same. One is faster for few words, as of keys, and the other for many.
    multiply = np.matmul if width <= 4 else partial(np.einsum, "ij,j->i")
    chunks, constants = _chunks(data, width), _OF_WORDS[: 2 * width]
    at = np.stack((starts, starts + lengths - _WORD * width), axis=1)
    rows = min(_BLOCK_ROWS, _BLOCK_BYTES // (2 * _WORD * width))
    spare = np.empty((rows, 2 * width), np.uint64)
    for row in range(0, len(starts), rows):
        words = chunks[at[row : row + rows]].view("<u8")
        _fold(words, spare[: len(words)])
        multiply(words, constants, out=sums[row : row + rows])
    return sums


def _short(data: Octets, starts: Integers, lengths: Lengths) -> Words:
    """Return the bytes of rows of less than a word, and zeros after them."""
    at = np.minimum(starts, len(data) - _WORD)
    words: Words = _chunks(data, 1)[at].view("<u8")
    words >>= ((starts - at) * 8).astype(np.uint64)
    words &= _MASKS.take(lengths, mode="clip")
    return words


_MASKS = np.array([(1 << (8 * length)) - 1 for length in range(_WORD)], np.uint64)


def _chunks(data: Octets, width: int) -> npt.NDArray[np.void]:
    """Return a view: so many words from each byte on. Whoever indexes it gets a copy."""
    size = _WORD * width
    kind = np.dtype((np.void, size))
    return np.ndarray((len(data) - size + 1,), kind, buffer=data, strides=(1,))


def _fold(words: Words, spare: Words) -> None:
    """Let high bits change low bits, too, for they change nothing below themselves in a product.

    Otherwise changes in the last bytes of two words, as in two big-endian numbers, would often
    cancel out. The shift is no multiple of 8, so that like changes of several bytes do not.
    """
    np.right_shift(words, np.uint64(29), out=spare)
    np.bitwise_xor(words, spare, out=words)
