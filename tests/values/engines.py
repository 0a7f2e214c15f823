"""The decoding engines. Each test of bytes runs with all of them, with equal results."""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from spark_kafka_source.values import by_row, compiled, waves
from spark_kafka_source.values.compiled import Kernels
from spark_kafka_source.values.protobuf import compiled as messages
from spark_kafka_source.values.protobuf import kernels as message_kernels

WRITTEN = ("waves", "waves and walk", "walk", "as written")
ALL = (*WRITTEN, "compiled")
_FEW = {"waves": 0, "waves and walk": 2, "walk": 1 << 30}
"""`waves.FEW` by engine. Up to this many rows are walked one by one. More rows go in waves."""


@contextmanager
def using(name: str) -> Iterator[None]:
    """Decode with this engine during the context."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (compiled, messages):
            kernels = _kernels(module, name)
            patch.setattr(module, "kernels", lambda row_count=0, found=kernels: found)
        patch.setattr(waves, "FEW", _FEW.get(name, waves.FEW))
        if name == "as written":  # At first there is too little room for all lists.
            patch.setattr(by_row, "ITEMS_A_ROW", 0)
        yield


@functools.cache
def _kernels(module: ModuleType, name: str) -> Kernels | None:
    if name == "compiled":
        pytest.importorskip("numba")
        loaded: Kernels | None = module.load()
        assert loaded is not None
        return loaded
    if name != "as written":
        return None
    written = compiled.AS_WRITTEN
    run = written.run if module is compiled else message_kernels.run
    return Kernels(*(_checked(each) for each in (run, written.measure, written.gather)))


def _checked(kernel: Any) -> Any:
    def run(*arguments: Any) -> Any:
        with np.errstate(invalid="ignore"):  # a signaling NaN
            return kernel(*(Strict(a) if np.ndim(a) == 1 else a for a in arguments))

    return run


@dataclass
class Strict:
    """An array that refuses negative indices. numpy would count them from the end."""

    array: Any

    def __len__(self) -> int:
        return len(self.array)

    def _checked(self, index: int) -> int:
        assert 0 <= index < len(self.array)
        return index

    def __getitem__(self, index: int) -> Any:
        return self.array[self._checked(index)]

    def __setitem__(self, index: int, value: Any) -> None:
        self.array[self._checked(index)] = value
