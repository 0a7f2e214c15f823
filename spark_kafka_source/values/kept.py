"""What a process keeps of readers and programs, since Spark's workers run one task after another.

Each task unpickles its readers and asks them for programs. Both are made of schemas alone, take a
good part of the time of a small micro-batch, and never change: so a task finds those of the one
before it.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

MOST_READERS = 16
"""In a process."""
MOST_PROGRAMS = 100
"""Of a reader: one for each schema that its values were written with."""


@lru_cache(maxsize=MOST_READERS)
def reader_of(kind: Callable[..., Any], *arguments: Any) -> Any:
    """Return the reader that is made with these arguments, all of which can be hashed."""
    return kind(*arguments)


def keeping(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that makes a program once; what it raises is not kept."""
    return lru_cache(maxsize=MOST_PROGRAMS)(make)
