"""The check of an input against the three promises."""

import hashlib
import signal
import traceback
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

Function = Callable[[bytes], None]

MOST_SECONDS = 10
"""Limit of processor time. An input above it hangs."""

MOST_TIMES = 64
"""Limit of decoded memory, in multiples of the input's size. The most so far was 41, for responses
full of partitions in which nearly every field is null or zero."""

FIXED_BYTES = 48 << 20
"""Additional memory: the limits that targets give their readers, and memory of libraries."""

_OURS = ("spark_kafka_source", "tools/fuzz", "tests/fuzz")


@dataclass(frozen=True, slots=True)
class Finding:
    """An input that broke a promise, with the foreign or wrong error."""

    target: str
    error: str
    where: str
    data: bytes = field(repr=False)

    @property
    def name(self) -> str:
        """Name of the file for the input."""
        return f"{self.target}-{hashlib.sha256(self.data).hexdigest()[:12]}"


def finding(target: str, function: Function, data: bytes) -> Finding | None:
    """Return a finding if `function` breaks a promise on `data`."""
    _watch()
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
    try:
        function(data)
    except Exception as error:  # Any error that gets here is a finding.
        ours = [
            frame
            for frame in traceback.extract_tb(error.__traceback__)
            if any(each in frame.filename for each in _OURS)
        ]
        where = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "?"
        return Finding(target, f"{type(error).__name__}: {error}"[:300], where, data)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return None


class HangError(Exception):
    """An input took more than `MOST_SECONDS`."""


@cache
def _watch() -> None:
    def hangs(*_: object) -> None:
        raise HangError

    # libFuzzer uses SIGALRM itself.
    signal.signal(signal.SIGVTALRM, hangs)


def check(target: str, function: Function, data: bytes) -> None:
    """Raise `AssertionError` if one of the three promises is broken."""
    tracemalloc.start()
    try:
        found = finding(target, function, data)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found is None, f"{found} by {data[:200].hex()}"
    assert peak_bytes <= MOST_TIMES * len(data) + FIXED_BYTES


@contextmanager
def replaced(module: object, name: str, value: object) -> Iterator[None]:
    """Replace an attribute of a module for a while. This is much faster than `unittest.mock`."""
    kept = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, kept)
