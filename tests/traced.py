"""The memory that Python takes meanwhile."""

import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy.ma  # noqa: F401  # The first `np.unique` of a process imports it. That would count.


@dataclass
class Traced:
    """The most bytes at a time, once the block has ended."""

    peak_bytes: int = 0


@contextmanager
def traced() -> Iterator[Traced]:
    """Trace what Python allocates in this block, in all threads.

    Kernels are loaded in a thread, once the tests of this process have read some million rows. That
    would count, so it ends first.
    """
    for each in threading.enumerate():
        if each.name == "load-kernels":
            each.join()
    found = Traced()
    tracemalloc.start()
    try:
        yield found
        _, found.peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
