"""Tables, times, and texts with control characters."""

from typing import Any

from spark_kafka_source.command_line.output import table
from spark_kafka_source.timestamps import iso_time


def test_a_table_is_aligned_and_leaves_out_what_is_empty() -> None:
    rows: list[dict[str, Any]] = [
        {"name": "a", "long_number": 7, "nothing": None, "list": [1, 2], "flag": True},
        {"name": "bcd\n\x1b\u202e", "long_number": None, "nothing": "", "list": [], "flag": False},
    ]
    assert table(rows, ("name", "long_number", "nothing", "list", "flag")) == [
        "NAME             LONG-NUMBER  LIST  FLAG",
        "a                          7  1,2   yes",
        r"bcd\n\x1b\u202e            -  -     no",
    ]
    assert table([], ("name",)) == []


def test_times() -> None:
    assert iso_time(0) == "1970-01-01T00:00:00.000Z"
    assert iso_time(1_777_896_000_123) == "2026-05-04T12:00:00.123Z"
    assert iso_time(-1) == "1969-12-31T23:59:59.999Z"
    assert iso_time(2**63 - 1) == str(2**63 - 1)
