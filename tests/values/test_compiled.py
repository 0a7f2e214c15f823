"""The kernels of values follow the same rule of use as the kernels that locate records."""

from typing import Any

import numpy as np
import pytest

from spark_kafka_source.records import compiled as of_records
from spark_kafka_source.records.compiled import Loading
from spark_kafka_source.values import compiled, decode
from spark_kafka_source.values.by_row import Room
from spark_kafka_source.values.columns import Layout
from spark_kafka_source.values.protobuf import compiled as messages
from tests.values.avro_oracle import laid, program
from tests.values.test_avro_cases import array, n, of
from tests.values.test_protobuf_cases import reader as message_reader


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


def test_a_format_counts_its_own_rows_and_loads_only_its_own_kernels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded: list[str] = []
    loadings: list[Loading[compiled.Kernels]] = []
    monkeypatch.setattr(of_records, "find_spec", lambda name: name)
    for module, name in ((compiled, "avro"), (messages, "protobuf")):

        def load(name: str = name) -> None:
            loaded.append(name)

        loadings.append(Loading[compiled.Kernels](load, after_records=3))
        monkeypatch.setattr(module, "_loading", loadings[-1])
    by = message_reader("Plain")
    for _ in range(2):
        assert not loaded
        by.decode([by.program()], *laid([b"", b""]))
    of_avro, of_protobuf = (each.thread for each in loadings)
    assert of_avro is None
    assert of_protobuf is not None
    of_protobuf.join()
    assert loaded == ["protobuf"]


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
