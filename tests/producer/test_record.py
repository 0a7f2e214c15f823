"""The parts of one record: wrong types are refused before the record joins a batch."""

import array
from datetime import datetime
from typing import Any

import numpy as np
import pytest

from spark_kafka_source.options.kinds import INT64_MAX
from spark_kafka_source.producer import UnsendableRecordError
from spark_kafka_source.producer.record import (
    checked_headers,
    checked_partition,
    checked_time,
    given_headers,
    record_size,
)


def test_headers_become_pairs_of_bytes() -> None:
    given: Any = (each for each in [("a", b"1"), ["b", bytearray(b"2")], ("ü", None)])
    headers = given_headers("t", given)
    headers += [("", memoryview(b"4")), ("e", array.array("h", [1])), ("f", b"")]  # type: ignore[list-item]
    found = checked_headers("t", headers)
    assert found == [
        (b"a", b"1"),
        (b"b", b"2"),
        ("ü".encode(), None),
        (b"", b"4"),
        (b"e", array.array("h", [1]).tobytes()),
        (b"f", b""),
    ]
    assert all(type(data) in {bytes, type(None)} for _, data in found)


def test_without_headers_there_are_none() -> None:
    assert checked_headers("t", given_headers("t", None)) == []
    assert checked_headers("t", given_headers("t", [])) == []


@pytest.mark.parametrize(
    "header",
    ["ab", ("a",), ("a", b"", b""), ("a", "text"), ("a", 0), ("a", ""), (b"a", b""), (1, b"")],
    ids=repr,
)
def test_what_is_no_header_is_named(header: Any) -> None:
    said = (
        r"for topic 't': its headers cannot be sent: .* is no pair of a string, and bytes or None"
    )
    with pytest.raises(UnsendableRecordError, match=said):
        checked_headers("t", [("fine", b""), header])


def test_a_name_that_utf_8_has_not_is_no_header() -> None:
    with pytest.raises(UnsendableRecordError):
        checked_headers("t", [("\ud800", b"")])


@pytest.mark.parametrize("headers", [1, 1.5, object()])
def test_what_is_no_list_is_named(headers: Any) -> None:
    with pytest.raises(UnsendableRecordError, match="its headers cannot be sent: it is a"):
        given_headers("t", headers)


def test_sizes_are_those_that_kafkas_producer_reckons() -> None:
    assert record_size(None, None, []) == 21
    assert record_size(b"k" * 10, b"", []) == 31
    assert (
        record_size(None, b"v" * 5, [("ü".encode(), None), (b"ab", b"xyz")])
        == 21 + 5 + 10 + 2 + 10 + 2 + 3
    )


def test_times_are_whole_numbers_from_1970_on() -> None:
    assert checked_time("t", 0) == 0
    assert checked_time("t", INT64_MAX) == INT64_MAX
    found = checked_time("t", np.int64(5))
    assert (found, type(found)) == (5, int)
    assert checked_time("t", None) > 1_600_000_000_000


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (-1, "it is -1, and Kafka's records have no times before 1970"),
        (INT64_MAX + 1, f"it is {INT64_MAX + 1}, and Kafka's records"),
        (1.5, "it is an object of type float, not a whole number"),
        ("5", "it is an object of type str, not a whole number"),
        (datetime(2026, 1, 1), "it is an object of type datetime, not a whole number"),
    ],
)
def test_times_that_no_record_can_have_are_named(given: Any, said: str) -> None:
    with pytest.raises(UnsendableRecordError) as caught:
        checked_time("t", given)
    assert (caught.value.topic, caught.value.field) == ("t", "timestamp")
    assert said in str(caught.value)


def test_partitions_are_whole_numbers() -> None:
    found = checked_partition("t", np.int32(3))
    assert (found, type(found)) == (3, int)
    for wrong in (0.5, 1.0, "1", b"1"):
        with pytest.raises(UnsendableRecordError, match="its partition cannot be sent: it is a"):
            checked_partition("t", wrong)
