"""Kernels of one format and of columns, and the way in which Python runs a kernel itself."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from inspect import signature as signature_of
from typing import Any, TypeAlias

import numpy as np

from spark_kafka_source.records.machine_code import (
    BOUNDS,
    DATA,
    GIVEN,
    OCTETS,
    WORDS,
    machine_code,
    signature,
)
from spark_kafka_source.values import column_kernels

Run: TypeAlias = Callable[..., int]
"""The kernel of a format, which decodes one row after the other."""


@dataclass(frozen=True, slots=True)
class Kernels:
    """Compiled functions: the `run` of one format, and those of `column_kernels`."""

    run: Run
    measure: Callable[..., int]
    gather: Callable[..., bool]


_OUT_WORDS = "Array(int64, 1, 'A', aligned=False)"
_OF_COLUMNS: dict[Callable[..., Any], str] = {
    column_kernels.measure: signature("int64", GIVEN, GIVEN, BOUNDS),
    column_kernels.gather: signature(
        "boolean", DATA, WORDS, GIVEN, GIVEN, BOUNDS, OCTETS, _OUT_WORDS
    ),
}


def loader(run: Run, *arguments: str) -> Callable[[], Kernels | None]:
    """Return the function that compiles a format's kernel, of these types, and those of columns."""
    return partial(machine_code, Kernels, {run: signature("int64", *arguments), **_OF_COLUMNS})


_ARRAYS = ("words", "scratch", "singles", "doubles")
"""The arguments of a kernel that only numpy can read: they are unaligned, or share their bytes to
turn a number into another type."""


def interpreted(run: Run) -> Run:
    """Return a kernel as Python runs it: with views, whose elements Python reads twice as fast."""
    are_views = [name not in _ARRAYS for name in signature_of(run).parameters]

    def run_interpreted(*arguments: Any) -> int:
        views = [
            each.data if is_view and isinstance(each, np.ndarray) else each
            for each, is_view in zip(arguments, are_views, strict=True)
        ]
        with np.errstate(invalid="ignore"):  # a signaling NaN
            return run(*views)

    return run_interpreted


if __name__ == "__main__":
    # Version 0.2.0 had Avro's kernels here, and images run this command.
    import_module("spark_kafka_source.values.avro.compiled").load()
