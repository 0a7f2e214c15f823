"""Kernels of JSON as machine code: see `records.machine_code`."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from spark_kafka_source.records.machine_code import (
    BOUNDS,
    DATA,
    DOUBLES,
    GIVEN,
    INTEGERS,
    OCTETS,
    TABLE,
    Loading,
    machine_code,
    signature,
)
from spark_kafka_source.values.json import kernels as written


@dataclass(frozen=True, slots=True)
class Kernels:
    """Compiled functions of `kernels`."""

    tokenize: Callable[..., int]
    copy_texts: Callable[..., int]


_SIGNATURES: dict[Callable[..., Any], str] = {
    written.tokenize: signature(
        "int64", DATA, GIVEN, GIVEN, TABLE, TABLE, OCTETS, *(INTEGERS,) * 5, OCTETS,
        INTEGERS, INTEGERS, DOUBLES, DOUBLES, TABLE, OCTETS,
    ),
    written.copy_texts: signature("int64", DATA, OCTETS, INTEGERS, INTEGERS, BOUNDS, OCTETS),
}  # fmt: skip
load = partial(machine_code, Kernels, _SIGNATURES, error_model="numpy")
kernels = Loading(load).kernels

if __name__ == "__main__":
    load()  # for instance while an image is built, so that workers find the kernels in the cache
