"""The only interpreted loop over records: a walk along the chain of their lengths.

A record begins with its length. `kernels.read_record` shows the layout of the rest.
"""

from collections.abc import Generator, Iterable, Iterator
from typing import NamedTuple

from spark_kafka_source.errors import ProtocolError
from spark_kafka_source.records.types import Bytes
from spark_kafka_source.records.varints import VARINT_BYTES, VARLONG_BYTES, varint

STEP = [1 + (low >> 1) for low in range(128)] + [2 + (low >> 1) for low in range(128)]
HIGH_STEP = [high << 6 for high in range(128)]
"""How far the first byte of a length moves the walk, and the second: shifted by the sign bit."""

HEAD_BYTES = VARINT_BYTES + 1 + VARLONG_BYTES + VARINT_BYTES
"""The most bytes of a record's length, attributes, timestamp and offset."""


def walk(data: Bytes, position: int, end: int) -> list[int]:
    """Return the positions of the records from `position` to `end`, then the walk's last position.

    If all is well, the last position is `end`. It is beyond `end` if the last record is longer than
    the rest, and before `end` if the length of the last record cannot be read. A negative length is
    walked over as if it was positive: the caller checks all sign bits at once.
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
    """Whole records of a buffer: the position of each record, and the end of the last."""

    data: Bytes
    positions: list[int]


class Oversized(NamedTuple):
    """Record over the limit. Only its first bytes are kept.

    `size` is the size that it claims, its length field included.
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
    """Yield the records in `buffers` (buffer, start and end) in runs of about `target_bytes`.

    A run has at most `most_records`. Records may span buffers. A record larger than
    `max_record_bytes`, which is at least `target_bytes`, is reported as soon as its length is
    known, and its bytes are passed over. Raises `ProtocolError` if the last record is cut.
    """
    cutting = _Cutting(target_bytes, most_records, max_record_bytes)
    for buffer, start, end in buffers:
        yield from cutting.feed(buffer, start, end)
        del buffer  # Frees its memory before the next buffer is decompressed.
    cutting.finish()


class _Cutting:
    """State of one `runs` call: the bytes of a cut record, or how many bytes to pass over."""

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
            # Copy only a part of the buffer: a snappy block may be large.
            taken = memoryview(buffer)[at : min(end, at + self._target_bytes)]
            self._cut += taken
            at += len(taken)
            rest = yield from self._whole_records(self._cut, 0, len(self._cut))
            if rest:  # Copy: bytes that were yielded must not change.
                self._cut = self._cut[rest:]

    def _whole_records(
        self, data: Bytes, at: int, end: int
    ) -> Generator[Run | Oversized, None, int]:
        """Yield the whole records, and return the start of the first record that is not whole."""
        while at < end:
            positions = walk(data, at, min(end, at + self._target_bytes))
            # Only the last record can reach beyond `target_bytes`.
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
