"""The progress of a task of a long batch, as a line now and then on its standard error.

A Python data source has no other way to show it. Spark passes its workers' standard error on to the
terminal or notebook that started it, and to the executors' logs.
"""

import sys
import time
from collections.abc import Callable

from spark_kafka_source.fetch import OffsetRange
from spark_kafka_source.records import Chunk

EVERY_SECONDS = 5.0
"""Seconds between two lines, and before the first. A shorter task shows nothing."""

_BYTE_UNITS = ("B", "kB", "MB", "GB", "TB")


def _to_stderr(line: str) -> None:
    # One write, since the lines of tasks that share a terminal could mix otherwise.
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


class Progress:
    """Rows, bytes and offsets of one task, the `number`th of `count`."""

    def __init__(
        self,
        ranges: tuple[OffsetRange, ...],
        number: int,
        count: int,
        *,
        show: Callable[[str], None] = _to_stderr,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        more = f" and {len(ranges) - 1} more" if len(ranges) > 1 else ""
        self._what = f"pykafka: partition {number} of {count}, {ranges[0].topic_partition}{more}"
        self._reached = {planned.topic_partition: planned.start for planned in reversed(ranges)}
        self._total = sum(planned.size for planned in ranges)
        self._offsets = self._rows = self._bytes = 0
        self._show, self._clock = show, clock
        self._started_seconds = self._shown_seconds = clock()

    def read(self, chunk: Chunk, rows: int) -> None:
        """Add a chunk with so many rows. Show a line if it is time."""
        where = chunk.topic_partition
        self._offsets += chunk.next_offset - self._reached[where]
        self._reached[where] = chunk.next_offset
        self._rows += rows
        self._bytes += chunk.size_bytes
        now_seconds = self._clock()
        if now_seconds - self._shown_seconds >= EVERY_SECONDS:
            self._shown_seconds = now_seconds
            left_seconds = self._elapsed_seconds * (self._total / max(self._offsets, 1) - 1)
            self._show(f"{self._line()}, {left_seconds:.0f} s left")

    def finished(self) -> None:
        """Show the last line, if the task has shown any line before."""
        if self._shown_seconds > self._started_seconds:
            self._show(f"{self._line()}, done in {self._elapsed_seconds:.0f} s")

    @property
    def _elapsed_seconds(self) -> float:
        return self._clock() - self._started_seconds

    def _line(self) -> str:
        return (
            f"{self._what}: {self._offsets / self._total:.0%} of {self._total:,} offsets, "
            f"{self._rows:,} rows, {_shown_bytes(self._bytes)}, "
            f"{self._rows / self._elapsed_seconds:,.0f} rows/s"
        )


def _shown_bytes(size: float) -> str:
    for unit in _BYTE_UNITS[:-1]:
        if size < 999.5:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} {_BYTE_UNITS[-1]}"
