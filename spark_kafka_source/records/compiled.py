"""Kernels as machine code, if numba (the extra `fast`) is installed, and once they pay off.

numba takes about half a second to load, and two or three more to compile if its cache on the
machine is empty. No row waits for that: until the kernels are loaded, numpy locates the records.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Generic, TypeVar

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
    copy_records: Callable[..., int]


def load() -> Kernels | None:
    """Compile the kernels, or load them from numba's disk cache. None with NUMBA_DISABLE_JIT.

    Raises numba's own error if numba is broken or has no place for its cache.
    """
    numba = import_module("numba")
    if numba.config.DISABLE_JIT:
        return None
    octets = numba.types.Array(numba.uint8, 1, "C", readonly=True)
    table, integers, room = numba.int64[:, ::1], numba.int64[::1], numba.uint8[::1]
    bounds, mask = numba.int32[::1], numba.boolean[::1]
    slices, fields = (bounds, mask), (integers,) * 3
    lines = table, numba.int32[:, ::1], numba.boolean[:, ::1]
    _prepare_callees(numba)

    def compile_for(kernel: Callable[..., Any], *arguments: object, result: Any) -> Any:
        return numba.njit(result(*arguments), nogil=True, cache=True)(kernel)

    sound = partial(compile_for, result=numba.boolean)
    return Kernels(
        sound(written.locate_records, octets, table, integers, integers, *slices, *slices, *fields),
        sound(written.locate_headers, octets, *fields, bounds, *slices),
        compile_for(
            *(written.copy_records, octets, table, numba.int64, *lines, room, room),
            result=numba.int64,
        ),
    )


def _prepare_callees(numba: Any) -> None:
    """Let compiled kernels call `read_record`, and `copy_bytes` as C's `memcpy`."""
    extending, cgutils = import_module("numba.extending"), import_module("numba.core.cgutils")

    def memcpy(_: Any, to: Any, at: Any, data: Any, start: Any, count: Any) -> Any:
        def written_out(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            to_array, data_array = (
                context.make_array(signature.args[place])(context, builder, arguments[place]).data
                for place in (0, 2)
            )
            target = builder.gep(to_array, [arguments[1]])
            source = builder.gep(data_array, [arguments[3]])
            cgutils.raw_memcpy(builder, target, source, arguments[4], 1)
            return context.get_dummy_value()

        return numba.types.void(to, at, data, start, count), written_out

    extending.register_jitable(written.read_record)
    intrinsic = extending.intrinsic(memcpy)

    @extending.overload(written.copy_bytes)  # type: ignore[untyped-decorator]
    def overloaded(to: Any, at: Any, data: Any, start: Any, count: Any) -> Any:
        def copy(to: Any, at: Any, data: Any, start: Any, count: Any) -> Any:
            return intrinsic(to, at, data, start, count)

        return copy


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
