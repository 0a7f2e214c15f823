"""The way of columns into batches: the place of each row, and the rows in errors."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.producer import columns as columns_module
from spark_kafka_source.producer.accumulator import Part
from spark_kafka_source.producer.columns import (
    Piece,
    append,
    by_topic,
    check_partitions,
    given_partitions,
    pieces_of,
)
from spark_kafka_source.producer.partitioners import NO_PARTITION
from spark_kafka_source.records import ColumnTypeError, RowTooLargeError, UnencodableRowError
from spark_kafka_source.topic_partition import TopicPartition
from tests.producer.test_accumulator import accumulator_of, heads
from tests.producer.writing import T0
from tests.records.strategies import untimed

MIB = 1 << 20
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def pieces(columns: Any, most: int = MIB, buffer: int = 32 * MIB) -> list[Piece]:
    return pieces_of(columns, most, buffer)


def batch_of(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def chunked(*lengths: int, **wrong: Any) -> pa.Table:
    """Return a table in chunks. Each value is its row's number."""
    ends = np.cumsum(lengths).tolist()
    batches = [
        batch_of(value=pa.array([b"%d" % each for each in range(end - length, end)], pa.binary()))
        for length, end in zip(lengths, ends, strict=True)
    ]
    table = pa.Table.from_batches(batches)
    for name, column in wrong.items():
        table = table.append_column(name, pa.chunked_array(column))
    return table


def values(piece: Piece) -> list[int]:
    return [int(each) for each in piece.columns["value"].to_pylist()]


# -- pieces ----------------------------------------------------------------------------------------


def test_all_rows_of_all_chunks_are_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns_module, "PIECE_BYTES", 100)
    found = pieces(chunked(3, 0, 1, 20))
    assert [row for piece in found for row in values(piece)] == list(range(24))
    assert max(len(piece.sizes) for piece in found) == 5
    assert all(piece.given_rows(np.arange(len(piece.sizes))) == values(piece) for piece in found)


def test_a_row_larger_than_a_piece_is_one_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns_module, "PIECE_BYTES", 10)
    assert [len(each.sizes) for each in pieces(chunked(3))] == [1, 1, 1]


@pytest.mark.parametrize(
    "nothing",
    [
        pa.table({"value": pa.array([], pa.binary())}),
        pa.schema([("value", pa.string())]).empty_table(),
        batch_of(value=pa.array([], pa.binary())),
        pa.table({}),
    ],
    ids=["a chunk", "no chunk", "a batch", "no column"],
)
def test_without_rows_there_are_no_pieces(nothing: Any) -> None:
    assert pieces(nothing) == []


def test_a_column_of_another_type_is_named() -> None:
    with pytest.raises(ColumnTypeError, match="Column 'key' is of the type int64"):
        pieces(batch_of(key=[1], value=[b""]))


def test_a_column_that_is_there_twice_is_named() -> None:
    twice = pa.RecordBatch.from_arrays([pa.array([b"1"])] * 2, ["value", "value"])
    with pytest.raises((ColumnTypeError, KeyError), match="value"):
        pieces(twice)


def test_a_row_that_is_too_large_is_named_by_its_place_in_the_table() -> None:
    table = pa.Table.from_batches([batch_of(value=[b"", b""]), batch_of(value=[b"", b"x" * 1_000])])
    with pytest.raises(RowTooLargeError, match=r"'kafka\.max\.request\.size' is 500") as caught:
        pieces(table, most=500)
    assert caught.value.rows == (3,)
    with pytest.raises(RowTooLargeError, match=r"'kafka\.buffer\.memory' is 600") as caught:
        pieces(table, buffer=600)
    assert caught.value.rows == (3,)


def test_a_row_that_cannot_be_encoded_is_named_by_its_place_in_the_table() -> None:
    times = [pa.array([0, 1]), pa.array([5]), pa.array([-7, 0, -8])]
    with pytest.raises(UnencodableRowError, match="before 1970") as caught:
        pieces(chunked(2, 1, 3, timestamp=times))
    assert caught.value.rows == (3, 5)


# -- topics ----------------------------------------------------------------------------------------


def test_rows_go_to_the_topics_that_the_column_names_in_their_order() -> None:
    (piece,) = pieces(batch_of(value=[b"0", b"1", b"2", b"3"], topic=["b", "a", "b", "b"]))
    assert [(name, values(part)) for name, part in by_topic(piece)] == [
        ("b", [0, 2, 3]),
        ("a", [1]),
    ]


def test_one_topic_for_all_takes_no_copy() -> None:
    large = pa.array(["a", "a"], pa.large_string())
    (piece,) = pieces(batch_of(value=[b"0", b"1"], topic=large))
    assert by_topic(piece) == [("a", piece)]


