"""Lines from a stream, as they arrive, and as a producer's columns."""

import base64
import io
import json
import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.command_line import input_lines as reading
from spark_kafka_source.command_line.input_lines import LineError, Lines, read_lines
from spark_kafka_source.command_line.line_columns import Parsed, from_json, plain

LONGEST = 1 << 20


def of_text(text: bytes, longest: int = LONGEST) -> list[Lines]:
    return list(read_lines(io.BytesIO(text), longest))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (b"", []),
        (b"a", [b"a"]),
        (b"a\n", [b"a"]),
        (b"\n", [b""]),
        (b"a\n\nb", [b"a", b"", b"b"]),
        (b"a\r\n\xff\x00\n", [b"a\r", b"\xff\x00"]),
    ],
)
def test_lines_are_what_is_between_their_ends(text: bytes, lines: list[bytes]) -> None:
    assert [line for piece in of_text(text) for line in piece.lines] == lines


@given(st.lists(st.binary(max_size=20)), st.integers(1, 7))
def test_it_does_not_matter_where_they_are_cut(written: list[bytes], cut: int) -> None:
    expected = b"".join(written).split(b"\n")
    expected = expected if expected[-1] else expected[:-1]

    class Slow(io.BytesIO):
        def read1(self, _: int | None = -1, /) -> bytes:
            return self.read(cut)

    found = list(read_lines(Slow(b"".join(written)), LONGEST))
    assert [line for piece in found for line in piece.lines] == expected
    firsts = [piece.first for piece in found]
    assert firsts == [1 + sum(len(each.lines) for each in found[:n]) for n in range(len(found))]


