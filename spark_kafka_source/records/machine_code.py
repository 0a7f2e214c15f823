"""Kernels as machine code, if numba (the extra `fast`) is installed, and once they pay off.

A kernel is a plain Python function of arrays and numbers. numba takes about half a second to load,
and two or three more to compile if its cache on the machine is empty. No row waits for that: until
the kernels are loaded, numpy does their work. Each format has its own `Loading`, which counts the
rows of that format: nothing is compiled that no row needs.
"""

import threading
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Generic, TypeVar

from spark_kafka_source.logs import logger_of

logger = logger_of(__name__)
K = TypeVar("K")

PAYS_AFTER_RECORDS = 2_000_000
"""Locating this many records without the kernels loses about the time that loading them takes."""

OCTETS, BOUNDS, INTEGERS, DOUBLES = "uint8[::1]", "int32[::1]", "int64[::1]", "float64[::1]"
MASK, SINGLES, TABLE = "boolean[::1]", "float32[::1]", "int64[:, ::1]"
DATA = "Array(uint8, 1, 'C', readonly=True)"
GIVEN = "Array(int64, 1, 'C', readonly=True)"
"""Numbers that a kernel only reads."""
WORDS = "Array(int64, 1, 'A', readonly=True, aligned=False)"
"""The eight bytes from each byte on, as numbers."""


def signature(result: str, *arguments: str) -> str:
    """Return the signature of a kernel, with types as numba names them."""
    return f"{result}({', '.join(arguments)})"


def machine_code(
    kind: Callable[..., K],
    signatures: Mapping[Callable[..., Any], str],
    prepare: Callable[[Any], None] | None = None,
    error_model: str = "python",
) -> K | None:
    """Return `kind` of the functions, compiled or loaded from numba's disk cache.

    None with NUMBA_DISABLE_JIT. `prepare` is called with numba before. Raises numba's own error if
    numba is broken or has no place for its cache.
    """
    numba = import_module("numba")
    if numba.config.DISABLE_JIT:
        return None
    if prepare:
        prepare(numba)
    options = {"nogil": True, "cache": True, "error_model": error_model}
    return kind(*(numba.njit(types, **options)(kernel) for kernel, types in signatures.items()))


class Loading(Generic[K]):
    """Loader of kernels. It loads them once, in a thread of its own, after enough records."""

    def __init__(
        self, load: Callable[[], K | None], after_records: int = PAYS_AFTER_RECORDS
    ) -> None:
        self._load_kernels = load
        self._records_left = after_records
        self._kernels: K | None = None
        self.thread: threading.Thread | None = None

    def kernels(self, record_count: int = 0) -> K | None:
        """Return the kernels, or None until they are loaded.

        `record_count` records, or rows, are about to be read.
        """
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
