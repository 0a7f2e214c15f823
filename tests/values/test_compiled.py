"""The kernels of values follow the same rule of use as the kernels that locate records."""

from typing import Any

import numpy as np
import pytest

from spark_kafka_source.records import compiled as of_records
from spark_kafka_source.records.compiled import Loading
from spark_kafka_source.values import compiled, decode
from spark_kafka_source.values.by_row import Room
from spark_kafka_source.values.columns import Layout
from tests.values.avro_oracle import laid, program
from tests.values.test_avro_cases import array, n, of


def test_rows_are_counted_and_then_the_kernels_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    used = []

    def run(*arguments: Any) -> int:
        used.append(len(arguments))
        return compiled.AS_WRITTEN.run(*arguments)

    written = compiled.AS_WRITTEN
    kernels = compiled.Kernels(run, written.measure, written.gather)
    loading = Loading(lambda: kernels, after_records=3)
    monkeypatch.setattr(of_records, "find_spec", lambda name: name)
    monkeypatch.setattr(compiled, "_loading", loading)
    reader, resolved = program(of("int"), of("int"))
    decode(reader.layout, [resolved], *laid([n(1), n(2)]))
    assert not used
    decode(reader.layout, [resolved], *laid([n(1), n(2)]))
    assert loading.thread is not None
    loading.thread.join()
    used.clear()
    found = decode(reader.layout, [resolved], *laid([n(1), n(2)]))
    assert found.array.to_pylist() == [{"v": 1}, {"v": 2}]
    assert len(used) == 1


def test_room_is_made_for_what_the_bytes_can_hold() -> None:
    layout: Layout = program(of(array(array("long"))), of(array(array("long"))))[0].layout
    room = Room(layout, 1_000, 30)
    assert len(room.memory) < 50
    room.sizes[1:] = 6, 7
    room.memory[:] = np.arange(len(room.memory))
    before = [room.memory[base : base + 6].tolist() for base in room.bases[-2:]]
    room.grow(1, 50)
    assert room.rooms.tolist() == [1_000, 50, 20]
    assert [room.memory[base : base + 6].tolist() for base in room.bases[-2:]] == before
