"""What holds an input against the three promises, whoever made it."""

import hashlib
import time
import traceback
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

Function = Callable[[bytes], None]

MOST_SECONDS = 10
"""An input that takes longer hangs."""

MOST_TIMES = 120
"""What is decoded takes at most so many times its bytes: an object for each of the smallest."""

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
    return None


def check(target: str, function: Function, data: bytes) -> None:
    """Raises `AssertionError` where any of the three promises is broken."""
    tracemalloc.start()
    started_seconds = time.monotonic()
    try:
        found = finding(target, function, data)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found is None, f"{found} by {data[:200].hex()}"
    assert time.monotonic() - started_seconds < MOST_SECONDS
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
