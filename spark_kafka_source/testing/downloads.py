"""The progress of a download: measured in a folder, told to a caller, shown as a line."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from spark_kafka_source.logs import logger_of

Progress = Callable[[int, int], object]
"""Is told the bytes that have come, and about how many there will be (0: not known)."""

_MEGABYTE = 1_000_000
_LOG_SECONDS = 10
_LINES = 4
_BYTES_PER_LINE = 20 * _MEGABYTE
_TO_THE_END = "\x1b[K"

_log = logger_of(__name__)


class Meter:
    """Measures a download by what is in its folder. Logs it at INFO, at most every ten seconds."""

    def __init__(self, folder: Path, expected_bytes: int, progress: Progress | None) -> None:
        self._folder, self._expected_bytes, self._progress = folder, expected_bytes, progress
        self._before = _size(folder)
        self._logged_seconds = time.monotonic()

    def look(self) -> None:
        """Measure it, and tell."""
        found = max(0, _size(self._folder) - self._before)
        if self._progress:
            self._progress(found, self._expected_bytes)
        now = time.monotonic()
        if now - self._logged_seconds >= _LOG_SECONDS:
            self._logged_seconds = now
            _log.info("Downloaded %s", amount(found, self._expected_bytes))


class DownloadLine:
    """Shows a download: on a terminal a line that changes, elsewhere a few lines.

    Call it with `Progress`'s arguments. It shows nothing if there is nothing to download.

        with DownloadLine("Kafka's jars", sys.stderr) as line:
            kafka_jars(progress=line)
    """

    def __init__(self, what: str, stream: TextIO) -> None:
        self._what, self._stream = what, stream
        self._is_terminal = stream.isatty()
        self._bytes: int | None = None
        self._next_bytes = 0

    def __enter__(self) -> "DownloadLine":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._bytes is None:
            return
        if kind is None:
            self._show(f"Downloaded {self._what}: {amount(self._bytes, 0)}")
        if self._is_terminal:
            self._stream.write("\n")
            self._stream.flush()

    def __call__(self, found: int, expected: int) -> None:
        """Show so many bytes of about so many."""
        self._bytes = found
        if not self._is_terminal and found < self._next_bytes:
            return
        step = expected // _LINES or _BYTES_PER_LINE
        self._next_bytes = (found // step + 1) * step
        self._show(f"Downloading {self._what}, once: {amount(found, expected)}")

    def _show(self, text: str) -> None:
        form = f"\r{text}{_TO_THE_END}" if self._is_terminal else f"{text}\n"
        self._stream.write(form)
        self._stream.flush()


def amount(found: int, expected: int) -> str:
    """Return bytes as `23 of about 57 MB`, or `23 MB` if it is not known how many there will be.

    What is expected is an estimate, so there may be more.
    """
    some = f"{found / _MEGABYTE:.0f}"
    whole = f"{max(found, expected) / _MEGABYTE:.0f}"
    return f"{some} of about {whole} MB" if expected else f"{some} MB"


def _size(folder: Path) -> int:
    """Return the bytes of all files in a folder, some of which may vanish meanwhile."""
    found = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                found += Path(path, name).stat().st_size
    return found
