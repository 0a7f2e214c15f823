"""The column encoder gives the bytes of `encode_batch`, and Kafka reads them."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.records import (
    Codec,
    ColumnTypeError,
    Compression,
    EncodedBatch,
    Record,
    RowTooLargeError,
    UnencodableRowError,
    column_encoder,
    encode_columns,
)
from spark_kafka_source.records.batch import HEADER_BYTES
from spark_kafka_source.records.compression import DEFAULT_LEVELS, LEVELS
from tests.records.batches import Row, header_of, rows_of
from tests.records.oracle import Oracle, ask_kafka
from tests.records.record_tables import NOW_MS, RecordTable, record_tables
from tests.records.strategies import codecs, producers, untimed

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def encoded(columns: pa.RecordBatch, rows: Any = None, **options: Any) -> list[EncodedBatch]:
    return list(encode_columns(columns, rows, timestamp_ms=NOW_MS, **options))


def read(batch: EncodedBatch) -> list[Row]:
    return rows_of(batch.to_bytes())


def as_rows(records: list[Record]) -> list[Row]:
    return [
        Row(offset, record.timestamp_ms, record.key, record.value, tuple(record.headers))
        for offset, record in enumerate(records)
    ]


@untimed
@given(record_tables(), producers, st.booleans(), st.data())
def test_bytes_are_those_of_encode_batch(
    table: RecordTable, producer: tuple[int, int, int], transactional: bool, draw: st.DataObject
) -> None:
    """This holds for all types, all or some rows in any order, and batches of any size."""
    every = list(range(len(table.records)))
    rows = draw.draw(st.none() | st.permutations(every).map(lambda p: p[: len(p) // 2 + 1]))
    order = every if rows is None else rows
    found = encoded(
        table.columns,
        None if rows is None else np.array(rows, np.int64),
        max_batch_bytes=draw.draw(st.sampled_from([1, 300, 5000, 1 << 20])),
    )
    assert [row for batch in found for row in range(batch.start, batch.stop)] == list(
        range(len(order))
    )
    producer_id, producer_epoch, base_sequence = producer
    state: dict[str, Any] = {
        "producer_id": producer_id,
        "producer_epoch": producer_epoch,
        "base_sequence": base_sequence,
        "transactional": transactional,
    }
    for batch in found:
        assert b"".join(batch.pieces(**state)) == table.expected(batch, order, **state)
        assert batch.to_bytes() == table.expected(batch, order)
        assert batch.uncompressed_bytes == batch.size == len(batch.to_bytes())


@untimed
@given(record_tables(), codecs, st.integers(200, 5000))
def test_compressed_batches_read_back_as_the_records_were(
    table: RecordTable, codec: Codec, max_batch_bytes: int
) -> None:
    found = encoded(table.columns, compression=Compression(codec), max_batch_bytes=max_batch_bytes)
    for batch in found:
        assert read(batch) == as_rows(table.records[batch.start : batch.stop])
        assert header_of(batch.to_bytes()).codec is codec
    assert sum(batch.record_count for batch in found) == len(table.records)


@untimed
@given(record_tables(), st.integers(100, 50_000), st.data())
def test_batches_are_cut_by_their_bytes_and_hold_records_of_one_group(
    table: RecordTable, max_batch_bytes: int, draw: st.DataObject
) -> None:
    count = len(table.records)
    bounds = [0, *sorted(draw.draw(st.lists(st.integers(0, count), max_size=5))), count]
    found = encoded(table.columns, bounds=bounds, max_batch_bytes=max_batch_bytes)
    for batch in found:
        assert bounds[batch.group] <= batch.start < batch.stop <= bounds[batch.group + 1]
        assert batch.uncompressed_bytes <= max_batch_bytes or batch.record_count == 1
    for before, after in pairwise(found):
        # A few bytes per record are lost, since deltas are unknown before the cut.
        both = before.uncompressed_bytes + after.uncompressed_bytes - HEADER_BYTES
        slack = 16 * (before.record_count + after.record_count)
        assert before.group < after.group or both + slack > max_batch_bytes


def many(count: int = 40_000) -> pa.RecordBatch:
    values = [b"%d" % n * (n % 40) for n in range(count)]
    keys = [None if n % 7 == 0 else b"%d" % n for n in range(count)]
    times = [1_700_000_000_000 + n * n % 1_000_003 for n in range(count)]
    return pa.RecordBatch.from_pydict({"key": keys, "value": values, "timestamp": times})


@pytest.mark.parametrize("max_batch_bytes", [20_000, 1 << 20, 1 << 30])
@pytest.mark.parametrize("span_rows", [1, 7_000, 1 << 16])
def test_large_tables_are_encoded_alike_whatever_is_joined_at_once(
    monkeypatch: pytest.MonkeyPatch, max_batch_bytes: int, span_rows: int
) -> None:
    monkeypatch.setattr(column_encoder, "SPAN_ROWS", span_rows)
    columns = many()
    table = RecordTable(columns, records_of(columns))
    found = encoded(columns, max_batch_bytes=max_batch_bytes)
    for batch in found:
        assert batch.to_bytes() == table.expected(batch, list(range(columns.num_rows)))
    assert found[-1].stop == columns.num_rows


@pytest.mark.parametrize("max_batch_bytes", [20_000, 1 << 20])
def test_rows_of_large_tables_are_encoded_in_an_order_of_their_own(max_batch_bytes: int) -> None:
    columns = many()
    table = RecordTable(columns, records_of(columns))
    rows = np.random.default_rng(1).permutation(columns.num_rows)[: columns.num_rows // 2]
    found = encoded(columns, rows, max_batch_bytes=max_batch_bytes)
    for batch in found:
        assert batch.to_bytes() == table.expected(batch, rows.tolist())
    assert found[-1].stop == len(rows)


def records_of(columns: pa.RecordBatch) -> list[Record]:
    cells = zip(*(column.to_pylist() for column in columns), strict=True)
    return [Record(key, value, (), ms) for key, value, ms in cells]


def far_into_its_data() -> pa.Array:
    """Return two values that begin 3 GiB after the first byte, as in a slice of a large table."""
    far = 3 << 30
    data = np.zeros(far + 8, np.uint8)  # only the end is touched, so the rest is not in memory
    data[far:] = np.frombuffer(b"onethree", np.uint8)
    buffers = [None, pa.py_buffer(np.array([far, far + 3, far + 8])), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), 2, buffers)


@pytest.mark.parametrize("column", ["key", "value"])
def test_bounds_beyond_32_bits_are_no_matter(column: str) -> None:
    (batch,) = encoded(pa.RecordBatch.from_pydict({column: far_into_its_data()}))
    assert [getattr(row, column) for row in read(batch)] == [b"one", b"three"]


def test_headers_may_lie_beyond_32_bits() -> None:
    pairs = pa.StructArray.from_arrays(
        [pa.array(["a", "b"]), far_into_its_data()], ["key", "value"]
    )
    headers = pa.ListArray.from_arrays(pa.array([0, 2, 2], pa.int32()), pairs)
    (batch,) = encoded(pa.RecordBatch.from_pydict({"headers": headers}))
    assert [row.headers for row in read(batch)] == [(("a", b"one"), ("b", b"three")), ()]


@pytest.mark.parametrize("column", ["key", "value"])
def test_bytes_behind_a_null_are_not_written(column: str) -> None:
    """A null in Arrow may have bytes. A filter or a cast may leave them there."""
    bounds = pa.py_buffer(np.array([0, 3, 6], np.int32))
    buffers = [pa.py_buffer(b"\x02"), bounds, pa.py_buffer(b"abcdef")]
    cells = pa.Array.from_buffers(pa.binary(), 2, buffers)
    (batch,) = encoded(pa.RecordBatch.from_pydict({column: cells}))
    assert [getattr(row, column) for row in read(batch)] == [None, b"def"]


def test_no_rows_make_no_batch() -> None:
    assert encoded(many(0)) == []
    assert encoded(many(3), np.empty(0, np.int64)) == []
    assert encoded(many(0), bounds=[0, 0, 0]) == []


def test_times_that_wrap_around_are_written_as_java_does() -> None:
    largest = (1 << 63) - 1
    columns = pa.RecordBatch.from_pydict({"timestamp": [-1, largest]})
    (batch,) = encoded(columns)
    table = RecordTable(columns, [Record(timestamp_ms=-1), Record(timestamp_ms=largest)])
    assert batch.to_bytes() == table.expected(batch, [0, 1])


def test_a_record_may_take_what_kafkas_producer_reckons() -> None:
    """Kafka's upper bound: the batch's header, 21 bytes of the record, and the record's fields."""
    columns = pa.RecordBatch.from_pydict({"value": [b"x" * 90, b"x" * 1000, b"", b"x" * 1001]})
    most = 61 + 21 + 1 + 2 + 1000 + 1
    with pytest.raises(RowTooLargeError) as refused:
        encoded(columns, max_request_bytes=most)
    assert refused.value.rows == (3,)
    assert str(refused.value) == (
        f"Row 3: its record may take {most + 1} bytes in a request; "
        f"'kafka.max.request.size' is {most}"
    )
    rows = np.array([2, 3, 1, 0])
    with pytest.raises(RowTooLargeError) as refused:
        encoded(columns, rows, max_request_bytes=most - 1)
    assert refused.value.rows == (3, 1)
    assert "Row 3 (and 1 more rows):" in str(refused.value)
    assert len(encoded(columns, max_request_bytes=most + 1, max_batch_bytes=1)) == 4


