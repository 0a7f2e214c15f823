"""A plain reader of Confluent's framing, row by row and byte by byte."""

from collections.abc import Sequence
from uuid import UUID

import numpy as np

from spark_kafka_source.records.varints import Integers
from spark_kafka_source.registry import ConfluentFraming, Framed, Indexes, Misframed, RowHeaders
from spark_kafka_source.registry.confluent import MOST_INDEXES
from spark_kafka_source.registry.framing import Mask

Expected = tuple[int | UUID, tuple[int, ...], int]
"""Schema id, message, and the number of bytes before the value."""


def read(row: bytes, indexes: Indexes, *, is_whole: bool = False) -> Expected | Misframed:
    """Read the framing of a row, or with `is_whole` of a header's value."""
    if not row:
        return Misframed.SHORT
    if row[0] > 1:
        return Misframed.MAGIC
    at = 17 if row[0] else 5
    if len(row) < at:
        return Misframed.SHORT
    id: int | UUID = UUID(bytes=row[1:17]) if row[0] else int.from_bytes(row[1:5], "big")
    if isinstance(id, int) and id >= 1 << 31:
        return Misframed.ID
    message: tuple[int, ...] = ()
    if indexes is not Indexes.NONE:
        found = _message(row, at, indexes)
        if isinstance(found, Misframed):
            return found
        message, at = found
    if is_whole and at < len(row):
        return Misframed.TRAILING
    return id, message, at


def _message(row: bytes, at: int, indexes: Indexes) -> tuple[tuple[int, ...], int] | Misframed:
    try:
        count, at = _varint(row, at, indexes)
        if not 0 <= count <= MOST_INDEXES:
            return Misframed.INDEX_COUNT
        numbers = []
        for _ in range(count):
            number, at = _varint(row, at, indexes)
            if not 0 <= number < 1 << 31:
                return Misframed.INDEX
            numbers.append(number)
    except EOFError:
        return Misframed.INDEX_END
    return tuple(numbers) or (0,), at


def _varint(row: bytes, at: int, indexes: Indexes) -> tuple[int, int]:
    value = 0
    for place in range(5):
        if at + place >= len(row):
            raise EOFError
        byte = row[at + place]
        value |= (byte & 127) << 7 * place
        if byte < 128:
            zigzag = (value >> 1) ^ -(value & 1)
            return (zigzag if indexes is Indexes.ZIGZAG else value), at + place + 1
    raise EOFError


def laid(rows: Sequence[bytes | None]) -> tuple[bytes, Integers, Integers, Mask]:
    """Lay rows one after the other, with bytes between them. Return a null mask, too."""
    data, starts, ends = bytearray(b"\0\1"), [], []
    for row in rows:
        starts.append(len(data))
        data += row or b""
        ends.append(len(data))
        data += b"\0"
    null = np.array([row is None for row in rows], np.bool_)
    return bytes(data[:-1]), np.array(starts, np.int64), np.array(ends, np.int64), null


def agrees(
    framing: ConfluentFraming,
    rows: Sequence[bytes | None],
    held: Sequence[bytes | None],
    headers: RowHeaders | None,
) -> Framed:
    """Check the result for these rows. `held` are the values of the last headers."""
    data, starts, ends, null = laid(rows)
    found = framing.frame(data, starts, ends, null=null, headers=headers)
    assert len(set(found.keys)) == len(found.keys)
    for number, row in enumerate(rows):
        value = held[number] if headers is not None else None
        if row is None:
            expected: Expected | Misframed = Misframed.OK
        elif value is not None:
            expected = read(value, framing.indexes, is_whole=True)
        else:
            expected = read(row, framing.indexes)
        place = int(found.key_of[number])
        if isinstance(expected, Misframed):
            assert (place, found.status[number]) == (-1, expected)
            assert found.reason(number)
            assert found.starts[number] == starts[number]
            continue
        id, message, size = expected
        key = found.keys[place]
        assert (key.id, key.message, found.status[number]) == (id, message, Misframed.OK)
        assert type(key.id) is type(id)
        assert found.starts[number] == starts[number] + (size if value is None else 0)
    return found
