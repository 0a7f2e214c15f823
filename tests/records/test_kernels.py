"""The kernels, interpreted and compiled, give the results and errors of the numpy code."""

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_kafka_source.errors import CorruptRecordError
from spark_kafka_source.records import Chunk, Codec, chunks, compiled, kernels
from spark_kafka_source.records.chunk import Parts, Segment
from spark_kafka_source.records.columns import copied, gather
from spark_kafka_source.records.compiled import Kernels
from spark_kafka_source.records.headers import headers_by_kernel, headers_by_numpy
from spark_kafka_source.records.locate import Segments, by_kernel, by_numpy
from spark_kafka_source.records.located import Located
from tests.records.batches import TOPIC_PARTITION, Batch, Row, encoded, numbered, rows_of
from tests.records.strategies import fetches, untimed

AS_WRITTEN = Kernels(kernels.locate_records, kernels.locate_headers, kernels.copy_records)

THREE_CODECS = [
    Batch(
        tuple(
            Row(3 * number + place, 1_000, key, value)
            for place, (key, value) in enumerate([(b"k", None), (None, b"v"), (b"", b"w" * 70)])
        ),
        base_offset=3 * number,
        codec=codec,
    )
    for number, codec in enumerate((Codec.LZ4, Codec.NONE, Codec.GZIP))
]


@pytest.fixture(
    scope="module", params=["as written", pytest.param("compiled", marks=pytest.mark.slow)]
)
def forms(request: pytest.FixtureRequest) -> Kernels:
    if request.param == "as written":
        return AS_WRITTEN
    pytest.importorskip("numba")
    loaded = compiled.load()
    assert loaded is not None
    return loaded


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


def same(found: object, expected: object) -> bool:
    if is_dataclass(expected):
        names = [field.name for field in fields(expected)]
        return all(same(getattr(found, name), getattr(expected, name)) for name in names)
    return np.array_equal(np.asarray(found), np.asarray(expected))


def mutated(chunk: Chunk, draw: st.DataObject) -> Chunk:
    """Return the chunk with up to four changed bytes."""
    data = bytearray(chunk.data)
    for _ in range(draw.draw(st.integers(0, 4))):
        # Half of the changes are in the first record, where more of the structure is.
        reach = draw.draw(st.sampled_from([30, len(data)]))
        at = draw.draw(st.integers(0, max(min(reach, len(data)) - 1, 0)))
        data[at : at + 1] = [draw.draw(st.integers(0, 255) | st.sampled_from([0, 1, 127, 128]))]
    changed: Chunk = type(chunk)(
        chunk.topic_partition,
        chunk.position,
        chunk.end,
        Parts([bytes(data[: len(chunk.data)])] * len(chunk.segments), chunk.segments),
        chunk.next_offset,
    )
    return changed


def mutated_parts(parts: Parts, draw: st.DataObject) -> Parts:
    """Return the parts with a changed byte, or as they are."""
    if not parts.segments or not draw.draw(st.booleans()):
        return Parts(parts.buffers, parts.segments)
    buffers = list(parts.buffers)
    at = draw.draw(st.integers(0, len(buffers) - 1))
    segment, changed = parts.segments[at], bytearray(buffers[at])
    place = draw.draw(st.integers(segment.start, segment.end - 1))
    changed[place] = draw.draw(st.integers(0, 255) | st.sampled_from([0, 1, 127, 128]))
    buffers[at] = bytes(changed)
    return Parts(buffers, parts.segments)


def expected(chunk: Chunk) -> Located | None:
    try:
        return by_numpy(Segments(chunk))
    except CorruptRecordError:
        return None


@untimed
@given(batches=fetches(), chunk_bytes=st.sampled_from([100, 1 << 20]), draw=st.data())
def test_records_are_those_that_numpy_finds_or_refused_where_it_refuses_them(
    forms: Kernels, batches: list[Batch], chunk_bytes: int, draw: st.DataObject
) -> None:
    fetch = b"".join(map(encoded, batches))
    for whole in chunks(fetch, topic_partition=TOPIC_PARTITION, chunk_bytes=chunk_bytes):
        chunk = mutated(whole, draw)
        located, found = expected(chunk), by_kernel(Segments(chunk), forms.locate_records)
        assert (found is None) == (located is None)
        if found is not None:
            assert same(found, located)


