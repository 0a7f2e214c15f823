"""Random tables of records in all supported types, and the same rows as records."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from spark_kafka_source.records import EncodedBatch, Record, encode_batch
from tests.records.strategies import headers, kafka_timestamps, payloads

NOW_MS = 1_750_000_000_000
BYTES_TYPES = (pa.binary(), pa.large_binary(), pa.string(), pa.large_string())
TIMESTAMP_TYPES = (
    pa.int64(),
    pa.timestamp("ms"),
    pa.timestamp("us", "UTC"),
    pa.timestamp("ns", "Europe/Berlin"),
)
IN_MS = {"ms": 1, "us": 1000, "ns": 1_000_000}
MAX_NS_IN_MS = 9_223_372_036_854


@dataclass(frozen=True)
class RecordTable:
    """Columns, and the same rows as records."""

    columns: pa.RecordBatch
    records: list[Record]

    def expected(self, batch: EncodedBatch, rows: list[int], **state: Any) -> bytes:
        """Encode a batch's records with `encode_batch`, uncompressed."""
        chosen = rows[batch.start : batch.stop]
        return encode_batch([self.records[row] for row in chosen], **state)


@st.composite
def record_tables(draw: st.DrawFn, min_size: int = 0) -> RecordTable:
    """Draw some of the columns, each in one of its types, perhaps as slices of longer columns."""
    timestamps = kafka_timestamps.filter(lambda ms: ms <= MAX_NS_IN_MS)
    content = st.tuples(payloads, payloads, st.none() | headers, st.none() | timestamps)
    rows = draw(st.lists(content, min_size=min_size, max_size=8)) * draw(
        st.sampled_from([1, 1, 40])
    )
    columns: dict[str, pa.Array] = {}
    keys, values, pairs, times = map(list, zip(*rows, strict=True)) if rows else ([], [], [], [])
    if draw(st.booleans()):
        columns["key"], keys = drawn_bytes(draw, keys)
    else:
        keys = [None] * len(rows)
    if draw(st.booleans()):
        columns["value"], values = drawn_bytes(draw, values)
    else:
        values = [None] * len(rows)
    if draw(st.booleans()):
        columns["headers"] = pa.array(
            [each if each is None else [{"key": k, "value": v} for k, v in each] for each in pairs],
            headers_type(draw),
        )
    else:
        pairs = [None] * len(rows)
    if draw(st.booleans()):
        kind = draw(st.sampled_from(TIMESTAMP_TYPES))
        unit = IN_MS[kind.unit] if pa.types.is_timestamp(kind) else 1
        columns["timestamp"] = pa.array([t if t is None else t * unit for t in times], kind)
    else:
        times = [None] * len(rows)
    # An all-null column. It also gives the number of rows.
    columns["other"] = pa.nulls(len(rows))
    records = [
        Record(key, value, tuple(pair or ()), NOW_MS if ms is None else ms)
        for key, value, pair, ms in zip(keys, values, pairs, times, strict=True)
    ]
    start = draw(st.integers(0, max(len(rows) - min_size, 0))) if draw(st.booleans()) else 0
    whole = pa.RecordBatch.from_pydict(columns)
    return RecordTable(whole.slice(start), records[start:])


def headers_type(draw: st.DrawFn) -> pa.DataType:
    key = draw(st.sampled_from([pa.string(), pa.large_string()]))
    fields = [pa.field("key", key), pa.field("value", draw(st.sampled_from(BYTES_TYPES[:2])))]
    of_list = draw(st.sampled_from([pa.list_, pa.large_list]))
    return of_list(pa.struct(draw(st.permutations(fields))))


def drawn_bytes(draw: st.DrawFn, cells: list[bytes | None]) -> tuple[pa.Array, list[bytes | None]]:
    """Draw a column and its final cells: text columns have only UTF-8."""
    kind = draw(st.sampled_from([*BYTES_TYPES, pa.null()]))
    if kind == pa.null():
        return pa.nulls(len(cells)), [None] * len(cells)
    if kind in BYTES_TYPES[2:]:
        texts = [None if each is None else each.decode("latin1") for each in cells]
        return pa.array(texts, kind), [None if each is None else each.encode() for each in texts]
    return pa.array(cells, kind), cells
