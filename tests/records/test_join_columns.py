"""Columns of several tables with any types are encoded as one."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.records import encode_columns, join_columns
from tests.records.batches import Row, rows_of
from tests.records.record_tables import NOW_MS, RecordTable, record_tables
from tests.records.strategies import untimed

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def read(columns: pa.RecordBatch, timestamp_ms: int = NOW_MS) -> list[Row]:
    (batch,) = encode_columns(columns, timestamp_ms=timestamp_ms, max_batch_bytes=1 << 30)
    return rows_of(batch.to_bytes())


def batch_of(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


@untimed
@given(st.lists(record_tables(min_size=1), min_size=1, max_size=4))
def test_rows_are_those_of_all_tables_in_their_order(tables: list[RecordTable]) -> None:
    joined = join_columns([each.columns for each in tables], NOW_MS)
    records = [record for each in tables for record in each.records]
    assert read(joined) == [
        Row(offset, each.timestamp_ms, each.key, each.value, tuple(each.headers))
        for offset, each in enumerate(records)
    ]


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (pa.timestamp("us", "UTC"), 1_999_999),
        (pa.timestamp("ns"), 1_999_999_999),
        (pa.timestamp("ms", "Asia/Tokyo"), 1_999),
        (pa.int64(), 1_999),
    ],
)
def test_times_are_milliseconds_whatever_their_unit(kind: pa.DataType, given: int) -> None:
    """Single rows have whole numbers of milliseconds."""
    by_itself = batch_of(value=[b"a"], timestamp=pa.array([7], pa.int64()))
    columns = batch_of(value=[b"b", b"c"], timestamp=pa.array([given, None], kind))
    joined = join_columns([by_itself, columns], 55)
    assert [each.timestamp_ms for each in read(joined, 55)] == [
        7,
        1_999,
        55,
    ]


def test_what_is_missing_in_some_is_null_there() -> None:
    pieces = [
        batch_of(value=["a"]),
        batch_of(key=pa.array([b"k"], pa.large_binary())),
        batch_of(headers=pa.array([[("h", b"x")]], HEADERS)),
        batch_of(other=[1]),
    ]
    assert read(join_columns(pieces, 55), 55) == [
        Row(0, 55, None, b"a", ()),
        Row(1, 55, b"k", None, ()),
        Row(2, 55, None, None, (("h", b"x"),)),
        Row(3, 55, None, None, ()),
    ]


def test_tables_without_a_common_column_keep_their_rows() -> None:
    pieces = [batch_of(other=[1, 2]), batch_of(another=[3])]
    assert read(join_columns(pieces, 55), 55) == [
        Row(each, 55, None, None, ()) for each in range(3)
    ]


def test_a_null_list_and_an_empty_one_are_no_headers() -> None:
    first = batch_of(headers=pa.array([None, [], [("h", None)], None], HEADERS))
    second = batch_of(headers=pa.nulls(1))
    joined = join_columns([first.slice(1), second, first.slice(3)], 55)
    assert [each.headers for each in read(joined, 55)] == [(), (("h", None),), (), (), ()]