@untimed
@given(
    batches=fetches(),
    chunk_bytes=st.sampled_from([100, 1 << 20]),
    start=st.sampled_from([0, 1, 30]),
    draw=st.data(),
)
def test_copied_columns_are_those_that_numpy_finds_or_none_where_it_refuses_records(
    forms: Kernels, batches: list[Batch], chunk_bytes: int, start: int, draw: st.DataObject
) -> None:
    fetch = b"".join(map(encoded, batches))
    where = TOPIC_PARTITION
    for whole in chunks(fetch, topic_partition=where, position=start, chunk_bytes=chunk_bytes):
        chunk = replace(whole, parts=mutated_parts(whole.parts, draw))
        found = copied(chunk, forms.copy_records)
        wanted = expected(chunk)
        if found is not None:
            assert wanted is not None
            assert same(found.offset, wanted.offset)
            assert same(found.timestamp_ms, wanted.timestamp_ms)
            assert same(found.timestamp_type, wanted.timestamp_type)
            for column, slices in ((found.key, wanted.key), (found.value, wanted.value)):
                column.validate(full=True)
                assert column.equals(gather(chunk.data, slices))
        elif wanted is not None and chunk.parts.segments:
            first, last = chunk.parts.segments[0], chunk.parts.segments[-1]
            assert first.first_offset < chunk.position or last.last_offset >= chunk.end


def test_segments_of_several_buffers_are_copied_as_if_they_were_in_one(forms: Kernels) -> None:
    fetch = b"".join(encoded(each) for each in THREE_CODECS)
    (chunk,) = chunks(fetch, topic_partition=TOPIC_PARTITION)
    assert len({*map(id, chunk.parts.buffers)}) == 3
    found = copied(chunk, forms.copy_records)
    assert found is not None
    assert found.key.to_pylist() == [b"k", None, b""] * 3
    assert found.value.to_pylist() == [None, b"v", b"w" * 70] * 3


def test_no_column_outgrows_its_records(forms: Kernels) -> None:
    """A column's memory is given back behind its last byte."""
    fetch = encoded(THREE_CODECS[0])
    (chunk,) = chunks(fetch, topic_partition=TOPIC_PARTITION)
    found = copied(chunk, forms.copy_records)
    assert found is not None
    assert (found.key.buffers()[2].size, found.value.buffers()[2].size) == (1, 71)


@untimed
@given(batches=fetches(), draw=st.data())
def test_headers_are_those_that_numpy_finds_or_refused_where_it_refuses_them(
    forms: Kernels, batches: list[Batch], draw: st.DataObject
) -> None:
    fetch = b"".join(map(encoded, batches))
    for whole in chunks(fetch, topic_partition=TOPIC_PARTITION):
        chunk = mutated(whole, draw)
        located = expected(chunk)
        if located is None:
            continue
        found = headers_by_kernel(chunk, located, forms.locate_headers)
        if found is None:
            with pytest.raises(CorruptRecordError):
                headers_by_numpy(chunk, located)
        else:
            assert same(found, headers_by_numpy(chunk, located))


RECORD = bytes.fromhex("0c000000000000")


