"""JSON texts, read and written beside Python's own `json`."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.command_line.json_text import NotJsonError, read, written

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(JSON)
def test_it_is_json(value: Any) -> None:
    assert read(json.dumps(value).encode()) == value
    shortest = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert written(value) == shortest.encode()


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_are_their_shortest_digits(value: float) -> None:
    assert written(value) == json.dumps(value).encode()
    found = read(json.dumps([value]).encode())[0]
    assert isinstance(found, Decimal)
    assert str(float(found)) == str(value)


@pytest.mark.parametrize(
    "number", ["0.10", "-0.0", "12345678901234567890", "0.12345678901234567890", "1E+400", "1E-7"]
)
def test_digits_are_kept(number: str) -> None:
    assert written(read(f'{{"a":[{number}]}}'.encode())) == f'{{"a":[{number}]}}'.encode()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is not JSON: Expecting value"),
        (b"{", "is not JSON: "),
        (b"1 2", "is not JSON: Extra data"),
        (b"\xff", "is not JSON: 'utf-8'"),
        (b'{"a": NaN}', "is not JSON: there is no number NaN; give it as a text"),
        (b"-Infinity", "is not JSON: there is no number -Infinity"),
        (b'{"a": 1, "b": 2, "a": 1}', "has the field 'a' twice in one object"),
        (b"[" * 100_000, "is not JSON: "),
        (b"1" * 5000, "is not JSON: "),
        (b"1e99999999999999999999", "is not JSON: a number has too large an exponent"),
    ],
)
def test_what_is_not_json(data: bytes, reason: str) -> None:
    with pytest.raises(NotJsonError, match=f"^{reason}"):
        read(data)


def test_a_byte_order_mark_is_passed_over() -> None:
    assert read(b"\xef\xbb\xbf[1]") == [1]


def nested(depth: int) -> Any:
    found: Any = 1
    for _ in range(depth):
        found = [found]
    return found


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("\ud800", "cannot be encoded: half a character"),
        ({"\ud800": 1}, "cannot be encoded: half a character"),
        (float("nan"), "cannot be written as JSON: "),
        ([float("inf")], "cannot be written as JSON: "),
        (nested(100_000), "cannot be written as JSON: "),
    ],
)
def test_what_has_no_text(value: Any, reason: str) -> None:
    with pytest.raises(NotJsonError, match=f"^{reason}"):
        written(value)
