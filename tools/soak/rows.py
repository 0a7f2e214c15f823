"""Rows of the topics. A row's number determines its contents."""

import io
import json

import fastavro

ORDERS, COPIES = "orders", "copies"
KEYS = 32
PARTITIONS = 6
RECORD = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "number", "type": "long"}, {"name": "amount", "type": "double"}],
}
SCHEMA = json.dumps(RECORD)
FACTOR = 3
"""The query multiplies amounts by this factor."""

_PARSED = fastavro.parse_schema(RECORD)
_ID_BYTES = 5


def key_of(number: int) -> str:
    """Return the key of a row. Rows of one key keep their order."""
    return f"k{number % KEYS}"


def amount_of(number: int) -> float:
    """Return the amount as the producer writes it."""
    return number / 2


def number_in(key: bytes | None, value: bytes | None, factor: int = 1) -> int | None:
    """Return a record's number, read by fastavro. Return None if this row was never written."""
    try:
        found = fastavro.schemaless_reader(io.BytesIO((value or b"")[_ID_BYTES:]), _PARSED, None)
    except (EOFError, ValueError, IndexError):
        return None
    if not isinstance(found, dict):
        return None
    number: int = found["number"]
    expected = (key_of(number).encode(), amount_of(number) * factor)
    return number if (key, found["amount"]) == expected else None