def test_nothing_is_encoded_where_a_row_cannot_be() -> None:
    columns = pa.RecordBatch.from_pydict({"value": [b"x", b"x" * 1000]})
    with pytest.raises(RowTooLargeError):
        encode_columns(columns, max_request_bytes=200)


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ([[], None, [{"key": "a", "value": b""}, None]], "a header is null"),
        ([[], None, [{"key": None, "value": b""}]], "the key of a header is null"),
    ],
)
def test_headers_without_a_key_are_refused(cells: list[Any], reason: str) -> None:
    columns = pa.RecordBatch.from_pydict({"headers": pa.array(cells, HEADERS)})
    with pytest.raises(UnencodableRowError, match=f"Row 2: {reason}"):
        encode_columns(columns)
    with pytest.raises(UnencodableRowError, match=f"Row 2: {reason}"):
        encode_columns(columns, np.array([2, 0]))


def test_times_before_1970_are_refused() -> None:
    columns = pa.RecordBatch.from_pydict({"timestamp": [0, -1, -2]})
    with pytest.raises(UnencodableRowError, match="Row 2: its timestamp is before 1970"):
        encode_columns(columns)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("key", pa.int32()),
        ("value", pa.list_(pa.binary())),
        ("headers", pa.map_(pa.string(), pa.binary())),
        ("headers", pa.list_(pa.string())),
        ("headers", pa.list_(pa.struct([("key", pa.string())]))),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.int8())]))),
        ("timestamp", pa.date32()),
        ("timestamp", pa.timestamp("s")),
        ("timestamp", pa.int32()),
    ],
)
def test_columns_of_other_types_are_refused_by_name(name: str, kind: pa.DataType) -> None:
    columns = pa.RecordBatch.from_pydict({name: pa.nulls(0, kind)})
    with pytest.raises(ColumnTypeError, match=f"Column '{name}.*must be "):
        encode_columns(columns)


