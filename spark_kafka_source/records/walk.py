"""The one loop over records that is interpreted: the chain of their lengths."""

from collections.abc import Generator, Iterable, Iterator
from typing import NamedTuple

from spark_kafka_source.errors import ProtocolError
from spark_kafka_source.records.types import Bytes
from spark_kafka_source.records.varints import VARINT_BYTES, VARLONG_BYTES, varint

STEP = [1 + (low >> 1) for low in range(128)] + [2 + (low >> 1) for low in range(128)]
HIGH_STEP = [high << 6 for high in range(128)]
"""How far the first byte of a length takes us, and its second: septets, shifted by the sign bit."""

HEAD_BYTES = VARINT_BYTES + 1 + VARLONG_BYTES + VARINT_BYTES
"""A record's length, attributes, timestamp and offset take no more."""


def walk(data: Bytes, position: int, end: int) -> list[int]:
    """The positions of the records from `position` to `end`, then where the walk came out.

    That is `end`, where all is well; beyond it, where the last record is longer than what is left;
    or before it, where not even the last record's length could be read. A negative length is
    walked over as if it were not: the caller sees to the sign bits, all at once.
    """
    positions: list[int] = []
    append, step, high_step = positions.append, STEP, HIGH_STEP
    try:
        while position < end:
            append(position)
            low = data[position]
            if low < 128:
                position += step[low]
            elif (high := data[position + 1]) < 128:
                position += step[low] + high_step[high]
            else:
                position = _after_long(data, position)
    except (IndexError, ProtocolError):
        return positions
    append(position)
    return positions


def _after_long(data: Bytes, position: int) -> int:
    length, body = varint(data, position)
    return body + max(length, ~length)


class Run(NamedTuple):
    """Whole records of a buffer: the positions in it of each of them and of their end."""

    data: Bytes
    positions: list[int]


class Oversized(NamedTuple):
    """A record larger than the limit, of which nothing is kept but its first fields.

    `size` is what it claims to take, its length field included.
    """

    size: int
    head: bytes


def runs(
    buffers: Iterable[tuple[Bytes, int, int]],
    *,
    target_bytes: int,
    most_records: int,
    max_record_bytes: int,
) -> Iterator[Run | Oversized]:
    """The records in `buffers` (each a buffer, start and end), in runs of about `target_bytes`.

    A run has up to `most_records`. Records may straddle buffers. One larger than
    `max_record_bytes`, which is at least `target_bytes`, is told of as soon as its length is there,
    and its bytes are passed over. Raises `ProtocolError` where the last record is cut.
    """
    cutting = _Cutting(target_bytes, most_records, max_record_bytes)
    for buffer, start, end in buffers:
        yield from cutting.feed(buffer, start, end)
        del buffer  # Before the next is decompressed.
    cutting.finish()


class _Cutting:
    """The state of one `runs` call: what of a record has come, or is still to be passed over."""

    def __init__(self, target_bytes: int, most_records: int, max_record_bytes: int) -> None:
        self._target_bytes, self._most_records = target_bytes, most_records
        self._max_record_bytes = max_record_bytes
        self._cut = bytearray()
        self._to_pass = 0

    def feed(self, buffer: Bytes, at: int, end: int) -> Iterator[Run | Oversized]:
        while at < end:
            passed = min(self._to_pass, end - at)
            self._to_pass -= passed
            at += passed
            if not self._cut:
                rest = yield from self._whole_records(buffer, at, end)
                self._cut = bytearray(memoryview(buffer)[rest:end])
                return
            # A part of the buffer only: a block of snappy may be large.
            taken = memoryview(buffer)[at : min(end, at + self._target_bytes)]
            self._cut += taken
            at += len(taken)
            rest = yield from self._whole_records(self._cut, 0, len(self._cut))
            if rest:  # What was yielded must not change.
                self._cut = self._cut[rest:]

    def _whole_records(
        self, data: Bytes, at: int, end: int
    ) -> Generator[Run | Oversized, None, int]:
        """Returns where the first record lies that is not whole."""
        while at < end:
            positions = walk(data, at, min(end, at + self._target_bytes))
            # Only the last of them can reach beyond `target_bytes`.
            size = positions[-1] - positions[-2] if len(positions) > 1 else 0
            large = size > self._max_record_bytes
            if large or positions[-1] > end:
                positions.pop()
            if len(positions) > 1:
                at = positions[-1]
                for first in range(0, len(positions) - 1, self._most_records):
                    yield Run(data, positions[first : first + self._most_records + 1])
            elif large and end - at >= min(size, HEAD_BYTES):
                yield Oversized(size, bytes(data[at : at + HEAD_BYTES]))
                passed = min(size, end - at)
                self._to_pass = size - passed
                at += passed
            else:
                break
        return at

    def finish(self) -> None:
        if self._cut:
            raise ProtocolError(f"its last {len(self._cut)} bytes are no whole record")
        if self._to_pass:
            raise ProtocolError(f"its last record lacks {self._to_pass} bytes")
