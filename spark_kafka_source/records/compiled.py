"""Kernels of records as machine code: see `records.machine_code`."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from spark_kafka_source.records import kernels as written
from spark_kafka_source.records.machine_code import (
    BOUNDS,
    DATA,
    INTEGERS,
    MASK,
    OCTETS,
    TABLE,
    Loading,
    machine_code,
    signature,
)


@dataclass(frozen=True, slots=True)
class Kernels:
    """Compiled functions of `kernels`."""

    locate_records: Callable[..., bool]
    locate_headers: Callable[..., bool]
    copy_records: Callable[..., int]


_SLICES, _FIELDS = (BOUNDS, MASK), (INTEGERS,) * 3
_SIGNATURES: dict[Callable[..., Any], str] = {
    written.locate_records: signature(
        "boolean", DATA, TABLE, INTEGERS, INTEGERS, *_SLICES, *_SLICES, *_FIELDS
    ),
    written.locate_headers: signature("boolean", DATA, *_FIELDS, BOUNDS, *_SLICES),
    written.copy_records: signature(
        "int64", DATA, TABLE, "int64", TABLE, "int32[:, ::1]", "boolean[:, ::1]", OCTETS, OCTETS
    ),
}


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


load = partial(machine_code, Kernels, _SIGNATURES, _prepare_callees)
kernels = Loading(load).kernels

if __name__ == "__main__":
    load()  # for instance while an image is built, so that workers find the kernels in the cache
