"""Kernels of messages as machine code, if numba is installed, and once they pay off.

`records.compiled` explains when kernels are loaded.
"""

from importlib import import_module

from spark_kafka_source.records.compiled import Loading
from spark_kafka_source.values.compiled import Kernels, given_arrays, with_columns
from spark_kafka_source.values.protobuf.kernels import run


def load() -> Kernels | None:
    """Compile the kernels, or load them from numba's disk cache. None with NUMBA_DISABLE_JIT.

    Raises numba's own error if numba is broken or has no place for its cache.
    """
    nb = import_module("numba")
    if nb.config.DISABLE_JIT:
        return None
    longs, octets, table = nb.int64[::1], nb.uint8[::1], nb.int64[:, ::1]
    data, words, given = given_arrays(nb)
    return with_columns(nb, run, (
        data, words, given, given, given, nb.int64, table, table, given, given,
        *(longs,) * 6, table, longs, nb.float32[::1], nb.float64[::1], octets,
    ))  # fmt: skip


_loading = Loading(load)


def kernels(row_count: int = 0) -> Kernels | None:
    """Return the compiled kernels, or None. `row_count` rows are about to be decoded."""
    return _loading.kernels(row_count)


if __name__ == "__main__":
    load()  # for instance while an image is built, so that workers find the kernels in the cache
