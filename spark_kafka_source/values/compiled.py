"""Kernels of Avro's values as machine code, if numba is installed, and once they pay off.

`records.compiled` explains when kernels are loaded. Each format has its own loading, which counts
the rows of that format: nothing is compiled that no row needs.
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
    """Compiled functions: the `run` of one format, and those of `column_kernels`."""

    run: Callable[..., int]
    measure: Callable[..., int]
    gather: Callable[..., bool]


AS_WRITTEN = Kernels(written.run, column_kernels.measure, column_kernels.gather)


def load() -> Kernels | None:
    """Compile the kernels, or load them from numba's disk cache. None with NUMBA_DISABLE_JIT.

    Raises numba's own error if numba is broken or has no place for its cache.
    """
    nb = import_module("numba")
    if nb.config.DISABLE_JIT:
        return None
    longs, scratch = nb.int64[::1], (nb.int64[::1], nb.float32[::1], nb.float64[::1])
    table, octets, offsets = nb.int64[:, ::1], nb.uint8[::1], nb.int32[::1]
    data, words, given = given_arrays(nb)
    return with_columns(nb, written.run, (
        data, words, given, given, given, nb.int64, table, given, given,
        nb.int64, *(longs,) * 6, table, *scratch, octets, offsets,
    ))  # fmt: skip


def given_arrays(nb: Any) -> tuple[Any, Any, Any]:
    """Return numba's types of the bytes, of the words at each byte, and of given numbers."""
    return (
        nb.types.Array(nb.uint8, 1, "C", readonly=True),
        nb.types.Array(nb.int64, 1, "A", readonly=True, aligned=False),
        nb.types.Array(nb.int64, 1, "C", readonly=True),
    )


def with_columns(nb: Any, run: Callable[..., int], arguments: tuple[Any, ...]) -> Kernels:
    """Compile the `run` of a format, for these types, and the kernels of columns."""
    data, words, given = given_arrays(nb)
    offsets, out = nb.int32[::1], nb.uint8[::1]
    out_words = nb.types.Array(nb.int64, 1, "A", aligned=False)

    def compile_for(kernel: Callable[..., Any], result: Any, *types: object) -> Callable[..., Any]:
        compiled: Callable[..., Any] = nb.njit(result(*types), nogil=True, cache=True)(kernel)
        return compiled

    return Kernels(
        compile_for(run, nb.int64, *arguments),
        compile_for(column_kernels.measure, nb.int64, given, given, offsets),
        compile_for(
            column_kernels.gather, nb.boolean, data, words, given, given, offsets, out, out_words
        ),
    )


_loading = Loading(load)


def kernels(row_count: int = 0) -> Kernels | None:
    """Return the compiled kernels, or None. `row_count` rows are about to be decoded."""
    return _loading.kernels(row_count)


if __name__ == "__main__":
    load()  # for instance while an image is built, so that workers find the kernels in the cache
