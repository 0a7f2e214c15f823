"""Kernels of JSON as machine code, if numba is installed, and once they pay off.

`records.compiled` explains when kernels are loaded.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from spark_kafka_source.records.compiled import Loading
from spark_kafka_source.values.json import kernels as written


@dataclass(frozen=True, slots=True)
class Kernels:
    """Compiled functions of `kernels`."""

    tokenize: Callable[..., int]
    copy_texts: Callable[..., int]


AS_WRITTEN = Kernels(written.tokenize, written.copy_texts)


def load() -> Kernels | None:
    """Compile the kernels, or load them from numba's disk cache. None with NUMBA_DISABLE_JIT.

    Raises numba's own error if numba is broken or has no place for its cache.
    """
    numba = import_module("numba")
    if numba.config.DISABLE_JIT:
        return None
    data = numba.types.Array(numba.uint8, 1, "C", readonly=True)
    given = numba.types.Array(numba.int64, 1, "C", readonly=True)
    octets, integers, doubles = numba.uint8[::1], numba.int64[::1], numba.float64[::1]
    table = numba.int64[:, ::1]

    def compile_for(kernel: Callable[..., int], *arguments: object) -> Callable[..., int]:
        compiled: Callable[..., int] = numba.njit(
            numba.int64(*arguments), nogil=True, cache=True, error_model="numpy"
        )(kernel)
        return compiled

    return Kernels(
        compile_for(
            written.tokenize, data, given, given, table, table, octets, *(integers,) * 5, octets,
            integers, integers, doubles, doubles, table, octets,
        ),
        compile_for(
            written.copy_texts, data, octets, integers, integers, numba.int32[::1], octets
        ),
    )  # fmt: skip


_loading = Loading(load)


def kernels(row_count: int = 0) -> Kernels | None:
    """Return the compiled kernels, or None. `row_count` rows are about to be read."""
    return _loading.kernels(row_count)


if __name__ == "__main__":
    load()  # for instance while an image is built, so that workers find the kernels in the cache
