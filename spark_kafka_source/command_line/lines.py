"""Lines off standard input, many at a time, as soon as they are there."""

import contextlib
import select
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from spark_kafka_source.errors import LocalError

PIECE_BYTES = 1 << 20
"""So many bytes are lines of one piece at most, but for a longer line."""

END = b"\n"


class LineError(LocalError):
    """A line, or one of several, is no record, or could not be written as one."""

    def __init__(self, first: int, last: int, reason: str) -> None:
        super().__init__(first, last, reason)
        self.first, self.last, self.reason = first, last, reason

    def _text(self) -> str:
        some = (
            f"Lines {self.first} to {self.last}" if self.last > self.first else f"Line {self.first}"
        )
        return f"{some}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Piece:
    """Some lines, without what ended them; `first` is the number of the first, from 1."""

    first: int
    lines: list[bytes]


def pieces(stream: BinaryIO, longest_bytes: int) -> Iterator[Piece]:
    """All lines, which are handed out before more is waited for.

    Raises `LineError` for a line that is longer than `longest_bytes`, before all of it is read.
    """
    left, left_bytes, first = [b""], 0, 1
    for data in _chunks(stream):
        *lines, rest = data.split(END)
        if lines:
            lines[0] = b"".join((*left, lines[0]))
            yield Piece(first, lines)
            first += len(lines)
            left, left_bytes = [], 0
        left.append(rest)
        left_bytes += len(rest)
        if left_bytes > longest_bytes:
            raise LineError(first, first, f"is longer than {longest_bytes} bytes")
    if left_bytes:
        yield Piece(first, [b"".join(left)])


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    """What is there, once something is.

    A pipe has 64 KiB at most at a time, which are few lines for a batch.
    """
    is_over = False
    while not is_over:
        found: list[bytes] = []
        size = 0
        while not is_over and size < PIECE_BYTES and (not found or _has_more(stream)):
            found.append(_read_some(stream))
            size += len(found[-1])
            is_over = not found[-1]
        yield b"".join(found)


def _read_some(stream: BinaryIO) -> bytes:
    read1 = getattr(stream, "read1", stream.read)
    data: bytes = read1(PIECE_BYTES)
    return data


def _has_more(stream: BinaryIO) -> bool:
    """Whether it can be read without waiting, its end included; False where none can say so."""
    # Windows tells it of sockets alone, and what is in memory has no file.
    with contextlib.suppress(OSError, ValueError):
        return bool(select.select([stream], [], [], 0)[0])
    return False
