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
@given(record_tables(min_size=2), codecs, codecs)
def test_halves_are_batches_of_the_same_records(
    table: RecordTable, before: Codec, after: Codec
) -> None:
    batch = replace(encoded(table.columns, compression=Compression(before)), group=7, start=1000)
    halves = split_batch(batch, Compression(after))
    for half in halves:
        rows = list(range(half.start - 1000, half.stop - 1000))
        records = decompress(after, half.payload, half.uncompressed_bytes)
        expected = table.expected(replace(half, start=0), rows)
        ((_, plain),) = batches(memoryview(expected), TOPIC_PARTITION)
        assert records == plain
        assert header_of(half.to_bytes())._replace(
            batch_length=0, crc=0, attributes=0
        ) == header_of(expected)._replace(batch_length=0, crc=0, attributes=0)
        assert half.codec is after
        assert half.group == 7
    assert [half.start for half in halves] == [1000, 1000 + halves[0].record_count]
    assert halves[1].stop == batch.stop


@untimed
@given(st.lists(st.integers(0, 5000), min_size=2, max_size=40))
def test_halves_are_as_equal_as_can_be(sizes: list[int]) -> None:
    batch = encoded(pa.RecordBatch.from_pydict({"value": [bytes(size) for size in sizes]}))
    unequal = {cut: abs(sum(sizes[:cut]) - sum(sizes[cut:])) for cut in range(1, len(sizes))}
    first, _ = split_batch(batch, PLAIN)
    # A record takes a few bytes besides its value.
    assert unequal[first.record_count] <= min(unequal.values()) + 12 * len(sizes)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_a_batch_of_many_chunks_is_split(codec: Codec) -> None:
    """The batch has more records and bytes than the decoder takes at once."""
    count = 60_000
    keys, values = ([f"{n:0{width}}" for n in range(count)] for width in (8, 600))
    columns = pa.RecordBatch.from_pydict({"key": keys, "value": values})
    batch = encoded(columns, compression=Compression(codec))
    first, second = split_batch(batch, Compression(codec))
    rows = [row for half in (first, second) for row in rows_of(half.to_bytes())]
    assert abs(first.record_count - second.record_count) < count / 50
    assert [row.key for row in rows] == [key.encode() for key in keys]
    assert [row.value for row in rows] == [value.encode() for value in values]


def test_keys_of_headers_need_not_be_utf8() -> None:
    kind = pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())]))
    cells = [[{"key": b"\xff", "value": None}], [], [{"key": b"\xfe", "value": b"x"}]]
    batch = encoded(pa.RecordBatch.from_pydict({"headers": pa.array(cells, kind)}))
    halves = split_batch(batch, PLAIN)
    assert b"".join(bytes(half.payload) for half in halves).count(b"\xff") == 1
    assert b"\x02\xfe\x02x" in bytes(halves[1].payload)


def test_one_record_is_no_more_to_be_split() -> None:
    with pytest.raises(ValueError, match="one record"):
        split_batch(encoded(pa.RecordBatch.from_pydict({"value": [b"x"]})), PLAIN)