@pytest.mark.parametrize("row", [3, -1])
def test_a_row_that_there_is_not_is_refused(row: int) -> None:
    with pytest.raises(IndexError, match=f"rows {min(row, 0)} to {max(row, 0)} of a table of 3"):
        encode_columns(many(3), np.array([0, row]))


@pytest.mark.parametrize("bounds", [[], [0], [0, 2], [1, 3], [0, 2, 1, 3], [0, 4]])
def test_bounds_that_do_not_divide_the_rows_are_refused(bounds: list[int]) -> None:
    with pytest.raises(ValueError, match="they must ascend from 0 to 3"):
        encode_columns(many(3), bounds=bounds)


@pytest.fixture(scope="module")
def oracle(kafka_jars: list[Path]) -> Iterator[Oracle]:
    with ask_kafka(kafka_jars) as oracle:
        yield oracle


@pytest.mark.java
@untimed
@given(record_tables(min_size=1), codecs, producers, st.booleans())
def test_kafka_reads_what_we_encode(
    oracle: Oracle,
    table: RecordTable,
    codec: Codec,
    producer: tuple[int, int, int],
    transactional: bool,
) -> None:
    """Kafka also finds correct CRCs, offsets and header fields."""
    for batch in encoded(table.columns, compression=Compression(codec), max_batch_bytes=30_000):
        producer_id, producer_epoch, base_sequence = producer
        pieces = batch.pieces(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            transactional=transactional,
        )
        ((facts, rows),) = oracle.decode(b"".join(pieces))
        assert rows == as_rows(table.records[batch.start : batch.stop])
        most_ms = max(row.timestamp_ms for row in rows)
        assert facts == (
            f"{codec.name.lower()} CreateTime 0 {most_ms} {producer_id} {producer_epoch} "
            f"{base_sequence} {str(transactional).lower()} -1 false {len(rows) - 1} -1"
        )


@pytest.mark.java
@pytest.mark.parametrize("codec", Codec)
def test_kafka_reads_large_batches(oracle: Oracle, codec: Codec) -> None:
    """Each batch has several blocks of its codec."""
    columns = many(20_000)
    (batch,) = encoded(columns, compression=Compression(codec), max_batch_bytes=1 << 30)
    ((_, rows),) = oracle.decode(batch.to_bytes())
    assert rows == read(batch)
    assert len(rows) == 20_000


@pytest.mark.java
@untimed
@given(record_tables(min_size=1))
def test_a_record_is_refused_where_kafkas_producer_refuses_it(
    oracle: Oracle, table: RecordTable
) -> None:
    for place, row in enumerate(as_rows(table.records)[:8]):
        size, rows = oracle.size_bound(row), np.array([place])
        assert len(encoded(table.columns, rows, max_request_bytes=size)) == 1
        with pytest.raises(RowTooLargeError, match=f"may take {size} bytes"):
            encode_columns(table.columns, rows, max_request_bytes=size - 1)


@pytest.mark.java
@pytest.mark.parametrize("codec", LEVELS)
def test_levels_are_kafkas(oracle: Oracle, codec: Codec) -> None:
    levels = LEVELS[codec]
    assert oracle.levels(codec) == (levels.start, levels.stop - 1, DEFAULT_LEVELS[codec])
