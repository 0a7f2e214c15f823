"""The kernels of values follow the same rule of use as the kernels that locate records."""

from typing import Any

import numpy as np
import pytest

from spark_kafka_source.records import machine_code
from spark_kafka_source.records.machine_code import Loading
from spark_kafka_source.values import Encoded, column_kernels
from spark_kafka_source.values.avro import compiled, decode
from spark_kafka_source.values.avro import kernels as avro_kernels
from spark_kafka_source.values.columns import Layout
from spark_kafka_source.values.compiled import Kernels
from spark_kafka_source.values.protobuf import compiled as messages
from spark_kafka_source.values.slots import LEAST_NUMBERS, Memory
from tests.values.avro_oracle import laid, program
from tests.values.test_avro_cases import array, n, of
from tests.values.test_protobuf_cases import reader as message_reader


def test_rows_are_counted_and_then_the_kernels_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    used = []

    def run(*arguments: Any) -> int:
        used.append(len(arguments))
        return avro_kernels.run(*arguments)

    kernels = Kernels(run, column_kernels.measure, column_kernels.gather)
    loading = Loading(lambda: kernels, after_records=3)
    monkeypatch.setattr(machine_code, "find_spec", lambda name: name)
    monkeypatch.setattr(compiled, "kernels", loading.kernels)
    reader, resolved = program(of("int"), of("int"))
    decode(reader.layout, [resolved], Encoded(*laid([n(1), n(2)])))
    assert not used
    decode(reader.layout, [resolved], Encoded(*laid([n(1), n(2)])))
    assert loading.thread is not None
    loading.thread.join()
    used.clear()
    found = decode(reader.layout, [resolved], Encoded(*laid([n(1), n(2)])))
    assert found.array.to_pylist() == [{"v": 1}, {"v": 2}]
    assert len(used) == 1


def test_a_format_counts_its_own_rows_and_loads_only_its_own_kernels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded: list[str] = []
    loadings: list[Loading[Kernels]] = []
    monkeypatch.setattr(machine_code, "find_spec", lambda name: name)
    for module, name in ((compiled, "avro"), (messages, "protobuf")):

        def load(name: str = name) -> None:
            loaded.append(name)

        loadings.append(Loading[Kernels](load, after_records=3))
        monkeypatch.setattr(module, "kernels", loadings[-1].kernels)
    by = message_reader("Plain")
    for _ in range(2):
        assert not loaded
        by.decode([by.program()], Encoded(*laid([b"", b""])))
    of_avro, of_protobuf = (each.thread for each in loadings)
    assert of_avro is None
    assert of_protobuf is not None
    of_protobuf.join()
    assert loaded == ["protobuf"]


def test_room_is_made_for_what_the_bytes_can_hold() -> None:
    layout: Layout = program(of(array(array("long"))), of(array(array("long"))))[0].layout
    assert len(Memory(layout, 1_000_000, 60_000).cells) < 60_001
    memory = Memory(layout, 1_000, 30)
    assert len(memory.cells) <= LEAST_NUMBERS
    memory._rooms[1:] = [10, 10]
    memory._lay()
    memory.sizes[1:] = 6, 7
    memory.cells[:] = np.arange(len(memory.cells))
    before = [memory.cells[base : base + 6].tolist() for base in memory.bases[-2:]]
    memory.grow(1, 50)
    assert memory.rooms.tolist() == [1_000, 50, 20]
    assert [memory.cells[base : base + 6].tolist() for base in memory.bases[-2:]] == before
