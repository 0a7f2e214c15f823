"""Lines from standard input, many at a time, as soon as they come."""

import contextlib
import select
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from spark_kafka_source.errors import LocalError

AT_ONCE_BYTES = 1 << 20
"""The size in bytes at which one `Lines` takes no more lines."""

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
class Lines:
    """Some lines without their line ends. `first` is the number of the first line, from 1 on."""

    first: int
    lines: list[bytes]


def read_lines(stream: BinaryIO, longest_bytes: int) -> Iterator[Lines]:
    """Yield all lines. Yields the lines at hand before it waits for more.

    Raises `LineError` for a line longer than `longest_bytes`, before reading all of it.
    """
    left, left_bytes, first = [b""], 0, 1
    for data in _chunks(stream):
        *lines, rest = data.split(END)
        if lines:
            lines[0] = b"".join((*left, lines[0]))
            yield Lines(first, lines)
            first += len(lines)
            left, left_bytes = [], 0
        left.append(rest)
        left_bytes += len(rest)
        if left_bytes > longest_bytes:
            raise LineError(first, first, f"is longer than {longest_bytes} bytes")
    if left_bytes:
        yield Lines(first, [b"".join(left)])


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    """Yield all bytes at hand, once there are any.

    One read of a pipe brings at most 64 KiB, which is little for a batch.
    """
    is_over = False
    while not is_over:
        blocks: list[bytes] = []
        size = 0
        while not is_over and size < AT_ONCE_BYTES and (not blocks or _has_more(stream)):
            blocks.append(_read_some(stream))
            size += len(blocks[-1])
            is_over = not blocks[-1]
        yield b"".join(blocks)


def _read_some(stream: BinaryIO) -> bytes:
    read1 = getattr(stream, "read1", stream.read)
    data: bytes = read1(AT_ONCE_BYTES)
    return data


def _has_more(stream: BinaryIO) -> bool:
    """Return whether a read would not wait, as at the end. False if the system cannot tell."""
    # Windows can tell for sockets only, and a stream in memory has no file.
    with contextlib.suppress(OSError, ValueError):
        return bool(select.select([stream], [], [], 0)[0])
    return False
