"""The kernels of values as machine code, where numba is installed, once that pays.

When that is, `records.compiled` says of them as of the kernels that locate records.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from spark_kafka_source.records.compiled import Loading
from spark_kafka_source.values import column_kernels
from spark_kafka_source.values import kernels as written


@dataclass(frozen=True, slots=True)
class Kernels:
    """The functions of `kernels` and `column_kernels`, compiled."""

    run: Callable[..., int]
    measure: Callable[..., int]
    gather: Callable[..., bool]


AS_WRITTEN = Kernels(written.run, column_kernels.measure, column_kernels.gather)


def load() -> Kernels | None:
    """Compiles the kernels, or finds them in numba's cache on disk; None with NUMBA_DISABLE_JIT.

    Raises whatever numba raises where it is broken, or has nowhere to keep what it compiles.
    """
    nb = import_module("numba")
    if nb.config.DISABLE_JIT:
        return None
    longs, scratch = nb.int64[::1], (nb.int64[::1], nb.float32[::1], nb.float64[::1])
    table, octets, offsets, out = nb.int64[:, ::1], nb.uint8[::1], nb.int32[::1], nb.uint8[::1]
    out_words = nb.types.Array(nb.int64, 1, "A", aligned=False)
    data = nb.types.Array(nb.uint8, 1, "C", readonly=True)
    words = nb.types.Array(nb.int64, 1, "A", readonly=True, aligned=False)
    given = nb.types.Array(nb.int64, 1, "C", readonly=True)

    def compile_for(kernel: Callable[..., Any], result: Any, *arguments: object) -> Any:
        return nb.njit(result(*arguments), nogil=True, cache=True)(kernel)

    return Kernels(
        compile_for(
            written.run, nb.int64, data, words, given, given, given, nb.int64, table, given, given,
            nb.int64, *(longs,) * 6, table, *scratch, octets, offsets,
        ),
        compile_for(column_kernels.measure, nb.int64, given, given, offsets),
        compile_for(
            column_kernels.gather, nb.boolean, data, words, given, given, offsets, out, out_words
        ),
    )  # fmt: skip


_loading = Loading(load)


def kernels(row_count: int = 0) -> Kernels | None:
    """The compiled kernels, where this process has them; `row_count` are to be decoded now."""
    return _loading.kernels(row_count)


if __name__ == "__main__":
    load()  # while an image is built, say, so that no worker has to
