"""Kernel of messages as machine code, if numba is installed, and once it pays off.

`records.compiled` explains when kernels are loaded.
"""

from collections.abc import Callable
from importlib import import_module

from spark_kafka_source.records.compiled import Loading
from spark_kafka_source.values.protobuf.kernels import run

Kernel = Callable[..., int]


def load() -> Kernel | None:
    """Compile the kernel, or load it from numba's disk cache. None with NUMBA_DISABLE_JIT.

    Raises numba's own error if numba is broken or has no place for its cache.
    """
    nb = import_module("numba")
    if nb.config.DISABLE_JIT:
        return None
    longs, octets, table = nb.int64[::1], nb.uint8[::1], nb.int64[:, ::1]
    data = nb.types.Array(nb.uint8, 1, "C", readonly=True)
    words = nb.types.Array(nb.int64, 1, "A", readonly=True, aligned=False)
    given = nb.types.Array(nb.int64, 1, "C", readonly=True)
    arguments = (
        data, words, given, given, given, nb.int64, table, table, given, given,
        *(longs,) * 6, table, longs, nb.float32[::1], nb.float64[::1], octets,
    )  # fmt: skip
    compiled: Kernel = nb.njit(nb.int64(*arguments), nogil=True, cache=True)(run)
    return compiled


_loading = Loading(load)


def kernel(row_count: int = 0) -> Kernel | None:
    """Return the compiled kernel, or None. `row_count` rows are about to be decoded."""
    return _loading.kernels(row_count)


if __name__ == "__main__":
    load()  # for instance while an image is built, so that workers find the kernel in the cache
