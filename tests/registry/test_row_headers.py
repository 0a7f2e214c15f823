"""Headers read from a chunk's bytes equal the headers in its Arrow column."""

from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.records import chunks
from spark_kafka_source.records.columns import column
from spark_kafka_source.records.headers import locate_headers
from spark_kafka_source.records.locate import locate
from spark_kafka_source.registry import (
    ColumnRowHeaders,
    ConfluentFraming,
    HeaderValues,
    LocatedRowHeaders,
)
from tests.records.batches import TOPIC_PARTITION, Batch, Row, encoded
from tests.registry.framing_oracle import agrees

NAMES = st.sampled_from(["__value_schema_id", "__value_schema_ie", "__key_schema_id", "", "é"])
VALUES = st.one_of(st.none(), st.just(b"\1" + bytes(16)), st.binary(max_size=6))
HEADERS = st.lists(st.tuples(NAMES, VALUES), max_size=4)
ROWS = st.lists(st.tuples(st.one_of(st.none(), st.binary(max_size=8)), HEADERS), min_size=1)


def plain(found: HeaderValues | None) -> list[tuple[int, bytes]]:
    if found is None:
        return []
    bounds = zip(found.rows.tolist(), found.starts, found.ends, strict=True)
    return [(row, found.data[start:end].tobytes()) for row, start, end in bounds]


@given(ROWS)
def test_located_headers_are_those_of_the_column(
    rows: list[tuple[bytes | None, list[tuple[str, bytes | None]]]],
) -> None:
    written = [Row(n, 0, b"k", value, tuple(held)) for n, (value, held) in enumerate(rows)]
    (chunk,) = chunks(encoded(Batch(tuple(written))), topic_partition=TOPIC_PARTITION)
    located = locate(chunk)
    counts = located.header_count
    there = LocatedRowHeaders(chunk.data, locate_headers(chunk, located), counts)
    held = ColumnRowHeaders(column("headers", chunk, located))
    for name in ("__value_schema_id", "__key_schema_id", "other", ""):
        expected = [
            (row, values[-1])
            for row, (_, headers) in enumerate(rows)
            if (values := [value for key, value in headers if key == name])
        ]
        sound = [(row, value) for row, value in expected if value is not None]
        assert plain(there.last(name)) == plain(held.last(name)) == sound
    last = dict(plain(there.last("__value_schema_id")))
    values = [value for value, _ in rows]
    agrees(ConfluentFraming(), values, [last.get(n) for n in range(len(rows))], there)