@pytest.mark.parametrize("column", [{}, {"topic": [1, 2]}, {"topic": [b"a", b"b"]}])
def test_without_a_column_of_topics_there_must_be_a_topic(column: Any) -> None:
    (piece,) = pieces(batch_of(value=[b"0", b"1"], **column))
    with pytest.raises(ColumnTypeError, match=r"'topic'.*must be a string, where no topic"):
        by_topic(piece)


def test_a_null_topic_is_named_by_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns_module, "PIECE_BYTES", 50)
    topics = [pa.array(["a", "a"]), pa.array(["a", None, None])]
    with pytest.raises(UnencodableRowError, match="its topic is null") as caught:
        for piece in pieces(chunked(2, 3, topic=topics)):
            by_topic(piece)
    assert caught.value.rows[0] == 3


# -- partitions ------------------------------------------------------------------------------------


def partitions(*given: Any, kind: pa.DataType | None = None) -> list[int]:
    column = pa.array(given, kind or pa.int32())
    (piece,) = pieces(batch_of(value=[b""] * len(given), partition=column))
    return [int(each) for each in given_partitions(piece)]


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint64()]
)
def test_partitions_of_any_whole_numbers(kind: pa.DataType) -> None:
    assert partitions(2, None, 0, kind=kind) == [2, NO_PARTITION, 0]


def test_without_a_column_of_partitions_no_row_has_one() -> None:
    (piece,) = pieces(batch_of(value=[b"", b""]))
    assert given_partitions(piece).tolist() == [NO_PARTITION] * 2
    assert partitions(None, None, kind=pa.null()) == [NO_PARTITION] * 2


@pytest.mark.parametrize("kind", [pa.string(), pa.float64(), pa.bool_()])
def test_partitions_of_another_type_are_refused(kind: pa.DataType) -> None:
    with pytest.raises(ColumnTypeError, match=r"'partition'.*must be a whole number"):
        partitions(None, kind=kind)


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [(pa.int32(), -1), (pa.int64(), -5), (pa.int64(), 1 << 31), (pa.uint64(), (1 << 64) - 1)],
)
def test_a_number_that_is_no_partition_is_named(kind: pa.DataType, wrong: int) -> None:
    with pytest.raises(UnencodableRowError, match=f"its partition is {wrong}") as caught:
        partitions(0, None, wrong, kind=kind)
    assert caught.value.rows == (2,)


def test_a_partition_that_the_topic_has_not_is_named_by_its_row_among_topics() -> None:
    """A row's number within its topic differs from its number in the table."""
    table = pa.Table.from_batches(
        [
            batch_of(value=[b""], topic=["a"], partition=[0]),
            batch_of(value=[b""] * 4, topic=["b", "a", "b", "a"], partition=[9, 1, 9, 9]),
        ]
    )
    _, piece = pieces(table)
    (_, of_b), (_, of_a) = by_topic(piece)
    check_partitions(of_b, given_partitions(of_b), "b", 10)
    said = "its partition is 9, and topic 'a' has 2, from 0 on"
    with pytest.raises(UnencodableRowError, match=said) as caught:
        check_partitions(of_a, given_partitions(of_a), "a", 2)
    assert caught.value.rows == (4,)
    with pytest.raises(UnencodableRowError) as caught:
        check_partitions(of_b.take(np.array([1])), np.array([9]), "b", 2)
    assert caught.value.rows == (3,)


# -- batches ---------------------------------------------------------------------------------------


@untimed
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 300)), min_size=1, max_size=60),
    st.integers(1, 1_000),
    st.integers(0, 2),
)
def test_each_partition_gets_its_rows_in_order_in_batches_of_the_right_size(
    rows: list[tuple[int, int]], batch_size: int, before: int
) -> None:
    accumulator = accumulator_of(batch_size=batch_size, buffer_memory=1 << 30)
    for _ in range(before):
        accumulator.append([Part(T0, [(None, b"-1", [], 0)], 100)])
    padded = [b"%d" % number + b" " * size for number, (_, size) in enumerate(rows)]
    (piece,) = pieces(batch_of(value=padded, other=[1] * len(rows)))
    where = np.array([partition for partition, _ in rows])
    runs = list(append(accumulator, "t", piece, where))
    assert sum(each.count for each in runs) == len(rows)
    accumulator.close_open()
    for partition in {*where.tolist()}:
        found = heads(accumulator, TopicPartition("t", partition))
        expected = [number for number, (each, _) in enumerate(rows) if each == partition]
        earlier = [-1] * before if partition == 0 else []
        assert [each for batch in found for each in batch] == earlier + expected
        for batch in found:
            size = sum(piece.sizes[each] if each >= 0 else 100 for each in batch)
            assert size <= batch_size or len(batch) == 1


def test_rows_without_a_column_of_a_records_are_records_all_the_same() -> None:
    accumulator = accumulator_of()
    (piece,) = pieces(batch_of(other=pa.nulls(3)))
    (run,) = append(accumulator, "t", piece, np.zeros(3, np.int64))
    assert run.count == 3
    accumulator.close_open()
    assert heads(accumulator) == [[-1, -1, -1]]
