"""Cache of readers, writers and programs in a process, for the next tasks of a Spark worker.

Each task unpickles its readers and writers, and asks the readers for programs. These depend only
on schemas and never change, but making them takes half the time of a small micro-batch. So a task
reuses what an earlier task made.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

import pyarrow as pa

T = TypeVar("T")

MOST_KEPT = 16
"""The most readers and writers that a process keeps."""
MOST_PROGRAMS = 100
"""The most programs that a reader keeps, one for each schema of a writer."""


@lru_cache(maxsize=MOST_KEPT)
def made_once(kind: Callable[..., Any], *arguments: Any) -> Any:
    """Return `kind(*arguments)`, cached. All arguments must be hashable."""
    return kind(*arguments)


def keeping_last(make: Callable[[pa.DataType], T]) -> Callable[[pa.DataType], T]:
    """Return a function that keeps what `make` returned for the type it was last called with.

    A query has one type. To compare types costs nothing, but the hash of a nested type takes longer
    than encoding ten rows. Errors are not kept.
    """
    last: list[tuple[pa.DataType, T]] = []

    def of(kind: pa.DataType) -> T:
        # Threads may share this function, so each works on what it found.
        pair = last[0] if last else None
        if pair is None or pair[0] != kind:
            pair = kind, make(kind)
            last[:] = [pair]
        return pair[1]

    return of


def keeping(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that caches the programs of `make`. Errors are not cached."""
    return lru_cache(maxsize=MOST_PROGRAMS)(make)
