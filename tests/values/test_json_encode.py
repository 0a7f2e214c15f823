"""Columns to JSON: round trips, and the same text as Spark's `to_json`."""

import datetime
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_kafka_source.records import ColumnTypeError
from spark_kafka_source.values.ddl import from_ddl
from spark_kafka_source.values.json import JsonReader, encode
from tests.values.avro_oracle import plain
from tests.values.json_values import STRUCTS
from tests.values.test_json_oracle import ONE_BY_ONE, decoded

drawn = settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))

_TEXTS = st.text(st.characters(codec="utf-8"), max_size=5)
_MICROS = st.integers(-62_167_219_200_000_000, 253_402_300_799_999_999)


def values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Return values of a column of the type, or null."""
    return st.none() | _values(kind)


def _values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_struct(kind):
        return st.fixed_dictionaries({each.name: values(each.type) for each in kind})
    if pa.types.is_list(kind):
        return st.lists(values(kind.value_type), max_size=3)
    if pa.types.is_map(kind):
        return st.dictionaries(_TEXTS, values(kind.item_type), max_size=3).map(
            lambda found: list(found.items())
        )
    if pa.types.is_decimal(kind):
        most = 10**kind.precision - 1
        return st.integers(-most, most).map(lambda n: Decimal(f"{n}e-{kind.scale}"))
    if pa.types.is_null(kind):
        return st.none()
    if pa.types.is_unsigned_integer(kind):
        return st.integers(0, (1 << kind.bit_width) - 1)
    if pa.types.is_integer(kind):
        most = 1 << (kind.bit_width - 1)
        return st.integers(-most, most - 1)
    if pa.types.is_floating(kind):
        return st.floats(width=kind.bit_width)
    if pa.types.is_timestamp(kind):
        return _MICROS
    if pa.types.is_date(kind):
        return st.integers(-719_528, 2_932_896)
    if pa.types.is_boolean(kind):
        return st.booleans()
    return _TEXTS if pa.types.is_string(kind) else st.binary(max_size=5)


@drawn
@given(st.data())
def test_what_was_written_is_read(data: st.DataObject) -> None:
    kind = data.draw(STRUCTS)
    array = pa.array(data.draw(st.lists(values(kind), max_size=6)), kind)
    start = data.draw(st.integers(0, len(array)))
    array = array.slice(start)
    texts = encode(array).to_pylist()
    for text in texts:
        assert text is None or isinstance(json.loads(text), dict)
    found = decoded(JsonReader(kind), [text or b"null" for text in texts], ONE_BY_ONE)
    assert not found.status.any(), found.reason(int(found.status.argmax()))
    assert plain(found.array) == plain(pa.concat_arrays([array]))


AT = datetime.datetime(2026, 1, 2, 3, 4, 5, 120000)
CASES: list[tuple[str, Any, str]] = [
    ("i INT, n INT", {"i": 1, "n": None}, '{"i":1}'),
    ("i INT", {"i": None}, "{}"),
    ("s STRUCT<x: INT>, e STRUCT<>", {"s": {"x": None}, "e": {}}, '{"s":{},"e":{}}'),
    ("m MAP<STRING, INT>", {"m": [("k", 1), ('"', None)]}, r'{"m":{"k":1,"\"":null}}'),
    ("a ARRAY<INT>, b ARRAY<INT>", {"a": [1, None], "b": []}, '{"a":[1,null],"b":[]}'),
    ("d DOUBLE, f FLOAT", {"d": float("nan"), "f": float("-inf")}, '{"d":"NaN","f":"-Infinity"}'),
    ("d DOUBLE, f FLOAT", {"d": 10.0, "f": 0.1}, '{"d":10.0,"f":0.1}'),
    ("d DOUBLE", {"d": 1e20}, '{"d":1e+20}'),  # S: 1.0E20
    ("d DOUBLE", {"d": -0.0}, '{"d":-0.0}'),
    ("s STRING", {"s": 'a"\\\n/é\u2028\x01'}, '{"s":"a\\"\\\\\\n/é\u2028\\u0001"}'),
    ("b BINARY", {"b": b"abc"}, '{"b":"YWJj"}'),
    ("d DATE", {"d": AT.date()}, '{"d":"2026-01-02"}'),
    ("t TIMESTAMP", {"t": AT}, '{"t":"2026-01-02T03:04:05.120000Z"}'),  # S: .120Z
    ("t TIMESTAMP_NTZ", {"t": AT}, '{"t":"2026-01-02T03:04:05.120000"}'),  # S: .120
    ("t TIMESTAMP", {"t": 1 << 60}, '{"t":"+38504-08-17T21:30:06.846976Z"}'),  # S: .846Z
    ("d DATE", {"d": -800_000}, '{"d":"-0221-09-04"}'),
    ("d DECIMAL(10, 2)", {"d": Decimal("1.5")}, '{"d":1.50}'),
    ("d DECIMAL(20, 10)", {"d": Decimal("1e-10")}, '{"d":1E-10}'),
    ("b BOOLEAN", {"b": True}, '{"b":true}'),
]


@pytest.mark.parametrize(("ddl", "row", "text"), CASES, ids=[each[2][:30] for each in CASES])
def test_a_row(ddl: str, row: Any, text: str) -> None:
    array = pa.array([row, None, row], from_ddl(ddl))
    assert encode(array).to_pylist() == [text.encode(), None, text.encode()]


def test_types_that_are_near() -> None:
    fields = [("t", pa.timestamp("ms", "Europe/Berlin")), ("s", pa.large_string())]
    array = pa.array([{"t": 0, "s": "x"}], pa.struct(fields))
    assert encode(array).to_pylist() == [b'{"t":"1970-01-01T00:00:00.000000Z","s":"x"}']


def test_types_that_json_has_no_place_for() -> None:
    array = pa.array([], pa.struct([("a", pa.list_(pa.duration("s")))]))
    with pytest.raises(ColumnTypeError, match=r"'a\[\]'.* of the type duration\[s\], which JSON"):
        encode(array)
