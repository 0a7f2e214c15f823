"""The kernels of JSON as machine code, where numba is installed, once that pays.

When that is, `records.compiled` says of them as of the kernels that locate records.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from spark_kafka_source.records.compiled import Loading
from spark_kafka_source.values.json import kernels as written


@dataclass(frozen=True, slots=True)
class Kernels:
    """The functions of `kernels`, compiled."""

    tokenize: Callable[..., int]
    copy_texts: Callable[..., int]


AS_WRITTEN = Kernels(written.tokenize, written.copy_texts)


def load() -> Kernels | None:
    """Compiles the kernels, or finds them in numba's cache on disk; None with NUMBA_DISABLE_JIT.

    Raises whatever numba raises where it is broken, or has nowhere to keep what it compiles.
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
    """The compiled kernels, where this process has them; `row_count` are to be read now."""
    return _loading.kernels(row_count)


if __name__ == "__main__":
    load()  # while an image is built, say, so that no worker has to
