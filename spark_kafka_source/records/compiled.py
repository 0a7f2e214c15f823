"""Kernels as machine code, if numba (the extra `fast`) is installed, and once they pay off.

numba takes about half a second to load, and two or three more to compile if its cache on the
machine is empty. No row waits for that: until the kernels are loaded, numpy locates the records.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Generic, TypeVar

from spark_kafka_source.records import kernels as written

logger = logging.getLogger(__name__)
K = TypeVar("K")

PAYS_AFTER_RECORDS = 2_000_000
"""Locating this many records without the kernels loses about the time that loading them takes."""


@dataclass(frozen=True, slots=True)
class Kernels:
    """Compiled functions of `kernels`."""

    locate_records: Callable[..., bool]
    locate_headers: Callable[..., bool]


def load() -> Kernels | None:
    """Compile the kernels, or load them from numba's disk cache. None with NUMBA_DISABLE_JIT.

    Raises numba's own error if numba is broken or has no place for its cache.
    """
    numba = import_module("numba")
    if numba.config.DISABLE_JIT:
        return None
    octets = numba.types.Array(numba.uint8, 1, "C", readonly=True)
    table, integers = numba.int64[:, ::1], numba.int64[::1]
    bounds, mask = numba.int32[::1], numba.boolean[::1]
    slices, fields = (bounds, mask), (integers,) * 3

    def compile_for(kernel: Callable[..., bool], *arguments: object) -> Callable[..., bool]:
        compiled: Callable[..., bool] = numba.njit(
            numba.boolean(*arguments), nogil=True, cache=True
        )(kernel)
        return compiled

    return Kernels(
        compile_for(
            written.locate_records, octets, table, integers, integers, *slices, *slices, *fields
        ),
        compile_for(written.locate_headers, octets, *fields, bounds, *slices),
    )


class Loading(Generic[K]):
    """Loader of kernels. It loads them once, in a thread of its own, after enough records."""

    def __init__(
        self, load: Callable[[], K | None], after_records: int = PAYS_AFTER_RECORDS
    ) -> None:
        self._load_kernels = load
        self._records_left = after_records
        self._kernels: K | None = None
        self.thread: threading.Thread | None = None

    def kernels(self, record_count: int) -> K | None:
        """Count these records, and return the kernels, or None until they are loaded."""
        self._records_left -= record_count
        if self._records_left < 0 and self.thread is None:
            self.thread = threading.Thread(target=self._load, name="load-kernels", daemon=True)
            self.thread.start()
        return self._kernels

    def _load(self) -> None:
        if find_spec("numba") is None:
            return
        try:
            self._kernels = self._load_kernels()
        except Exception as error:
            logger.warning("numba is installed but cannot be used, reads are slower: %r", error)


_loading = Loading(load)


def kernels(record_count: int = 0) -> Kernels | None:
    """Return the compiled kernels, or None. `record_count` records are about to be located."""
    return _loading.kernels(record_count)


if __name__ == "__main__":
    load()  # for instance while an image is built, so that workers find the kernels in the cache