@settings(untimed, max_examples=300)
@given(st.data())
def test_no_index_is_used_that_was_not_checked(draw: st.DataObject) -> None:
    """The test uses interpreted kernels. Compiled ones would access memory beyond their arrays."""
    data = draw.draw(st.binary(max_size=20) | st.just(3 * RECORD))
    rows = draw.draw(st.integers(0, 4))
    near = st.sampled_from([-(1 << 40), -7, -1, 0, 7, 14, len(data), len(data) + 7])
    count = st.integers(-1, rows + 1)
    offsets = st.tuples(*[st.sampled_from([0, 0, 9])] * 6)
    segment = st.tuples(near, near, count, offsets).map(lambda s: (*s[:3], *s[3]))
    table = draw.draw(st.lists(segment, max_size=3))
    segments = np.array(table, np.int64).reshape(-1, len(Segment._fields))
    octets: Any = Strict(np.frombuffer(data, np.uint8))
    kernels.locate_records(octets, segments, *outputs(rows))
    records = draw.draw(st.lists(st.tuples(near, count, near), max_size=3))
    starts, counts, ends = np.array(records, np.int64).reshape(-1, 3).T
    bounds, value_bounds, null = (outputs(rows)[index] for index in (2, 4, 5))
    kernels.locate_headers(octets, starts, counts, ends, bounds, value_bounds, null)


def test_no_more_is_written_than_there_is_room_for() -> None:
    octets: Any = Strict(np.frombuffer(RECORD, np.uint8))
    segments = np.array([[0, len(RECORD), 1, 0, 0, 0, 0, 0, 0]])
    assert kernels.locate_records(octets, segments, *outputs(1))
    assert not kernels.locate_records(octets, segments, *outputs(0))
    for rows in (0, 1):
        bounds, value_bounds, null = (outputs(rows)[index] for index in (2, 4, 5))
        start, count, end = np.array([[1], [1], [3]])  # an empty key, an empty value
        found = kernels.locate_headers(octets, start, count, end, bounds, value_bounds, null)
        assert found is (rows == 1)


def test_no_negative_length_leads_back() -> None:
    """Such a length gives a position before the first. Compiled kernels would read there."""
    key_of_minus_seven: Any = Strict(np.frombuffer(bytes.fromhex("0c0000000d0000"), np.uint8))
    segments = np.array([[0, 7, 1, 0, 0, 0, 0, 0, 0]])
    assert not kernels.locate_records(key_of_minus_seven, segments, *outputs(1))
    bounds, value_bounds, null = (outputs(1)[index] for index in (2, 4, 5))
    start, count, end = np.array([[4], [1], [7]])
    assert not kernels.locate_headers(
        key_of_minus_seven, start, count, end, bounds, value_bounds, null
    )


def outputs(rows: int) -> list[Any]:
    """Return all arrays that `locate_records` fills."""
    longs, bounds = (np.empty(rows, np.int64), np.empty(2 * rows, np.int32))
    null = np.empty(rows, np.bool_)
    return [
        Strict(array.copy())
        for array in (longs, longs, bounds, null, bounds, null, longs, longs, longs)
    ]


@pytest.fixture
def with_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "kernels", lambda record_count=0: AS_WRITTEN)


@pytest.mark.usefixtures("with_kernels")
def test_rows_and_errors_are_the_same_with_kernels() -> None:
    good = Batch(numbered(3))
    assert rows_of(encoded(good)) == good.expected
    bad = encoded(good)[:-1] + b"\x08"
    with pytest.raises(CorruptRecordError, match="record 3 of 3: its headers do not fit in"):
        rows_of(bad, check_crcs=False)


def test_rows_and_bytes_without_room_are_refused() -> None:
    """A compiled kernel would write behind its arrays."""
    (chunk,) = chunks(encoded(THREE_CODECS[1]), topic_partition=TOPIC_PARTITION)
    table = Segments(chunk).table
    for rows, key_bytes, value_bytes, expected in (
        (3, 1, 71, 3),
        (2, 1, 71, -1),
        (3, 0, 71, -1),
        (3, 1, 70, -1),
    ):
        found = kernels.copy_records(
            np.frombuffer(chunk.data, np.uint8),
            table,
            0,
            np.empty((2, rows), np.int64),
            np.zeros((2, rows + 1), np.int32),
            np.empty((2, rows), np.bool_),
            np.empty(key_bytes, np.uint8),
            np.empty(value_bytes, np.uint8),
        )
        assert found == expected