def test_what_a_pipe_has_is_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each read takes a few bytes. Available lines do not wait for more."""
    monkeypatch.setattr(reading, "AT_ONCE_BYTES", 10)
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb") as stream, os.fdopen(write_end, "wb", buffering=0) as pipe:
        pipe.write(b"a\nb\nc\nd\ne\nf\ng")
        found = read_lines(stream, LONGEST)
        assert next(found) == Lines(1, [b"a", b"b", b"c", b"d", b"e"])
        assert next(found) == Lines(6, [b"f"])
        pipe.close()
        assert list(found) == [Lines(7, [b"g"])]


def test_a_line_without_an_end_is_not_read_for_ever() -> None:
    class Endless(io.BytesIO):
        def read1(self, _: int | None = -1, /) -> bytes:
            return b"x" * 10

    found = read_lines(Endless(), 1000)
    with pytest.raises(LineError, match=r"^Line 1: is longer than 1000 bytes$"):
        next(found)


# -- plain -----------------------------------------------------------------------------------------


def rows(parsed: Parsed) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = parsed.columns.to_pylist()
    assert len(found) == len(parsed.lines)
    return found


def test_a_line_is_a_value() -> None:
    parsed = plain(None)(Lines(5, [b"a:b", b"", b"\xff"]))
    assert rows(parsed) == [{"value": b"a:b"}, {"value": b""}, {"value": b"\xff"}]
    assert list(parsed.lines) == [5, 6, 7]


@pytest.mark.parametrize(
    ("separator", "line", "key", "value"),
    [
        (":", b"k:v", b"k", b"v"),
        (":", b"k:v:w", b"k", b"v:w"),
        (":", b":v", b"", b"v"),
        (":", b"k:", b"k", b""),
        ("->", b"\xff->\xfe", b"\xff", b"\xfe"),
        ("ä", "kä1".encode(), b"k", b"1"),
        (".", b"a.b", b"a", b"b"),
    ],
)
def test_a_key_is_before_the_first_separator(
    separator: str, line: bytes, key: bytes, value: bytes
) -> None:
    assert rows(plain(separator)(Lines(1, [line]))) == [{"key": key, "value": value}]


@pytest.mark.parametrize("count", [0, 2])
def test_a_line_without_a_separator_ends_what_is_sent(count: int) -> None:
    parsed = plain(":")(Lines(7, [b"k:v"] * count + [b"nothing", b"k:v"]))
    assert rows(parsed) == [{"key": b"k", "value": b"v"}] * count
    assert str(parsed.error) == f"Line {7 + count}: has no ':' between a key and a value"


# -- JSON ------------------------------------------------------------------------------------------


def of_json(*documents: object) -> Parsed:
    return from_json(Lines(1, [json.dumps(each).encode() for each in documents]))


def test_all_that_a_record_has() -> None:
    parsed = of_json(
        {
            "topic": "elsewhere",
            "partition": 3,
            "offset": 17,
            "timestamp": "2026-05-04T12:05:00.001Z",
            "key": "k",
            "value": "ä",
            "headers": [{"key": "a", "value": "1"}, {"key": "a", "value": None}],
        },
        {"key": None, "value": None, "timestamp": 1_777_896_300_001, "partition": None},
        {"value": ""},
    )
    assert parsed.error is None
    assert rows(parsed) == [
        {
            "key": b"k",
            "value": "ä".encode(),
            "headers": [{"key": "a", "value": b"1"}, {"key": "a", "value": None}],
            "timestamp": 1_777_896_300_001,
            "partition": 3,
        },
        {
            "key": None,
            "value": None,
            "headers": None,
            "timestamp": 1_777_896_300_001,
            "partition": None,
        },
        {"key": None, "value": b"", "headers": None, "timestamp": None, "partition": None},
    ]


def test_what_no_line_has_is_no_column() -> None:
    assert of_json({"value": None}).columns.schema.names == ["value"]
    assert of_json({"key": "k", "value": None}).columns.schema.names == ["key", "value"]


def test_other_json_is_its_text() -> None:
    parsed = from_json(
        Lines(1, [b'{"key": 7, "value": {"a": [1.10, true, "\\u00e4"]}}', b'{"value": [ ]}'])
    )
    assert rows(parsed) == [
        {"key": b"7", "value": '{"a":[1.10,true,"ä"]}'.encode()},
        {"key": None, "value": b"[]"},
    ]


def test_a_bad_record_with_its_bytes_is_a_record() -> None:
    line = {"value": None, "value_error": {"reason": "x"}, "value_base64": "/w=="}
    assert rows(of_json(line, {"value": "v", "value_error": None})) == [
        {"value": b"\xff"},
        {"value": b"v"},
    ]


@given(st.binary())
def test_bytes_are_in_base64(data: bytes) -> None:
    """The base64 field wins over the text field, which is for humans."""
    encoded = base64.b64encode(data).decode()
    (row,) = rows(
        of_json(
            {
                "key": "shown",
                "key_base64": encoded,
                "value_base64": encoded,
                "headers": [{"key": "h", "value": "shown", "value_base64": encoded}],
            }
        )
    )
    assert row == {"key": data, "value": data, "headers": [{"key": "h", "value": data}]}


def test_blank_lines_are_passed_over() -> None:
    parsed = from_json(Lines(3, [b"", b'{"value": "a"}', b" \r", b'{"value": "b"}\r']))
    assert rows(parsed) == [{"value": b"a"}, {"value": b"b"}]
    assert list(parsed.lines) == [4, 6]
    assert rows(from_json(Lines(1, [b""]))) == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"value", "is not JSON: "),
        (b"\xff", "is not JSON: "),
        (b"[" * 100_000, "is not JSON: "),
        (b"[1]", "is not a JSON object"),
        (b'{"valeu": "a"}', "has the unknown field 'valeu'; known: key, value"),
        (b'{"key": "a"}', "has no 'value'; it may be null"),
        (b'{"value": "a", "value": "b"}', "has the field 'value' twice"),
        (b'{"value": NaN}', "is not JSON: there is no number NaN"),
        (b'{"value": ["\\ud800"]}', "has a 'value' that cannot be encoded: half a character"),
        (
            b'{"value": null, "value_error": {"reason": "not UTF-8", "bytes": "/w=="}}',
            "is a bad record: its value could not be decoded (not UTF-8). Give its bytes as "
            "'value_base64', or read the topic without 'value.format'",
        ),
        (b'{"value": "", "key_error": "?"}', "its key could not be decoded (?)"),
        (b'{"value": "\\ud800"}', "half a character"),
        (b'{"value_base64": "?"}', "has a 'value_base64' that is not base64"),
        (b'{"value_base64": 1}', "has a 'value_base64' that is not base64"),
        (b'{"value": "", "headers": {"a": "b"}}', "not a list of objects"),
        (b'{"value": "", "headers": ["a"]}', "not a list of objects"),
        (b'{"value": "", "headers": [{"value": "b"}]}', "a header whose 'key' is not a text"),
        (b'{"value": "", "headers": [{"key": "\\ud800"}]}', "half a character"),
        (b'{"value": "", "timestamp": 1.5}', "neither a text nor a whole number"),
        (b'{"value": "", "timestamp": true}', "neither a text nor a whole number"),
        (
            b'{"value": "", "timestamp": "noon"}',
            "a 'timestamp' that cannot be used: found 'noon'. Give a",
        ),
        (b'{"value": "", "timestamp": 1700000000}', "In seconds it is"),
        (b'{"value": "", "timestamp": -1}', "cannot be used"),
        (b'{"value": "", "partition": -1}', "not a whole number from 0"),
        (b'{"value": "", "partition": 4294967296}', "not a whole number from 0"),
        (b'{"value": "", "partition": "0"}', "not a whole number from 0"),
    ],
)
def test_what_is_no_record_is_an_error_of_its_line(line: bytes, reason: str) -> None:
    parsed = from_json(Lines(9, [b'{"value": "a"}', line, b'{"value": "b"}']))
    assert rows(parsed) == [{"value": b"a"}]
    assert str(parsed.error).startswith("Line 10: ")
    assert reason in str(parsed.error)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["key", "value", "headers", "timestamp", "partition", "value_base64", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(st.lists(ANYTHING.map(json.dumps).map(str.encode) | st.binary(max_size=20), max_size=4))
def test_whatever_comes_is_records_or_an_error_of_its_line(written: list[bytes]) -> None:
    parse: Callable[[Lines], Parsed]
    for parse in (from_json, plain(":"), plain(None)):
        parsed = parse(Lines(1, written))
        assert parsed.columns.num_rows == len(parsed.lines)
        assert parsed.error is None or 1 <= parsed.error.first <= len(written)
