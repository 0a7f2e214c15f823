"""One Python value to bytes: the same result as a column, or an error with its path."""

import datetime
import json
import pickle
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.records import UnencodableRowError
from spark_kafka_source.values import SchemaText, SchemaType
from spark_kafka_source.values.avro import AvroWriter
from spark_kafka_source.values.json import JsonWriter
from tests.values.avro_oracle import decoded, written
from tests.values.avro_schemas import logical, schemas, values
from tests.values.one_row import array_of_one, encode_one
from tests.values.test_avro_cases import array, fixed, record
from tests.values.test_avro_oracle import drawn


def writer(schema: Any) -> AvroWriter:
    return AvroWriter(SchemaText(SchemaType.AVRO, json.dumps(schema)))


@drawn
@given(st.data())
def test_avro_of_one_is_avro_of_a_column(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    by = writer(schema)
    rows = decoded(schema, schema, written(schema, data.draw(st.lists(values(schema), max_size=6))))
    for place, row in enumerate(rows.array):
        try:
            value = row.as_py()
        except (OverflowError, ValueError):
            continue  # Python has no such time.
        if value is not None:
            assert [by.one(value)] == by.encode(rows.array.slice(place, 1), b"").to_pylist()


ONE = record(
    ("i", "int"), ("l", "long"), ("b", "boolean"), ("f", "float"), ("d", "double"),
    ("s", "string"), ("o", "bytes"), ("a", array("int")), ("m", {"type": "map", "values": "int"}),
    ("e", {"type": "enum", "name": "E", "symbols": ["A", "B"]}), ("x", fixed(2)),
    ("n", logical("bytes", "decimal", precision=4, scale=2)),
    ("t", logical("long", "timestamp-micros")), ("y", logical("int", "date")),
    ("u", ["null", "int", "string"]), ("v", ["string", "int"]), ("w", ["null", "int"]),
    ("z", "null"), ("c", logical("long", "time-micros")),
    ("k", logical("long", "timestamp-millis")),
)  # fmt: skip
MOMENT = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
GOOD: dict[str, Any] = {
    "i": 1, "l": 2, "b": True, "f": 1.5, "d": 2, "s": "é", "o": b"o", "a": [1], "m": {"k": 1},
    "e": "B", "x": b"xx", "n": Decimal("1.5"), "t": MOMENT,
    "y": datetime.date(2026, 1, 1), "u": {"member1": "u"}, "v": {"member1": 5}, "w": None,
    "z": None, "c": datetime.time(1, 2, 3, 4), "k": MOMENT.replace(year=1960, microsecond=1),
}  # fmt: skip
MISFITS = [
    ("i", 1 << 31, "int32"), ("i", "1", "int32"), ("i", 1.0, "int32"), ("i", True, "int32"),
    ("l", 1 << 63, "int64"), ("b", 1, "bool"), ("f", "1", "float"), ("d", True, "double"),
    ("s", b"s", "string"), ("s", "\ud800", "string"), ("o", "o", "binary"),
    ("a", {"x": 1}, "is no list"), ("a", "ab", "is no list"), ("a", 5, "is no list"),
    ("m", 5, "is no dict"), ("m", [1], "nor a list of pairs"), ("m", [(1, 2, 3)], "nor a list"),
    ("e", "C", "none of the symbols A, B"), ("e", 1, "string"), ("x", b"x", "not of the 2 bytes"),
    ("n", Decimal("1.234"), "decimal"), ("n", Decimal(100), "decimal"), ("n", 1.5, "decimal"),
    ("t", "2026", "timestamp"), ("y", "2026", "date"), ("u", 5, "is no dict"),
    ("u", {"member0": 1, "member1": "a"}, "several members"), ("v", None, "null, where"),
    ("u", {"member7": 1}, "no such field"), ("i", None, "null, where"), ("z", 1, "null"),
]  # fmt: skip


def test_avro_of_what_fits() -> None:
    by = writer(ONE)
    assert by.one(GOOD) == encode_one(by, GOOD)
    assert by.one({**GOOD, "m": [("k", 1)], "a": range(1, 2)}) == by.one(GOOD)
    assert by.one({name: GOOD[name] for name in GOOD if name not in "wz"}) == by.one(GOOD)


@pytest.mark.parametrize(("name", "value", "reason"), MISFITS, ids=repr)
def test_what_does_not_fit_avro_fits_neither_as_a_column(
    name: str, value: Any, reason: str
) -> None:
    by = writer(ONE)
    with pytest.raises(UnencodableRowError) as failed:
        by.one({**GOOD, name: value})
    assert failed.value.rows == (0,)
    assert name in failed.value.reason
    assert reason in failed.value.reason
    with pytest.raises(UnencodableRowError):
        encode_one(by, {**GOOD, name: value})


def test_what_can_be_read_once_or_has_no_order_is_no_list() -> None:
    """An iterator is empty after its first use, and a set has no order."""
    by = writer(ONE)
    for name, value, reason in (
        ("a", iter([1]), "is no list"), ("a", {1, 2}, "is no list"), ("a", {1: 2}, "is no list"),
        ("m", iter([("k", 1)]), "is no dict"), ("m", zip("k", [1], strict=True), "is no dict"),
    ):  # fmt: skip
        with pytest.raises(UnencodableRowError, match=f"{name}: .* {reason}"):
            by.one({**GOOD, name: value})
    assert by.one({**GOOD, "a": np.array([1], np.int16)}) == by.one(GOOD)


@pytest.mark.parametrize(
    ("value", "kind", "reason"),
    [
        ({"a": [{"b": 1.5}]}, "struct<a: list<struct<b: int64>>>", "a[].b: 1.5 is no int64"),
        ({"a": {"k": "x"}}, "struct<a: map<string, int64>>", "a{}: 'x' is no int64"),
        ({"a": {5: 1}}, "struct<a: map<string, int64>>", "a{}: 5 is no string"),
        ({"b": 1}, "struct<a: int64>", "b: the schema has no such field. The schema has: a"),
        (5, "struct<a: int64>", "5 is no dict"),
        ({"a": "x" * 200}, "struct<a: int64>", "x..."),
    ],
)
def test_paths(value: Any, kind: str, reason: str) -> None:
    kinds = {
        "struct<a: list<struct<b: int64>>>": {"a": pa.list_(pa.struct([("b", pa.int64())]))},
        "struct<a: map<string, int64>>": {"a": pa.map_(pa.string(), pa.int64())},
        "struct<a: int64>": {"a": pa.int64()},
    }
    with pytest.raises(UnencodableRowError) as failed:
        array_of_one(value, pa.struct(list(kinds[kind].items())))
    assert reason in failed.value.reason


FIELDS = pa.struct(
    [
        ("a", pa.int64()), ("t", pa.timestamp("us", "UTC")), ("d", pa.date32()),
        ("f", pa.float64()),
        ("n", pa.decimal128(10, 2)), ("s", pa.string()), ("b", pa.bool_()), ("o", pa.binary()),
        ("l", pa.list_(pa.int8())), ("m", pa.map_(pa.string(), pa.float32())),
        ("x", pa.struct([("y", pa.struct([("z", pa.string())]))])),
    ]
)  # fmt: skip


def test_writers_can_be_pickled() -> None:
    for by, value in ((writer(ONE), GOOD), (JsonWriter(None, FIELDS), {"a": 1})):
        assert pickle.loads(pickle.dumps(by)).one(value) == by.one(value)


@drawn
@given(st.data())
def test_json_of_one_is_json_of_a_column(data: st.DataObject) -> None:
    floats = st.floats(width=32)
    drawn_fields = {
        "a": st.integers(-(2**63), 2**63 - 1), "t": st.datetimes(timezones=st.just(datetime.UTC)),
        "d": st.dates(), "f": st.floats(), "n": st.decimals(-999, 999, places=2),
        "s": st.text(), "b": st.booleans(), "o": st.binary(),
        "l": st.lists(st.none() | st.integers(-128, 127)),
        "m": st.dictionaries(st.text(), st.none() | floats),
        "x": st.fixed_dictionaries({"y": st.none() | st.fixed_dictionaries({"z": st.text()})}),
    }  # fmt: skip
    optional = {name: st.none() | each for name, each in drawn_fields.items()}
    value = data.draw(st.fixed_dictionaries({}, optional=optional))
    by = JsonWriter(None, FIELDS)
    assert by.one(value) == encode_one(by, value)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"a": 1.5}, "a: 1.5 is no int64"), ({"a": 2**63}, "is no int64"),
        ({"a": True}, "a: True is no int64"), ({"l": [1, 128]}, "l[]: 128 is no int8"),
        ({"l": [1, "x"]}, "l[]: 'x' is no int8"), ({"l": "x"}, "l: 'x' is no list"),
        ({"m": {5: 1.0}}, "m{}: 5 is no string"), ({"m": {"k": "x"}}, "m{}: 'x' is no float"),
        ({"m": [(None, 1.0)]}, "m"), ({"s": "\ud800"}, "s: '\\ud800' is no string"),
        ({"s": 5}, "s: 5 is no string"), ({"b": 1}, "b: 1 is no bool"),
        ({"x": {"y": {"z": 5}}}, "x.y.z: 5 is no string"), ({"x": {"q": 1}}, "x.q: the schema"),
        ({"t": "2026"}, "t: '2026' is no timestamp"), ({"f": "1"}, "f: '1' is no double"),
        (5, "5 is no dict"),
    ],
    ids=repr,
)  # fmt: skip
def test_what_does_not_fit_json(value: Any, reason: str) -> None:
    with pytest.raises(UnencodableRowError) as failed:
        JsonWriter(None, FIELDS).one(value)
    assert reason in failed.value.reason
    with pytest.raises(UnencodableRowError):
        encode_one(JsonWriter(None, FIELDS), value)
