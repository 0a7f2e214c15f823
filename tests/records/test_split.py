"""A split batch keeps all records in order."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.records import (
    Codec,
    Compression,
    EncodedBatch,
    batches,
    encode_columns,
    split_batch,
)
from spark_kafka_source.records.compression import decompress
from tests.records.batches import TOPIC_PARTITION, header_of, rows_of
from tests.records.record_tables import NOW_MS, RecordTable, record_tables
from tests.records.strategies import codecs, untimed

PLAIN = Compression(Codec.NONE)


def encoded(columns: pa.RecordBatch, **options: Any) -> EncodedBatch:
    (batch,) = encode_columns(columns, timestamp_ms=NOW_MS, max_batch_bytes=1 << 30, **options)
    return batch


@untimed
@given(record_tables(min_size=2), codecs, codecs, st.integers(0, 2_000))
def test_parts_are_batches_of_the_same_records(
    table: RecordTable, before: Codec, after: Codec, most_bytes: int
) -> None:
    batch = replace(encoded(table.columns, compression=Compression(before)), group=7, start=1000)
    parts = split_batch(batch, most_bytes, Compression(after))
    assert len(parts) >= 2
    for part in parts:
        rows = list(range(part.start - 1000, part.stop - 1000))
        records = decompress(after, part.payload, part.uncompressed_bytes)
        expected = table.expected(replace(part, start=0), rows)
        ((_, plain),) = batches(memoryview(expected), TOPIC_PARTITION)
        assert records == plain
        assert header_of(part.to_bytes())._replace(
            batch_length=0, crc=0, attributes=0
        ) == header_of(expected)._replace(batch_length=0, crc=0, attributes=0)
        assert part.codec is after
        assert part.group == 7
    assert [part.start for part in parts] == [1000, *(part.stop for part in parts[:-1])]
    assert parts[-1].stop == batch.stop


@untimed
@given(st.lists(st.integers(0, 5000), min_size=2, max_size=40), st.integers(62, 30_000))
def test_parts_are_within_the_limit(sizes: list[int], most_bytes: int) -> None:
    batch = encoded(pa.RecordBatch.from_pydict({"value": [bytes(size) for size in sizes]}))
    parts = split_batch(batch, most_bytes, PLAIN)
    # A record takes a few bytes besides its value, and a part has at least one record.
    assert all(part.size <= most_bytes + 12 or part.record_count == 1 for part in parts)


def test_records_alike_make_parts_alike() -> None:
    batch = encoded(pa.RecordBatch.from_pydict({"value": [bytes(1_000)] * 1_000}))
    counts = [part.record_count for part in split_batch(batch, batch.size // 3, PLAIN)]
    assert len(counts) == 4
    assert max(counts) - min(counts) <= 2


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_a_batch_of_many_chunks_is_split(codec: Codec) -> None:
    """The batch has more records and bytes than the decoder takes at once."""
    count = 60_000
    keys, values = ([f"{n:0{width}}" for n in range(count)] for width in (8, 600))
    columns = pa.RecordBatch.from_pydict({"key": keys, "value": values})
    batch = encoded(columns, compression=Compression(codec))
    first, second = split_batch(batch, batch.size * 3 // 5, Compression(codec))
    rows = [row for part in (first, second) for row in rows_of(part.to_bytes())]
    assert abs(first.record_count - second.record_count) < count / 50
    assert [row.key for row in rows] == [key.encode() for key in keys]
    assert [row.value for row in rows] == [value.encode() for value in values]


def test_keys_of_headers_need_not_be_utf8() -> None:
    kind = pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())]))
    cells = [[{"key": b"\xff", "value": None}], [], [{"key": b"\xfe", "value": b"x"}]]
    batch = encoded(pa.RecordBatch.from_pydict({"headers": pa.array(cells, kind)}))
    parts = split_batch(batch, 100, PLAIN)
    assert b"".join(bytes(part.payload) for part in parts).count(b"\xff") == 1
    assert b"\x02\xfe\x02x" in bytes(parts[-1].payload)


def test_one_record_is_no_more_to_be_split() -> None:
    with pytest.raises(ValueError, match="one record"):
        split_batch(encoded(pa.RecordBatch.from_pydict({"value": [b"x"]})), 1, PLAIN)
