"""What a process keeps of a format, since Spark's workers run one task after another.

Each task unpickles its readers and writers, and asks the readers for programs. They are made of
schemas alone and never change, and to make them takes half of a small micro-batch's time: so a task
finds those of the one before it.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

MOST_KEPT = 16
"""Readers and writers of a process."""
MOST_PROGRAMS = 100
"""Of a reader: one for each schema that its values were written with."""


@lru_cache(maxsize=MOST_KEPT)
def made_once(kind: Callable[..., Any], *arguments: Any) -> Any:
    """Return what `kind` makes of these arguments, all of which can be hashed."""
    return kind(*arguments)


def keeping(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that makes a program once; what it raises is not kept."""
    return lru_cache(maxsize=MOST_PROGRAMS)(make)
