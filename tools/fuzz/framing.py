"""Malformed rows and headers. Each result equals that of a reader in plain Python.

The first byte of an input selects the form of indexes and the use of headers. A byte before each
row is its length.
"""

from collections.abc import Iterator

import pyarrow as pa

from spark_kafka_source.records.columns import HEADERS_TYPE
from spark_kafka_source.registry import ColumnRowHeaders, ConfluentFraming, Indexes
from tests.registry.framing_oracle import agrees

_HEADER = "__value_schema_id"
_NULL, _MOST = 255, 40


def framing(data: bytes) -> None:
    """Every row agrees with the oracle, independent of the other rows."""
    how = data[0] if data else 0
    rows = list(_rows(data[1:]))
    indexes = [*Indexes][how % 3]
    if how < 128:
        agrees(ConfluentFraming(indexes=indexes), rows, [], None)
        return
    held, values = rows[0::2], rows[1::2]
    held = held[: len(values)]
    column = [None if each is None else [{"key": _HEADER, "value": each}] for each in held]
    headers = ColumnRowHeaders(pa.array(column, HEADERS_TYPE))
    agrees(ConfluentFraming(indexes=indexes), values, held, headers)


def _rows(data: bytes) -> Iterator[bytes | None]:
    at = 0
    while at < len(data):
        size = data[at] % _MOST
        yield None if data[at] == _NULL else data[at + 1 : at + 1 + size]
        at += 1 if data[at] == _NULL else 1 + size


def framing_seeds() -> list[bytes]:
    """Return rows of every kind, alone and together."""
    rows = [
        b"\0\0\0\0\7\0value",
        b"\0\0\0\0\7\2\2value",
        b"\0\0\0\0\7\4\2\0value",
        b"\0\0\0\1\0\2\xac\2",
        b"\1" + bytes(range(16)) + b"\0v",
        b"\1" + bytes(range(16)) + b"\4\2\4v",
        b"{}",
        b"",
    ]
    laid = [bytes([len(row)]) + row for row in rows]
    whole = b"".join(laid) + b"\xff"
    seeds = [bytes([how]) + whole for how in (0, 1, 2, 129, 130, 128)]
    return seeds + [b"\1" + row * 3 for row in laid]
