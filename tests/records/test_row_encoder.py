"""Single records encoded one by one: the same bytes as by columns."""

from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.options.kinds import INT64_MAX
from spark_kafka_source.records import (
    Codec,
    Compression,
    Row,
    as_rows,
    columns_of,
    encode_columns,
    encode_rows,
)
from tests.records.record_tables import NOW_MS, RecordTable, record_tables
from tests.records.strategies import untimed

data = st.none() | st.binary(max_size=20) | st.integers(0, 9_000).map(bytes)
headers = st.lists(st.tuples(st.text(max_size=5).map(str.encode), data), max_size=3)
times = st.sampled_from([-1, 0, INT64_MAX]) | st.integers(1_700_000_000_000, 1_700_000_000_100)
rows = st.lists(st.tuples(data, data, headers, times), min_size=1, max_size=70)


@given(rows, st.sampled_from(Codec))
def test_rows_are_encoded_to_the_same_bytes_as_columns(given_rows: list[Row], codec: Codec) -> None:
    compression = Compression(codec)
    (expected,) = encode_columns(
        columns_of(*zip(*given_rows, strict=True)),
        compression=compression,
        max_batch_bytes=1 << 30,
        max_request_bytes=1 << 30,
    )
    found = encode_rows(given_rows, compression)
    assert found.to_bytes() == expected.to_bytes()
    assert found.uncompressed_bytes == expected.uncompressed_bytes


@untimed
@given(record_tables(min_size=1), st.integers(0, 3))
def test_the_rows_of_columns_of_any_types_make_the_bytes_of_the_columns(
    table: RecordTable, start: int
) -> None:
    columns = table.columns.slice(min(start, table.columns.num_rows - 1))
    (expected,) = encode_columns(columns, timestamp_ms=NOW_MS, max_batch_bytes=1 << 30)
    found = encode_rows(as_rows(columns, NOW_MS), Compression(Codec.NONE))
    assert found.to_bytes() == expected.to_bytes()
