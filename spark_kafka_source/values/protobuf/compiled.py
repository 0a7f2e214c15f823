"""The kernel of messages as machine code, where numba is installed, once that pays.

When that is, `records.compiled` says of it as of the kernels that locate records.
"""

from collections.abc import Callable
from importlib import import_module

from spark_kafka_source.records.compiled import Loading
from spark_kafka_source.values.protobuf.kernels import run

Kernel = Callable[..., int]


def load() -> Kernel | None:
    """Compiles the kernel, or finds it in numba's cache on disk; None with NUMBA_DISABLE_JIT.

    Raises whatever numba raises where it is broken, or has nowhere to keep what it compiles.
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
    """The compiled kernel, where this process has it; `row_count` are to be decoded now."""
    return _loading.kernels(row_count)


if __name__ == "__main__":
    load()  # while an image is built, say, so that no worker has to
