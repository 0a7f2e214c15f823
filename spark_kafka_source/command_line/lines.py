"""Lines from standard input, many at a time, as soon as they come."""

import contextlib
import select
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from spark_kafka_source.errors import LocalError

PIECE_BYTES = 1 << 20
"""A piece ends with the read that brings it to this many bytes."""

END = b"\n"


class LineError(LocalError):
    """Lines that are no records, or that could not be written."""

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
    """Some lines without their line ends. `first` is the number of the first line, from 1 on."""

    first: int
    lines: list[bytes]


def pieces(stream: BinaryIO, longest_bytes: int) -> Iterator[Piece]:
    """Yield all lines. Yields the lines at hand before it waits for more.

    Raises `LineError` for a line longer than `longest_bytes`, before reading all of it.
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
    """Yield all bytes at hand, once there are any.

    One read of a pipe brings at most 64 KiB, which is little for a batch.
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
    """Return whether a read would not wait, as at the end. False if the system cannot tell."""
    # Windows can tell for sockets only, and a stream in memory has no file.
    with contextlib.suppress(OSError, ValueError):
        return bool(select.select([stream], [], [], 0)[0])
    return False
