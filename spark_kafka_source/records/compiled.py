"""The kernels as machine code, where numba is installed (the extra `fast`), once that pays.

numba takes some half a second to load, and two or three more to compile on a machine whose cache
has nothing yet. No row waits for it: until the kernels are there, and without them, numpy locates.
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
"""So many records take about as much longer without the kernels as the kernels take to load."""


@dataclass(frozen=True, slots=True)
class Kernels:
    """The functions of `kernels`, compiled."""

    locate_records: Callable[..., bool]
    locate_headers: Callable[..., bool]


def load() -> Kernels | None:
    """Compiles the kernels, or finds them in numba's cache on disk; None with NUMBA_DISABLE_JIT.

    Raises whatever numba raises where it is broken, or has nowhere to keep what it compiles.
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
    """Loads kernels in a thread of its own, after so many records, once."""

    def __init__(
        self, load: Callable[[], K | None], after_records: int = PAYS_AFTER_RECORDS
    ) -> None:
        self._load_kernels = load
        self._records_left = after_records
        self._kernels: K | None = None
        self.thread: threading.Thread | None = None

    def kernels(self, record_count: int) -> K | None:
        """The kernels, as soon as they are there, for so many records more."""
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
    """The compiled kernels, where this process has them; `record_count` are to be located now."""
    return _loading.kernels(record_count)


if __name__ == "__main__":
    load()  # while an image is built, say, so that no worker has to
