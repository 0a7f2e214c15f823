"""What holds an input against the three promises, whoever made it."""

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
"""An input that takes more of the processor's time hangs."""

MOST_TIMES = 64
"""What is decoded takes at most so many times its bytes: the most that was found is 41 times, by
responses full of partitions in which nearly every field is null or zero."""

FIXED_BYTES = 48 << 20
"""And this: the limits that the targets give their readers, and what libraries keep."""

_OURS = ("spark_kafka_source", "tests/fuzz")


@dataclass(frozen=True, slots=True)
class Finding:
    """An input that broke a promise: an error that is none of ours, or a wrong one."""

    target: str
    error: str
    where: str
    data: bytes = field(repr=False)

    @property
    def name(self) -> str:
        """Of the file to keep it in."""
        return f"{self.target}-{hashlib.sha256(self.data).hexdigest()[:12]}"


def finding(target: str, function: Function, data: bytes) -> Finding | None:
    """What is wrong with how `function` takes `data`, if anything."""
    _watch()
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
    try:
        function(data)
    except Exception as error:  # Whatever it is, that it got here is what is looked for.
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

    # Not SIGALRM, which is libFuzzer's own.
    signal.signal(signal.SIGVTALRM, hangs)


def check(target: str, function: Function, data: bytes) -> None:
    """Raises `AssertionError` where any of the three promises is broken."""
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
    """An attribute of a module for a while; quicker than `unittest.mock` by far."""
    kept = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, kept)
