"""One value of Python's to bytes: as a column of it, or refused by its path."""

import datetime
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.records import UnencodableRowError
from spark_kafka_source.values import SchemaText, SchemaType
from spark_kafka_source.values.avro import AvroWriter
from spark_kafka_source.values.json import JsonWriter
from spark_kafka_source.values.one_value import array_of_one
from spark_kafka_source.values.value_writer import encode_one
from tests.values.avro_oracle import decoded, written
from tests.values.avro_schemas import logical, schemas, values
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
    for row in rows.array:
        try:
            value = row.as_py()
        except (OverflowError, ValueError):
            continue  # Python has no such time.
        if value is not None:
            assert by.one(value) == encode_one(by, value)


ONE = record(
    ("i", "int"), ("l", "long"), ("b", "boolean"), ("f", "float"), ("d", "double"),
    ("s", "string"), ("o", "bytes"), ("a", array("int")), ("m", {"type": "map", "values": "int"}),
    ("e", {"type": "enum", "name": "E", "symbols": ["A", "B"]}), ("x", fixed(2)),
    ("n", logical("bytes", "decimal", precision=4, scale=2)),
    ("t", logical("long", "timestamp-micros")), ("y", logical("int", "date")),
    ("u", ["null", "int", "string"]), ("v", ["string", "int"]), ("w", ["null", "int"]),
    ("z", "null"),
)  # fmt: skip
GOOD: dict[str, Any] = {
    "i": 1, "l": 2, "b": True, "f": 1.5, "d": 2, "s": "é", "o": b"o", "a": [1], "m": {"k": 1},
    "e": "B", "x": b"xx", "n": Decimal("1.5"), "t": datetime.datetime(2026, 1, 1),
    "y": datetime.date(2026, 1, 1), "u": {"member1": "u"}, "v": {"member1": 5}, "w": None,
    "z": None,
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
    ("u", {"member7": 1}, "there is no such field"), ("i", None, "null, where"), ("z", 1, "null"),
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


@pytest.mark.parametrize(
    ("value", "kind", "reason"),
    [
        ({"a": [{"b": 1.5}]}, "struct<a: list<struct<b: int64>>>", "a[].b: 1.5 is no int64"),
        ({"a": {"k": "x"}}, "struct<a: map<string, int64>>", "a{}: 'x' is no int64"),
        ({"a": {5: 1}}, "struct<a: map<string, int64>>", "a{}: 5 is no string"),
        ({"b": 1}, "struct<a: int64>", "b: there is no such field; known: a"),
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


def test_json() -> None:
    by = JsonWriter(pa.struct([("a", pa.int64()), ("t", pa.timestamp("us", "UTC"))]))
    when = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    assert json.loads(by.one({"a": 1, "t": when})) == {"a": 1, "t": "2026-01-01T00:00:00.000000Z"}
