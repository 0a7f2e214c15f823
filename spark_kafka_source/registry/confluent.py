"""Confluent's convention: the schema id stands before the value, or in a header of the record.

    in the value, or in the key          in a header of the record
    +----+-------+---------+-------+     none
    | 00 |  id   | indexes | value |
    +----+-------+---------+-------+
    | 01 | GUID  | indexes | value |
    +----+-------+---------+-------+     +-------------------+---------------------+
                           | value |     | __value_schema_id | 00 or 01, as before |
                           +-------+     +-------------------+---------------------+

An id has 4 bytes, a GUID 16, both big-endian. Only Protobuf has indexes: varints that name the
message in the schema, their count first. A count of 0 stands for the first message. For keys the
header is `__key_schema_id`. If a record has the header, its value has no bytes of an id.
https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format
"""

from dataclasses import dataclass
from enum import Enum
from typing import TypeVar
from uuid import UUID

import numpy as np
import numpy.typing as npt

from spark_kafka_source.records.types import Bytes
from spark_kafka_source.records.varints import Integers, Octets, varint, varints
from spark_kafka_source.registry.framing import Framed, Mask, Misframed, SchemaKey
from spark_kafka_source.registry.row_headers import HeaderValues, RowHeaders
from spark_kafka_source.values.octets import OctetReader, Uint64s

MOST_INDEXES = 32
"""The deepest nesting of messages that indexes may name."""

_ID_BYTES, _GUID_BYTES, _WORD_BYTES = 5, 17, 8
_INT32_MAX = 2**31 - 1
_FIRST = (0,)
_BYTE, _BITS = np.uint64(0xFF), np.uint64(8)

N = TypeVar("N", int, Integers)


class Part(Enum):
    """Part of a record. The value is the name of the header that holds the part's schema id."""

    KEY = "__key_schema_id"
    VALUE = "__value_schema_id"


class Indexes(Enum):
    """Encoding of the indexes of Protobuf messages, if there are any."""

    NONE = "none"
    ZIGZAG = "zigzag"
    PLAIN = "plain"
    """Plain varints, as written with `use.deprecated.format`."""


@dataclass(frozen=True, slots=True)
class ConfluentFraming:
    """Framing that reads the schema id from the header, or else from before the value."""

    part: Part = Part.VALUE
    indexes: Indexes = Indexes.NONE

    def frame(
        self,
        data: Bytes | Octets,
        starts: Integers,
        ends: Integers,
        *,
        null: Mask | None = None,
        headers: RowHeaders | None = None,
    ) -> Framed:
        """See `Framing`."""
        octets: Octets = np.frombuffer(data, np.uint8)
        starts, ends = starts.astype(np.int64, copy=False), ends.astype(np.int64, copy=False)
        header_values = headers.last(self.part.value) if headers is not None else None
        if header_values is None and (null is None or not null.any()):
            return _Ids(octets, starts, ends, self.indexes).framed()
        return self._by_rows(octets, starts, ends, null, header_values)

    def _by_rows(
        self,
        octets: Octets,
        starts: Integers,
        ends: Integers,
        null: Mask | None,
        header_values: HeaderValues | None,
    ) -> Framed:
        """Frame the rows when some are null or have the header."""
        rows = MergedRows(starts)
        before = np.ones(len(starts), np.bool_) if null is None else ~null
        if header_values is not None:
            with_header = np.flatnonzero(before[header_values.rows])
            before[header_values.rows] = False
            bounds = header_values.starts[with_header], header_values.ends[with_header]
            framed = _Ids(header_values.data, *bounds, self.indexes, is_whole=True).framed()
            rows.add(header_values.rows[with_header], framed, in_header=True)
        places = np.flatnonzero(before)
        framed = _Ids(octets, starts[places], ends[places], self.indexes).framed()
        rows.add(places, framed, in_header=False)
        return rows.framed()


class MergedRows:
    """Framed rows, merged from several groups of rows."""

    def __init__(self, starts: Integers) -> None:
        count = len(starts)
        self._starts, self._keys = starts.copy(), dict[SchemaKey, int]()
        self._key_of, self._detail = np.full(count, -1), np.zeros(count, np.int64)
        self._status, self._from_header = np.zeros(count, np.uint8), np.zeros(count, np.bool_)

    def add(self, rows: Integers, framed: Framed, *, in_header: bool) -> None:
        """Add a group of rows. For ids in a header, the values start where the rows start."""
        numbers = [self._keys.setdefault(key, len(self._keys)) for key in framed.keys]
        # The last entry is for index -1, which bad rows have.
        self._key_of[rows] = np.array([*numbers, -1])[framed.key_of]
        self._status[rows] = framed.status
        if framed.detail is not None:
            self._detail[rows] = framed.detail
        if in_header:
            self._from_header[rows] = True
        else:
            self._starts[rows] = framed.starts

    def framed(self) -> Framed:
        """Return all rows."""
        keys = tuple(self._keys)
        return Framed(
            self._starts, keys, self._key_of, self._status, self._detail, self._from_header
        )


