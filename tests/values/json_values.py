"""Column types for JSON, and texts for them: valid, of a wrong type, and broken."""

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from spark_kafka_source.values.ddl import TIMESTAMP, TIMESTAMP_NTZ, array_of
from tests.fuzz.test_fuzz import EDITS
from tools.fuzz.mutations import edited

NAMES = st.sampled_from(["a", "b", "c", "key", "né", "", "a.b", "x/y", "`"])
OTHER_NAMES = NAMES | st.sampled_from(["z", "v", "w", "A"])
LEAVES = st.sampled_from(
    [
        *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
        *(pa.string(), pa.string(), pa.binary(), pa.date32(), TIMESTAMP, TIMESTAMP_NTZ),
        *(pa.decimal128(10, 2), pa.decimal128(38, 20), pa.decimal128(3, 3), pa.decimal128(38, 0)),
    ]
)


def structs(items: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    fields = st.dictionaries(NAMES, items, min_size=1, max_size=4)
    return fields.map(lambda found: pa.struct(list(found.items())))


def _nested(items: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    maps = items.map(lambda item: pa.map_(pa.string(), item))
    return structs(items) | items.map(array_of) | maps


def _without_maps(items: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    return structs(items) | items.map(array_of)


TYPES = st.recursive(LEAVES, _nested, max_leaves=6)
STRUCTS = structs(TYPES)
FAST_STRUCTS = structs(st.recursive(LEAVES, _without_maps, max_leaves=6))

_INTEGERS = st.sampled_from(
    [0, 1, -1, 127, 128, -129, 32768, 1 << 31, -(1 << 31), (1 << 63) - 1, 1 << 63, -(1 << 63)]
)  # fmt: skip
_NUMBERS = st.sampled_from(
    [
        *("0", "-0", "-0.0", "1.0", "1e3", "1E-2", "0.1", "12.345", "12.335", "-12.345", "1e400"),
        *("1e-400", "4.9e-324", "2.2250738585072011e-308", "16777217", "1e39"),
        *("0.30000000000000004", "123456789012345678901234567890", "1.7976931348623157e308"),
        *("99999999.995", "99999999.994999999999", "0.9995", "0e999", "1e-99999999999999999999"),
        *("0e99999999999999999999", "12345678901234567890123456789012345678", "NaN", "-NaN", "Inf"),
        *("-Inf", "Infinity", "-Infinity", "1.5000000000000000000000001", "7e-30", "1e37", "1e10"),
        *("1.000000059604644775390626", "10000000.125", "0.005", "-0.015", "2.675"),
        *("1.0049999999999999999", "3.4028235677973366e38"),
        *("70368744177664.005", "1e99999999999999999999"),
    ]
)  # fmt: skip
_TIMES = st.sampled_from(
    [
        *("2026-01-02", "2026-01-02T03:04:05Z", "2026-01-02 03:04:05.123456+02:00", "0000-01-01"),
        *("1969-12-31T23:59:59.9999999Z", "2026-01-02T03:04", "2026-01-02T03", "9999-12-31T23Z"),
        *("2026-01-02T03:04:05.123456789-0330", "2026-02-30", "2026-01-02T24:00:00Z", "20260102"),
        *("2026-01-02T03:04:05+24:00", "2026-01-02T03:04:05.Z", "2026-01-02Z", "0001-01-01T00:00Z"),
        *("2262-04-12T00:00:00.0000001Z", "2026-01-02T03:04:05+02", "2026-01-02T03:04:05 Z"),
    ]
)  # fmt: skip
_DECIMALS = st.sampled_from(["1.5", "-.5", "1.", "+7", "007", "1e2", " 1", "1_0", "inf", "0x1", ""])
_BASE64 = st.sampled_from(["YWJj", "YQ==", "YQ", "Y Q==", "", "-_-_", "YQ===", "é"])
_TEXTS = st.text(max_size=5) | st.sampled_from(
    ["NaN", "Infinity", "+INF", "true", "null", "Inf", '"', "\\", "a\nb", "\u2028", "😀", "{", "[1"]
)


def _leaf(kind: pa.DataType) -> st.SearchStrategy[str]:
    """Return texts. Most fit the type."""
    integers, texts = (st.integers(-1000, 1000) | _INTEGERS).map(str), _TEXTS
    if pa.types.is_boolean(kind):
        return st.sampled_from(["true", "false"])
    if pa.types.is_integer(kind):
        return integers
    if pa.types.is_floating(kind):
        return st.floats(allow_nan=False, allow_infinity=False).map(repr) | integers | _NUMBERS
    if pa.types.is_decimal(kind):
        digits = st.integers(-(10**6), 10**6).map(lambda n: f"{n / 100:.2f}")
        return digits | _NUMBERS | integers | _DECIMALS.map(quoted) | digits.map(quoted)
    if pa.types.is_string(kind):
        return texts.flatmap(_written)
    if pa.types.is_binary(kind):
        return (_BASE64 | st.just("YWJjZA==")).map(quoted)
    times = st.datetimes().map(lambda time: time.isoformat())
    zoned = times.map(lambda time: f"{time}Z") if kind == TIMESTAMP else times
    seconds = integers if kind == TIMESTAMP else zoned.map(quoted)
    return st.one_of((zoned | _TIMES).map(quoted), seconds)


def quoted(text: str) -> str:
    return json.dumps(text)


def _written(text: str) -> st.SearchStrategy[str]:
    escaped = "".join(f"\\u{ord(each):04x}" for each in text if ord(each) < 65536)
    ways = [json.dumps(text), json.dumps(text, ensure_ascii=False), f'"{escaped}"']
    return st.sampled_from(ways)


SPACE = st.sampled_from(["", "", "", " ", "\n", "\t\r\n  "])
ANYTHING = st.sampled_from(
    [
        *("null", "true", "1", "1.50", '"x"', "[]", "{}", '[1, "x"]', '{"a" : [null]}', "-NaN"),
        *('"\\ud800"', '"\\udc00\\ud800"', '"\\u0000"', "[[1],2]", "1e400", '{"a":1,"a":2}'),
    ]
)  # fmt: skip


@st.composite
def texts(draw: Callable[..., Any], kind: pa.DataType) -> str:
    """Draw a text for a type. Most of its parts fit."""
    odds = draw(st.integers(0, 25))
    if odds == 25:
        return str(draw(ANYTHING))
    if odds == 24:
        return "null"
    space = draw(SPACE)
    if pa.types.is_list(kind):
        items = draw(st.lists(texts(kind.value_type), max_size=3))
        return f"[{space}{f'{space},'.join(items)}{space}]"
    if pa.types.is_map(kind):
        pairs = [(draw(NAMES), kind.item_type) for _ in range(draw(st.integers(0, 3)))]
    elif pa.types.is_struct(kind):
        pairs = [(each.name, each.type) for each in kind if draw(st.integers(0, 4))]
        pairs = draw(st.permutations(pairs))
        if odds > 18:
            pairs.append((draw(OTHER_NAMES), draw(LEAVES)))
    else:
        return str(draw(_leaf(kind)))
    written = [f"{draw(_written(name))}{space}:{space}{draw(texts(each))}" for name, each in pairs]
    return f"{{{space}{f'{space},{space}'.join(written)}{space}}}"


@st.composite
def rows(draw: Callable[..., Any], kind: pa.DataType, max_size: int = 8) -> list[bytes]:
    """Draw texts. Some are broken: changed, cut, or spliced with another text."""
    found = [
        f"{draw(SPACE)}{draw(texts(kind))}{draw(SPACE)}".encode("utf-8", "replace")
        for _ in range(draw(st.integers(0, max_size)))
    ]
    for place in range(len(found)):
        match draw(st.integers(0, 12)):
            case 12:
                found[place] = edited(found[place], draw(EDITS))
            case 11:
                other = draw(st.sampled_from(found))
                found[place] = found[place][: draw(st.integers(0, 60))] + other
            case 10:
                found[place] = draw(st.sampled_from(SPLICES)).replace(b"X", found[place])
            case _:
                pass
    return found


SPLICES = (
    b"X null X", b"XX", b'X,"w":X', b"X,X", b"X\0", b"X}X", b"{X", b"[X]", b"\xef\xbb\xbfX", b"X//",
    b"X\nX", b"X 1 X", b'{"a":X', b',"b":X}', b'X"', b"{},{}", b"{}{}\0", b"{}null{}", b"null", b"",
    b'{"q":"X', b'{","q":1}', b"{'a':1}", b'{"z":\xff}', b'{"z":"\xed\xa0\x80"}', b'{"z":+1}',
    b'{"z":007}', b'{"z":Inf}', b'{"z":-NaN}', b'{"z":Infinit}', b'{"z":"\t"}', b'{"z":1e999}',
    b'{"z":"\\x"}', b'{"z":"\\ud83d"}', b'{"z":[1,]}', b'{"z":tru}', b'{"z":nan}', b'{"z":1.}',
)  # fmt: skip
