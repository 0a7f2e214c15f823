"""The decoding engines. Each test of bytes runs with all of them, with equal results."""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from spark_kafka_source.values import column_kernels, rows, slots
from spark_kafka_source.values.avro import compiled, waves
from spark_kafka_source.values.avro import kernels as avro_kernels
from spark_kafka_source.values.compiled import Kernels
from spark_kafka_source.values.protobuf import compiled as messages
from spark_kafka_source.values.protobuf import kernels as message_kernels
from spark_kafka_source.values.protobuf import waves as message_waves

WRITTEN = ("waves", "waves and rows", "rows", "as written")
ALL = (*WRITTEN, "compiled")
_FEW = {"waves": 0, "waves and rows": 2, "rows": 1 << 30}
"""`rows.FEW` by engine. Up to this many rows are decoded one after the other, more in waves."""


@contextmanager
def using(name: str) -> Iterator[None]:
    """Decode with this engine during the context."""
    with pytest.MonkeyPatch.context() as patch:
        for module, written in ((compiled, avro_kernels), (messages, message_kernels)):
            kernels = _kernels(module, written, name)
            patch.setattr(module, "kernels", lambda row_count=0, found=kernels: found)
        patch.setattr(rows, "FEW", _FEW.get(name, rows.FEW))
        patch.setattr(waves, "PATIENCE", 0 if name == "waves and rows" else waves.PATIENCE)
        if name == "waves":  # As many passes as there can be.
            patch.setattr(message_waves, "_FIELDS_OF_A_STEP", 0)
        if name == "as written":  # At first there is too little room for all lists.
            patch.setattr(slots, "ITEMS_A_ROW", 0)
        yield


@functools.cache
def _kernels(module: ModuleType, written: ModuleType, name: str) -> Kernels | None:
    if name == "compiled":
        pytest.importorskip("numba")
        loaded: Kernels | None = module.load()
        assert loaded is not None
        return loaded
    if name != "as written":
        return None
    kernels = (written.run, column_kernels.measure, column_kernels.gather)
    return Kernels(*map(_checked, kernels))


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
