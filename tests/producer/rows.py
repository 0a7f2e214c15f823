"""Rows of all kinds for a producer: single rows or columns."""

import random
from typing import Any

import pyarrow as pa

ROWS = 3_000
LARGE_BYTES = 20_000
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def rows() -> list[dict[str, Any]]:
    """Return rows with and without a key, a value, headers or a timestamp; empty and large ones.

    Each timestamp belongs to one row. So timestamps show the order of the rows.
    """
    chance = random.Random(13)
    base_ms = 1_700_000_000_000
    pairs = [[], [("a", b"1")], [("é", None), ("é", b"")], [("h", b"x" * 300)]]

    def value(number: int) -> bytes | None:
        kinds = [None, b"", b"%d" % number, b"%d " % number * 30, chance.randbytes(50)]
        return chance.randbytes(LARGE_BYTES) if number % 97 == 0 else chance.choice(kinds)

    return [
        {
            "key": chance.choice([None, b"", b"%d" % number, b"k" * (number % 70)]),
            "value": value(number),
            "headers": chance.choice(pairs),
            "timestamp_ms": None if number % 5 == 0 else base_ms + number,
        }
        for number in range(ROWS)
    ]


def as_columns(given: list[dict[str, Any]]) -> pa.Table:
    def column(name: str, kind: pa.DataType) -> pa.Array:
        return pa.array([row[name] for row in given], kind)

    stamps = pa.array([row["timestamp_ms"] for row in given], pa.timestamp("ms", "UTC"))
    columns = {
        "key": column("key", pa.binary()),
        "value": column("value", pa.large_binary()),
        "headers": column("headers", HEADERS),
        "timestamp": stamps,
    }
    # Several chunks, as Spark and others create them.
    halves = [ROWS // 3, ROWS]
    table = pa.table(columns)
    return pa.concat_tables([table.slice(0, halves[0]), table.slice(halves[0])])