class _Ids:
    """Reader of the ids that all rows begin with. A header holds an id and nothing else."""

    def __init__(
        self,
        octets: Octets,
        starts: Integers,
        ends: Integers,
        indexes: Indexes,
        *,
        is_whole: bool = False,
    ) -> None:
        self._octets, self._starts, self._ends = octets, starts, ends
        self._indexes, self._is_whole = indexes, is_whole
        self._reader = OctetReader(octets)
        self._status = np.zeros(len(starts), np.uint8)
        self._detail = np.zeros(len(starts), np.int64)

    def framed(self) -> Framed:
        """Return the keys of all rows."""
        if not len(self._starts):
            return Framed(self._starts, (), np.zeros(0, np.int64), self._status)
        words = self._reader.words(self._starts)
        return self._if_all_alike(words) or self._row_by_row(words)

    def _if_all_alike(self, words: Uint64s) -> Framed | None:
        """Handle the usual case: all rows have one id and, for Protobuf, the first message."""
        size = _ID_BYTES + (self._indexes is not Indexes.NONE)
        alike = words & _mask(size)
        first = int(alike[0])
        # Exclude a GUID, the indexes of another message, and an id that is too large.
        is_usual = not first & 0xFF and not first >> 40 and not first & 0x8000
        too_short = (self._ends - self._starts).min() < size
        if self._is_whole or not is_usual or too_short or not (alike == alike[0]).all():
            return None
        key = self._key(first.to_bytes(_WORD_BYTES, "little")[:size])
        key_of = np.zeros(len(words), np.int64)
        return Framed(self._starts + size, (key,), key_of, self._status)

    def _row_by_row(self, words: Uint64s) -> Framed:
        magic = (words & _BYTE).astype(np.int64)
        number = (words >> _BITS).astype(np.uint32).byteswap().astype(np.int64)
        length, size = self._ends - self._starts, np.where(magic == 1, _GUID_BYTES, _ID_BYTES)
        self._bad(length < 1, Misframed.SHORT, length)
        self._bad(magic > 1, Misframed.MAGIC, magic)
        self._bad(length < size, Misframed.SHORT, length)
        self._bad((magic == 0) & (number > _INT32_MAX), Misframed.ID, number)
        after = self._after_indexes(self._starts + size)
        if self._is_whole:
            left = self._ends - after
            self._bad(left != 0, Misframed.TRAILING, left)
        keys, key_of = self._keys(after - self._starts)
        starts = np.where(self._status == 0, after, self._starts)
        return Framed(starts, keys, key_of, self._status, self._detail)

    def _bad(self, bad: Mask, fault: Misframed, detail: Integers) -> None:
        rows = np.flatnonzero(bad & (self._status == 0))
        self._status[rows], self._detail[rows] = fault, detail[rows]

    def _after_indexes(self, at: Integers) -> Integers:
        if self._indexes is Indexes.NONE or not len(self._octets):
            return at
        count, at = self._varints(at)
        self._bad(at > self._ends, Misframed.INDEX_END, at)
        self._bad((count < 0) | (count > MOST_INDEXES), Misframed.INDEX_COUNT, count)
        left, read = np.flatnonzero((self._status == 0) & (count > 0)), 0
        while len(left):
            at[left] = self._after_index(at[left], left)
            read += 1
            left = left[(self._status[left] == 0) & (count[left] > read)]
        return at

    def _after_index(self, at: Integers, rows: Integers) -> Integers:
        index, after = self._varints(at)
        for bad, fault in (
            ((index < 0) | (index > _INT32_MAX), Misframed.INDEX),
            (after > self._ends[rows], Misframed.INDEX_END),
        ):
            self._status[rows[bad]], self._detail[rows[bad]] = fault, index[bad]
        return after

    def _varints(self, at: Integers) -> tuple[Integers, Integers]:
        value, after = varints(self._octets, at)
        if self._indexes is Indexes.PLAIN:
            value = _without_sign(value)
        return value, after

    def _keys(self, size: Integers) -> tuple[tuple[SchemaKey, ...], Integers]:
        """Return the distinct keys, and for each row the index of its key."""
        keys: dict[SchemaKey, int] = {}
        key_of = np.full(len(size), -1)
        good = np.flatnonzero(self._status == 0)
        for key_size in np.unique(size[good]).tolist():
            rows = good[size[good] == key_size]
            codes = self._codes(self._starts[rows], key_size)
            _, first, code_of = np.unique(codes, return_index=True, return_inverse=True)
            numbers = np.zeros(len(first), np.int64)
            # Number the keys in the order of the rows: schemas are then asked for in that order.
            for place in np.argsort(first).tolist():
                start = int(self._starts[rows[first[place]]])
                key = self._key(self._octets[start : start + key_size].tobytes())
                numbers[place] = keys.setdefault(key, len(keys))
            key_of[rows] = numbers[code_of]
        return tuple(keys), key_of

    def _codes(self, starts: Integers, size: int) -> "npt.NDArray[np.generic]":
        """Return `size` bytes from each start on, as comparable values."""
        if size <= _WORD_BYTES:
            return self._reader.words(starts) & _mask(size)
        places = range(0, size, _WORD_BYTES)
        words = [
            self._reader.words(starts + place) & _mask(min(size - place, _WORD_BYTES))
            for place in places
        ]
        return np.stack(words, axis=1).view(f"V{_WORD_BYTES * len(words)}").ravel()

    def _key(self, written: bytes) -> SchemaKey:
        """Return the key that a good row begins with. `written` are the bytes of the key."""
        at = _GUID_BYTES if written[0] == 1 else _ID_BYTES
        number, is_guid = int.from_bytes(written[1:at]), at == _GUID_BYTES
        id = UUID(int=number) if is_guid else number
        if self._indexes is Indexes.NONE:
            return SchemaKey(id)
        numbers: list[int] = []
        while at < len(written):
            number, at = varint(written, at)
            numbers.append(_without_sign(number) if self._indexes is Indexes.PLAIN else number)
        return SchemaKey(id, tuple(numbers[1:]) or _FIRST)


def _mask(size: int) -> np.uint64:
    """Mask for the lowest `size` bytes: the first byte of a row is the lowest."""
    return np.uint64((1 << 8 * size) - 1)


def _without_sign(value: N) -> N:
    """Undo the zigzag decoding of a varint that is plain."""
    return (value << 1) ^ (value >> 63)
