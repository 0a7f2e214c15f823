"""Records made of whole columns, beside a reading of the same columns cell by cell."""

import pickle
from collections.abc import Collection, Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_kafka_source import ConsumerRecord, ConsumerRecords
from spark_kafka_source.consumer.consumer_records import PartitionRecords
from spark_kafka_source.records import COLUMNS_WITH_HEADERS, TimestampType, schema
from spark_kafka_source.records.columns import MAX_TIMESTAMP_MS
from tests.consumer.consumers import T0, T1, T2

PARTITIONS = [T0, T1, T2]
DATA = st.none() | st.binary(max_size=12) | st.integers(100, 40_000).map(bytes)
HEADERS = st.none() | st.lists(
    st.fixed_dictionaries({"key": st.text(max_size=4), "value": DATA}), min_size=1, max_size=4
)
ROWS = st.fixed_dictionaries(
    {
        "key": DATA,
        "value": DATA,
        "topic": st.just("not read"),
        "partition": st.just(-1),
        # A float would lose the last digits of most.
        "offset": st.integers(0, 2**63 - 1),
        "timestamp": st.integers(-MAX_TIMESTAMP_MS, MAX_TIMESTAMP_MS).map(lambda ms: ms * 1000),
        "timestampType": st.sampled_from([each.value for each in TimestampType]),
        "headers": HEADERS,
    }
)
COLUMNS = st.lists(st.sampled_from(COLUMNS_WITH_HEADERS), min_size=1, unique=True).map(tuple)


@st.composite
def taken(draw: st.DrawFn) -> PartitionRecords:
    """Draw a part of a batch, as polls take them: often all of it, or a single record."""
    rows = draw(st.lists(ROWS, min_size=1, max_size=8))
    batch = pa.RecordBatch.from_pylist(rows, schema=schema(COLUMNS_WITH_HEADERS))
    start = draw(st.integers(0, len(rows) - 1))
    return PartitionRecords(
        draw(st.sampled_from(PARTITIONS)), batch.slice(start, draw(st.integers(1, 8)))
    )


def cell_by_cell(given: PartitionRecords, shown: Collection[str]) -> Iterator[ConsumerRecord]:
    """Read one cell after another, as `pa.Scalar` has them."""
    where, batch, _ = given
    for row in range(batch.num_rows):
        cells = {name: batch.column(name)[row] for name in {*shown, "offset"}}
        at = cells.pop("timestamp", None)  # Python has no object for the year 10000.
        found: dict[str, Any] = {name: each.as_py() for name, each in cells.items()}
        number = found.get("timestampType")
        yield ConsumerRecord(
            topic=where.topic,
            partition=where.partition,
            offset=found["offset"],
            timestamp_ms=None if at is None else at.value // 1000,
            timestamp_type=None if number is None else TimestampType(number),
            key=found.get("key"),
            value=found.get("value"),
            headers=[(each["key"], each["value"]) for each in found.get("headers") or ()],
        )


@settings(deadline=None)
@given(st.lists(taken(), max_size=4), COLUMNS)
def test_whole_columns_are_the_records_cell_by_cell(
    parts: list[PartitionRecords], shown: Any
) -> None:
    parts.sort(key=lambda each: each.topic_partition)  # A poll takes one partition after another.
    records = ConsumerRecords(parts, shown)
    expected = [record for each in parts for record in cell_by_cell(each, shown)]
    found = list(records)
    assert found == expected
    # Python's own types, which numpy's are equal to.
    assert repr(found) == repr(expected)
    assert pickle.loads(pickle.dumps(found)) == expected
    assert len(records) == len(expected)
    assert records.partitions == sorted({each.topic_partition for each in parts})
    for where in records.partitions:
        mine = [each for each in expected if (each.topic, each.partition) == where]
        assert list(records.of(where)) == mine
        assert records.first_offset(where) == mine[0].offset
    assert list(records.of("t")) == expected
    assert not records.of("another")


def test_each_record_has_a_list_of_headers_of_its_own() -> None:
    row = dict.fromkeys(COLUMNS_WITH_HEADERS) | {"offset": 0, "timestamp": 0, "timestampType": 0}
    batch = pa.RecordBatch.from_pylist([row, row], schema=schema(COLUMNS_WITH_HEADERS))
    for shown in (COLUMNS_WITH_HEADERS, ("value",)):
        first, second = ConsumerRecords([PartitionRecords(T0, batch)], shown)
        assert first.headers == second.headers == []
        assert first.headers is not second.headers


@pytest.mark.parametrize("name", ["offset", "timestamp", "timestampType"])
def test_a_number_that_is_missing_is_no_other_number(name: str) -> None:
    row = dict.fromkeys(COLUMNS_WITH_HEADERS) | {"offset": 0, "timestamp": 0, "timestampType": 0}
    rows = [row, row | {name: None}]
    batch = pa.RecordBatch.from_pylist(rows, schema=schema(COLUMNS_WITH_HEADERS))
    with pytest.raises(pa.ArrowInvalid):
        list(ConsumerRecords([PartitionRecords(T0, batch)], COLUMNS_WITH_HEADERS))
