"""Columns and values written with a schema: refused before a row is written, or exact.

The judges are `jsonschema`, and the deserializer of confluent-kafka, which validates what it reads.
"""

import datetime
import json
import pickle
from decimal import Decimal
from typing import Any

import jsonschema
import pyarrow as pa
import pytest
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from spark_kafka_source.records import UnencodableRowError
from spark_kafka_source.records.plain_types import plain
from spark_kafka_source.values import SchemaText, SchemaType
from spark_kafka_source.values.ddl import TIMESTAMP, TIMESTAMP_NTZ, array_of, from_ddl
from spark_kafka_source.values.errors import quoted
from spark_kafka_source.values.fitting import UnfitColumnError
from spark_kafka_source.values.json import JsonReader, JsonWriter
from spark_kafka_source.values.json.fit import written
from tests.values import avro_oracle
from tests.values.json_fits import SCHEMAS, kinds
from tests.values.json_values import STRUCTS
from tests.values.protobuf_columns import as_arrow
from tests.values.test_json_encode import values
from tests.values.test_json_oracle import ONE_BY_ONE, decoded

drawn = settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))


def writer(schema: Any, *ignored: str) -> JsonWriter:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return JsonWriter(SchemaText(SchemaType.JSON, text), None, ignored)


def struct(**fields: pa.DataType) -> pa.DataType:
    return pa.struct(list(fields.items()))


def of(schema: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}, **more}


def shortly(value: object) -> str:
    return quoted(value)[:40]


def text(by: JsonWriter, array: pa.Array) -> str:
    """Return the text of a column of one row."""
    (found,) = by.encode(array, b"").to_pylist()
    return str(found.decode())


AT = datetime.datetime(2026, 1, 2, 3, 4, 5, 6, datetime.UTC)
INTEGER, STRING, NULL = {"type": "integer"}, {"type": "string"}, {"type": "null"}
NULLABLE = {"type": ["integer", "null"]}
DATE_TIME = {"type": "string", "format": "date-time"}
X = {
    "type": "object",
    "properties": {"x": INTEGER},
    "required": ["x"],
    "additionalProperties": False,
}

FITS: list[tuple[Any, pa.DataType, Any, str]] = [
    # DDL: the schema's types and its order of fields; what is missing is left out.
    ("a BIGINT", pa.int32(), 1, '{"a":1}'),
    ("a DOUBLE", pa.float32(), 0.5, '{"a":0.5}'),
    ("a DOUBLE", pa.int32(), 5, '{"a":5.0}'),
    ("a DECIMAL(10, 2)", pa.decimal128(5, 1), Decimal("1.5"), '{"a":1.50}'),
    ("a DECIMAL(20, 0)", pa.int64(), 7, '{"a":7}'),
    ("a TIMESTAMP", pa.timestamp("ns", "Asia/Tokyo"), AT, '{"a":"2026-01-02T03:04:05.000006Z"}'),
    ("b INT, a INT", pa.int32(), 1, '{"a":1}'),
    ("a INT", pa.null(), None, "{}"),
    ("a STRUCT<x: INT NOT NULL>", struct(x=pa.int8()), None, "{}"),
    ("a STRUCT<x: INT NOT NULL>", pa.null(), None, "{}"),
    ("a INT NOT NULL", pa.int8(), 1, '{"a":1}'),
    ("a INT NOT NULL", pa.dictionary(pa.int8(), pa.int8()), 1, '{"a":1}'),
    ("a ARRAY<INT>", pa.list_(pa.int8()), [1, None], '{"a":[1,null]}'),
    ("a MAP<STRING, INT>", pa.map_(pa.large_string(), pa.int8()), [("k", None)],
     '{"a":{"k":null}}'),
    # A JSON Schema
    (of(INTEGER), pa.uint64(), 2**64 - 1, '{"a":18446744073709551615}'),
    (of(INTEGER), pa.decimal128(38, 0), Decimal(10) ** 37, f'{{"a":1{"0" * 37}}}'),
    (of({"type": "number"}), pa.int8(), 1, '{"a":1}'),
    (of({"type": "number"}), pa.float64(), 1.0, '{"a":1.0}'),
    (of({"type": "number"}), pa.decimal128(5, 2), Decimal("1.5"), '{"a":1.50}'),
    (of(DATE_TIME), TIMESTAMP, AT, '{"a":"2026-01-02T03:04:05.000006Z"}'),
    (of(DATE_TIME), pa.string(), "2026-01-02T03:04:05+01:00", '{"a":"2026-01-02T03:04:05+01:00"}'),
    (of({"type": "string", "format": "date"}), pa.date32(), AT.date(), '{"a":"2026-01-02"}'),
    (of({"type": "string", "format": "uuid"}), pa.string(), "x", '{"a":"x"}'),
    (of({"type": "string", "contentEncoding": "base64"}), pa.binary(2), b"ab", '{"a":"YWI="}'),
    (of({"type": ["integer", "string"]}), pa.string(), "x", '{"a":"x"}'),
    (of({"type": ["integer", "string"]}), pa.int32(), 5, '{"a":5}'),
    (of({"oneOf": [INTEGER, STRING]}), pa.int32(), 5, '{"a":5}'),
    (of({"oneOf": [INTEGER, X]}), struct(x=pa.int8()), {"x": 1}, '{"a":{"x":1}}'),
    (of({"enum": ["A", 5]}), pa.string(), "A", '{"a":"A"}'),
    (of({}), TIMESTAMP_NTZ, AT.replace(tzinfo=None), '{"a":"2026-01-02T03:04:05.000006"}'),
    (of({}), pa.float64(), float("nan"), '{"a":"NaN"}'),
    (of({}), pa.map_(pa.string(), pa.int8()), [("k", None)], '{"a":{"k":null}}'),
    (of({}), struct(x=pa.int8()), {"x": None}, '{"a":{}}'),
    (of(True), pa.list_(pa.null()), [None], '{"a":[null]}'),
    (of({"type": "array", "items": NULLABLE}), pa.list_(pa.int8()), [None, 1], '{"a":[null,1]}'),
    (of({"type": "object"}), struct(x=pa.int8()), {"x": None}, '{"a":{"x":null}}'),
    (of({"additionalProperties": INTEGER}), struct(x=pa.int8()), {"x": None}, '{"a":{}}'),
    (of({"patternProperties": {"^x": INTEGER}, "additionalProperties": False}),
     pa.map_(pa.string(), pa.int8()), [("x1", 1)], '{"a":{"x1":1}}'),
    (of({"patternProperties": {"^x": INTEGER}, "additionalProperties": False}),
     struct(x1=pa.int8()), {"x1": 1}, '{"a":{"x1":1}}'),
    ({"type": "object", "additionalProperties": NULLABLE}, pa.int8(), None, '{"a":null}'),
    # What is required and may be null is written as null.
    (of(NULLABLE, required=["a"]), pa.int32(), None, '{"a":null}'),
    (of(NULLABLE, required=["a"]), pa.null(), None, '{"a":null}'),
    (of(NULLABLE), pa.int32(), None, "{}"),
    (of({"anyOf": [NULL, X]}, required=["a"]), struct(x=pa.int8()), None, '{"a":null}'),
    (of(of(NULLABLE, required=["a"])), struct(a=pa.int32()), {"a": None}, '{"a":{"a":null}}'),
    (of(of(NULLABLE, required=["a"])), pa.struct([]), {}, '{"a":{"a":null}}'),
    (of({"type": "array", "items": of(NULLABLE, required=["a"])}), pa.list_(struct(a=pa.int32())),
     [{"a": None}, {"a": 1}], '{"a":[{"a":null},{"a":1}]}'),
    ({"allOf": [of(NULLABLE), {"required": ["a"]}]}, pa.int32(), None, '{"a":null}'),
    ({**of(NULLABLE), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
     pa.int32(), None, '{"a":null}'),
    ({**of(INTEGER), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, pa.int32(), 1,
     '{"a":1}'),
    (of({"$ref": "#/$defs/n"}, required=["a"], **{"$defs": {"n": NULLABLE}}),
     pa.int32(), None, '{"a":null}'),
    # A type that contains itself
    ({"$ref": "#/$defs/t", "$defs": {"t": {"type": "object", "additionalProperties": False,
      "properties": {"a": {"$ref": "#/$defs/t"}, "v": INTEGER}}}},
     struct(a=struct(v=pa.int8())), {"a": {"v": 1}}, '{"a":{"a":{"v":1}}}'),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "kind", "value", "wanted"), FITS, ids=shortly)
def test_what_fits(schema: Any, kind: pa.DataType, value: Any, wanted: str) -> None:
    by = writer(schema)
    array = pa.array([{"a": value}], struct(a=kind))
    by.fit(array.type)
    assert text(by, array) == wanted
    assert pickle.loads(pickle.dumps(by)).encode(array, b"\0").to_pylist() == [
        b"\0" + wanted.encode()
    ]
    if not isinstance(schema, str):
        jsonschema.validate(json.loads(wanted), schema)


REFUSED: list[tuple[Any, pa.DataType, str, str]] = [
    ("a INT", pa.int64(), "a", "type int64. The schema has INT"),
    ("a INT", pa.string(), "a", "type string"),
    ("a BOOLEAN", pa.int8(), "a", "BOOLEAN"),
    ("a FLOAT", pa.float64(), "a", "type double"),
    ("a DOUBLE", pa.int64(), "a", "type int64"),
    ("a STRING", pa.int32(), "a", "type int32"),
    ("a STRING", pa.binary(), "a", "type binary"),
    ("a BINARY", pa.string(), "a", "type string"),
    ("a DATE", TIMESTAMP, "a", "type timestamp"),
    ("a TIMESTAMP", TIMESTAMP_NTZ, "a", "type timestamp"),
    ("a TIMESTAMP_NTZ", TIMESTAMP, "a", "type timestamp"),
    ("a TIMESTAMP", pa.int64(), "a", "type int64"),
    ("a DECIMAL(4, 2)", pa.decimal128(5, 2), "a", r"decimal128\(5, 2\)"),
    ("a ARRAY<INT>", pa.list_(pa.string()), "a[]", "type string"),
    ("a ARRAY<STRUCT<x: INT>>", pa.list_(struct(y=pa.int8())), "a[].y", "no such field.*has: x"),
    ("a MAP<STRING, INT>", struct(x=pa.int8()), "a", "MAP<STRING, INT>"),
    ("a STRUCT<x: INT>", pa.map_(pa.string(), pa.int8()), "a", "STRUCT<x: INT>"),
    ("a MAP<STRING, INT>", pa.map_(pa.int8(), pa.int8()), "a{}", "keys are of the type int8"),
    ("A INT", pa.int32(), "a", "did you mean 'A'"),
    ("a INT NOT NULL", pa.null(), "a", "is missing. The schema has INT NOT NULL and no null"),
    ("a INT, b STRING NOT NULL", pa.int32(), "b", "is missing. The schema has STRING NOT NULL"),
    ("a STRUCT<x: INT NOT NULL>", pa.struct([]), "a.x", "is missing. The schema has INT NOT NULL"),
    ("a ARRAY<STRUCT<x: INT NOT NULL>>", pa.list_(pa.struct([])), "a[].x", "is missing"),
    ("a MAP<STRING, STRUCT<x: INT NOT NULL>>", pa.map_(pa.string(), struct(x=pa.null())), "a{}.x",
     "is missing"),
    ("b INT", pa.int32(), "a", "no such field.*The schema has: b"),
    (of(INTEGER), pa.float64(), "a", "type double. The schema has integer"),
    (of(INTEGER), pa.decimal128(4, 1), "a", "has integer"),
    (of(INTEGER), pa.string(), "a", "has integer"),
    (of({"type": "number"}), pa.string(), "a", "has number"),
    (of({"type": "boolean"}), pa.int8(), "a", "has boolean"),
    (of(STRING), pa.int8(), "a", "has string"),
    (of(STRING), pa.binary(), "a", "has string"),
    (of(STRING), TIMESTAMP, "a", "has string"),
    (of(STRING), pa.date32(), "a", "has string"),
    (of({"type": "string", "format": "date"}), TIMESTAMP, "a", r"has string \(date\)"),
    (of(DATE_TIME), pa.date32(), "a", r"has string \(date-time\)"),
    (of(DATE_TIME), TIMESTAMP_NTZ, "a", "has a time zone: give it one"),
    (of(DATE_TIME), pa.int64(), "a", "has string"),
    (of(INTEGER), pa.duration("s"), "a", "JSON has no place"),
    (of({}), pa.duration("s"), "a", "JSON has no place"),
    (of({}), pa.map_(pa.int8(), pa.int8()), "a{}", "keys"),
    (of({"type": ["integer", "string"]}), pa.float64(), "a", "has integer or string"),
    (of({"type": "array", "items": INTEGER}), pa.list_(pa.string()), "a[]", "has integer"),
    (of({"type": "array"}), struct(x=pa.int8()), "a", "has array"),
    (of(X), pa.list_(pa.int8()), "a", "has object"),
    (of(X), struct(x=pa.int8(), y=pa.int8()), "a.y", "no such field.*The schema has: x"),
    (of(X), struct(X=pa.int8()), "a.X", "did you mean 'x'"),
    (of(X), pa.struct([]), "a.x", "is missing. The schema has integer and no null"),
    (of(X), pa.map_(pa.string(), pa.int8()), "a", "object with the field 'x'. Give a STRUCT"),
    (of({"oneOf": [NULL, X]}), struct(x=pa.string()), "a.x", "has integer"),
    (of({"oneOf": [STRING, X]}), struct(x=pa.string()), "a.x", "has integer"),
    (of({"oneOf": [STRING, X]}), pa.bool_(), "a", "has string or object"),
    (of({"allOf": [X, of(INTEGER)]}), struct(x=pa.int8(), a=pa.int8()), "a.a", "no such field"),
    (of({**X, "additionalProperties": STRING}), struct(x=pa.int8(), y=pa.int8()), "a.y",
     "has string"),
    (of({"additionalProperties": STRING}), pa.map_(pa.string(), pa.int8()), "a{}", "has string"),
    (of({"additionalProperties": False}), pa.map_(pa.string(), pa.int8()), "a",
     "without any field"),
    (of(INTEGER, required=["a", "b"]), pa.int8(), "", ""),
    ({"type": "object", "properties": {"A": INTEGER}}, pa.int8(), "a", "did you mean 'A'"),
    ({**of(INTEGER), "unevaluatedProperties": False, "required": ["q"]}, pa.int8(), "q", "no such"),
    ({"type": "object", "unevaluatedProperties": False}, pa.int8(), "a", "no such field"),
    (of(False), pa.int8(), "a", "no such field"),
    (of(INTEGER, required=["a"]), pa.null(), "a", "is missing"),
    ({"type": "array"}, pa.int8(), "", "has array"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "kind", "path", "reason"),
    [each for each in REFUSED if each[3]],
    ids=shortly,
)
def test_what_does_not_fit_is_refused_before_a_row_is_written(
    schema: Any, kind: pa.DataType, path: str, reason: str
) -> None:
    with pytest.raises(UnfitColumnError, match=reason) as failed:
        writer(schema).fit(struct(a=kind))
    assert failed.value.column == path
    with pytest.raises(UnfitColumnError):
        writer(schema).encode(pa.array([], struct(a=kind)), b"")


def test_a_required_field_that_may_be_anything_is_written_as_null() -> None:
    found = text(writer(of(INTEGER, required=["b"])), pa.array([{"a": 1}], struct(a=pa.int8())))
    assert found == '{"a":1,"b":null}'


def test_fields_that_are_ignored_are_left_out() -> None:
    kind = struct(a=struct(x=pa.int8(), note=pa.time64("us")), zip=pa.int8())
    array = pa.array([{"a": {"x": 1, "note": None}, "zip": 5}], kind)
    for schema in ("a STRUCT<x: INT>", of(X, additionalProperties=False), of(X)):
        by = writer(schema, "a.note", "zip")
        assert text(by, array) == '{"a":{"x":1}}'
        assert by.one({"a": {"x": 1, "note": object()}, "zip": 5}) == b'{"a":{"x":1}}'
        with pytest.raises(UnfitColumnError, match=r"'zip'|'a\.note'"):
            writer(of(X, additionalProperties=False)).fit(kind)


ROWS: list[tuple[Any, pa.DataType, list[Any], list[int], str]] = [
    (of(INTEGER, required=["a"]), pa.int8(), [1, None, 2], [1],  "a: null, where"),
    (of({"items": INTEGER}), pa.list_(pa.int8()), [[1], None, [1, None]], [2], r"a\[\]: null"),
    (of({"additionalProperties": INTEGER}), pa.map_(pa.string(), pa.int8()),
     [[("k", 1)], [("k", None)]], [1], "a{}: null"),
    (of({"type": "number"}), pa.float64(), [1.0, float("nan"), float("inf")], [1, 2], "a: NaN"),
    (of(DATE_TIME), pa.string(), ["2026-01-02T03:04:05Z", "soon"], [1],
     "a: 'soon' is no date-time"),
    (of(DATE_TIME), pa.string(), ["2026-01-02T03:04:05"], [0], "is no date-time"),
    (of(DATE_TIME), pa.string(), ["2026-02-30T03:04:05Z"], [0], "is no date-time"),
    (of({"format": "date"}), pa.string(), ["2026-01-02", "2026-1-2"], [1], "is no date"),
    (of({"contentEncoding": "base64"}), pa.string(), ["YQ==", "YQ"], [1], "'YQ' is no base64"),
    (of(DATE_TIME), TIMESTAMP, [0, 1 << 60], [1], "a year that a date-time does not have"),
    (of({"format": "date"}), pa.date32(), [0, -800_000], [1], "a year that a date does not have"),
    ("a TIMESTAMP", pa.timestamp("ns", "UTC"), [1_000, 1_001], [1], "is not a whole timestamp"),
    (of({"patternProperties": {"^x": INTEGER}, "additionalProperties": False}),
     pa.map_(pa.string(), pa.int8()), [[("x", 1)], [("y", 1)]], [1], "the key 'y'"),
    ("a MAP<STRING, INT>", pa.map_(pa.string(), pa.int8()),
     [[("x", 1), ("y", 1)], [("x", 1)], [("x", 1), ("x", 1)]], [2], "the key 'x' comes twice"),
    (of({"prefixItems": [INTEGER], "items": False}), pa.list_(pa.int8()), [[1], [1, 2]], [1],
     "more than"),
    ("a INT NOT NULL", pa.int8(), [1, None, 2], [1], "a: null, where"),
    ("a STRUCT<x: INT> NOT NULL", struct(x=pa.int8()), [{"x": None}, None], [1], "a: null, where"),
    ("a STRUCT<x: INT NOT NULL>", struct(x=pa.int8()), [None, {"x": 1}, {"x": None}], [2],
     r"a\.x: null, where"),
    ("a ARRAY<STRUCT<x: INT NOT NULL>>", pa.list_(struct(x=pa.int8())),
     [[{"x": 1}, None], [{"x": 1}, {"x": None}]], [1], r"a\[\]\.x: null, where"),
    ("a MAP<STRING, STRUCT<x: INT NOT NULL>>", pa.map_(pa.string(), struct(x=pa.int8())),
     [[("k", {"x": 1})], [("k", {"x": None})]], [1], r"a{}\.x: null, where"),
    (of({"items": of(INTEGER, required=["a"])}), pa.list_(struct(a=pa.int8())),
     [[{"a": 1}], [{"a": 1}, {"a": None}], [None]], [1], r"a\[\].a: null"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "kind", "rows", "bad", "reason"), ROWS, ids=shortly)
def test_what_only_rows_show(
    schema: Any, kind: pa.DataType, rows: list[Any], bad: list[int], reason: str
) -> None:
    by = writer(schema)
    array = pa.array([{"a": each} for each in rows], struct(a=kind))
    by.fit(array.type)
    with pytest.raises(UnencodableRowError, match=reason) as failed:
        by.encode(array, b"")
    assert list(failed.value.rows) == bad
    # A slice has its own row numbers, and nothing of the other rows.
    with pytest.raises(UnencodableRowError, match=reason) as failed:
        by.encode(pa.concat_arrays([array, array]).slice(len(rows)), b"")
    assert list(failed.value.rows) == bad
    sound = [each for number, each in enumerate(rows) if number not in bad]
    by.encode(pa.array([{"a": each} for each in sound if each != [None]], struct(a=kind)), b"")


def test_nulls_hide_what_is_below_them() -> None:
    inner = pa.array([1, None], pa.int8())
    null = pa.StructArray.from_arrays([inner], ["x"], mask=pa.array([False, True]))
    array = pa.StructArray.from_arrays([null], ["a"])
    by = writer(of({"anyOf": [X, NULL]}))
    assert by.encode(array, b"").to_pylist() == [b'{"a":{"x":1}}', b"{}"]


# -- one value -------------------------------------------------------------------------------------

ONE = [
    *((ddl, value, wanted) for ddl, value, wanted in [
        ("a BIGINT", 1, "1"), ("a DOUBLE", 1, "1.0"), ("a DOUBLE", 0.1, "0.1"), ("a FLOAT", 0.1,
         "0.1"),
        ("a FLOAT", float("inf"), '"Infinity"'), ("a DECIMAL(5, 2)", Decimal("1.5"), "1.50"),
        ("a DECIMAL(5, 2)", 7, "7.00"), ("a DATE", AT.date(), '"2026-01-02"'),
        ("a TIMESTAMP", AT, '"2026-01-02T03:04:05.000006Z"'),
        ("a TIMESTAMP_NTZ", AT.replace(tzinfo=None), '"2026-01-02T03:04:05.000006"'),
        ("a MAP<STRING, INT>", [("k", None)], '{"k":null}'), ("a ARRAY<INT>", (1, None),
         "[1,null]"),
    ]),
    *((of(schema), value, wanted) for schema, value, wanted in [
        (INTEGER, 1, "1"), (INTEGER, Decimal(5), "5"), (INTEGER, 2**64 - 1, str(2**64 - 1)),
        ({"type": "number"}, 1, "1"), ({"type": "number"}, 1.0, "1.0"),
        ({"type": "number"}, Decimal("1.50"), "1.50"), (DATE_TIME, AT,
         '"2026-01-02T03:04:05.000006Z"'),
        (DATE_TIME, "2026-01-02T03:04:05Z", '"2026-01-02T03:04:05Z"'),
        ({"type": "string", "contentEncoding": "base64"}, b"ab", '"YWI="'),
        ({}, {"x": [1, None, "é"], "y": None}, '{"x":[1,null,"é"]}'), ({}, True, "true"),
        ({"additionalProperties": INTEGER}, [("k", 1)], '{"k":1}'),
        ({"type": "object"}, {"k": None}, '{"k":null}'),
        ({"prefixItems": [INTEGER, STRING]}, [1, "x", None], '[1,"x",null]'),
        ({"oneOf": [INTEGER, X, {"items": X}]}, [{"x": 1}], '[{"x":1}]'),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "value", "wanted"), ONE, ids=shortly)
def test_one_value_that_fits(schema: Any, value: Any, wanted: str) -> None:
    found = writer(schema).one({"a": value})
    assert found.decode() == f'{{"a":{wanted}}}'
    if not isinstance(schema, str):
        jsonschema.validate(json.loads(found), schema)


MISFITS = [
    *((ddl, value, "a: ") for ddl, value in [
        ("a INT", True), ("a INT", 1.0), ("a INT", "1"), ("a INT", 2**31), ("a BOOLEAN", 1),
        ("a FLOAT", 1e300), ("a FLOAT", 2**24 + 1), ("a DOUBLE", 2**53 + 1), ("a DOUBLE", True),
        ("a DOUBLE", "1"), ("a DOUBLE", Decimal(1)), ("a DECIMAL(4, 2)", Decimal("1.234")),
        ("a DECIMAL(4, 2)", Decimal(100)), ("a DECIMAL(4, 2)", 1.5), ("a DECIMAL(4, 2)",
         Decimal("NaN")),
        ("a STRING", b"x"), ("a STRING", 5), ("a STRING", "\ud800"), ("a BINARY", "x"),
        ("a DATE", AT), ("a DATE", 5), ("a DATE", "2026-01-02"), ("a TIMESTAMP", 5),
        ("a TIMESTAMP", AT.replace(tzinfo=None)), ("a TIMESTAMP", AT.date()), ("a TIMESTAMP",
         "2026"),
        ("a TIMESTAMP_NTZ", AT), ("a TIMESTAMP_NTZ", 5), ("a STRUCT<x: INT>", [1]),
        ("a MAP<STRING, INT>", [("k", 1), ("k", 2)]), ("a ARRAY<INT>", {"k": 1}),
         ("a ARRAY<INT>", "ab"),
        ("a FLOAT", 10**400), ("a INT NOT NULL", None), ("a STRUCT<> NOT NULL", None), ]),
    ("a STRUCT<x: INT NOT NULL>", {}, "a.x: it is missing, where the schema has NOT NULL"),
    ("a STRUCT<x: INT NOT NULL>", {"x": None}, "a.x: null, where the schema has NOT NULL"),
    ("a ARRAY<STRUCT<x: INT NOT NULL>>", [{"x": 1}, {}], "a[].x: it is missing"),
    ("a MAP<STRING, STRUCT<x: INT NOT NULL>>", {"k": {}}, "a{}.x: it is missing"),
    ("a INT, b INT NOT NULL", 1, "b: it is missing"),
    *((of(schema), value, "a") for schema, value in [
        (INTEGER, 1.0), (INTEGER, True), (INTEGER, "1"), (INTEGER, Decimal("1.5")), (INTEGER,
         2**64),
        (INTEGER, 10**5000), ({"type": "number"}, float("nan")), ({"type": "number"}, "1"),
        ({"type": "number"}, Decimal("NaN")), ({"type": "number"}, True), ({"type": "boolean"}, 1),
        (STRING, 5), (STRING, b"x"), (STRING, AT), (STRING, AT.date()), (STRING, "\ud800"),
        (DATE_TIME, AT.replace(tzinfo=None)), (DATE_TIME, AT.date()), (DATE_TIME, "soon"),
         (DATE_TIME, 5),
        ({"type": "string", "format": "date"}, AT), ({"contentEncoding": "base64"}, "x"),
        (X, {}), (X, {"x": None}), (X, {"x": "1"}), (X, {"x": 1, "y": 1}), (X, {"X": 1}), (X, [1]),
        ({"items": INTEGER}, [None]), ({"items": INTEGER}, {"x": 1}), ({"items": INTEGER}, "ab"),
        ({"additionalProperties": INTEGER}, {5: 1}),
        ({"prefixItems": [INTEGER], "items": False}, [1, 2]), ({}, Ellipsis), ({}, {5: 1}),
        ({}, datetime.time(1)), ({}, datetime.timedelta(1)), ({}, 1j), ({}, {"\ud800": 1}),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "value", "path"), MISFITS, ids=shortly)
def test_one_value_that_does_not_fit(schema: Any, value: Any, path: str) -> None:
    with pytest.raises(UnencodableRowError) as failed:
        writer(schema).one({"a": value})
    assert failed.value.reason.startswith(path)


@pytest.mark.parametrize(("schema", "value", "reason"), [
    (INTEGER, 2**64, "a: 18446744073709551616 is beyond 64 bits"),
    (INTEGER, -(2**63) - 1, "a: -9223372036854775809 is beyond 64 bits"),
    ({}, 2**64, "a: 18446744073709551616 is beyond 64 bits"),
    (INTEGER, Decimal(10**38), "a: Decimal('1" + "0" * 38 + "') has more than 38 digits"),
    ({"type": "number"}, Decimal("NaN"), "a: Decimal('NaN') is no number"),
    ({"prefixItems": [INTEGER], "items": False}, [1, 2], "a[]: 2, where the schema has no value"),
    ({"prefixItems": [INTEGER], "items": False}, [1, None],
     "a[]: null, where the schema has no value"),
    (NULL, 2, "a: 2, where the schema has no value but null"),
], ids=shortly)  # fmt: skip
def test_reasons(schema: Any, value: Any, reason: str) -> None:
    with pytest.raises(UnencodableRowError) as failed:
        writer(of(schema)).one({"a": value})
    assert failed.value.reason == reason


def test_not_null_is_not_read() -> None:
    by = writer("a STRUCT<x: INT NOT NULL> NOT NULL")
    assert by.arrow_type == from_ddl("a STRUCT<x: INT>")
    with pytest.raises(UnencodableRowError, match="a: null"):
        pickle.loads(pickle.dumps(by)).one({"a": None})


def test_names_of_one_value_are_as_they_are_written() -> None:
    for schema in ("amount INT", {"properties": {"amount": INTEGER}}):
        with pytest.raises(UnencodableRowError, match=r"Amount: .*did you mean 'amount'"):
            writer(schema).one({"Amount": 1})


def _tagged(tag: str, name: str, **more: Any) -> dict[str, Any]:
    fields = {"k": {"const": tag}, name: NULLABLE}
    return {"type": "object", "properties": fields, "required": ["k", name], **more}


A_OR_B = [_tagged("A", "a"), _tagged("B", "b")]
CLOSED = [_tagged(tag, name, additionalProperties=False) for tag, name in ("Aa", "Bb")]
UNTAGGED = [of(NULLABLE, required=["a"]), {"properties": {"b": NULLABLE}, "required": ["b"]}]
CHOSEN: list[tuple[Any, Any, str]] = [
    *(({keyword: ways}, value, wanted)
      for keyword in ("oneOf", "anyOf") for ways in (A_OR_B, CLOSED) for value, wanted in [
        ({"k": "B", "b": 5}, '{"k":"B","b":5}'), ({"k": "A", "a": 5}, '{"k":"A","a":5}'),
        ({"k": "B", "b": None}, '{"k":"B","b":null}'),
        ({"k": "B"}, '{"k":"B","b":null}'), ({"k": "A"}, '{"k":"A","a":null}'),
    ]),
    (of({"oneOf": A_OR_B}), {"a": {"k": "B", "b": None}}, '{"a":{"k":"B","b":null}}'),
    ({"items": {"oneOf": A_OR_B}}, [{"k": "B"}, {"k": "A"}],
     '[{"k":"B","b":null},{"k":"A","a":null}]'),
    # The choice is told by a value further below, behind a reference, or in a list.
    ({"oneOf": [of(_tagged(tag, "c"), required=["a", name]) for tag, name in ("Ax", "By")]},
     {"a": {"k": "B", "c": 1}}, '{"a":{"k":"B","c":1},"y":null}'),
    ({"$defs": {"b": {"enum": ["B", "C"]}}, "oneOf": [_tagged("A", "a"), {
      "type": "object", "properties": {"k": {"$ref": "#/$defs/b"}}, "required": ["b"]}]},
     {"k": "C"}, '{"k":"C","b":null}'),
    ({"oneOf": [of({"prefixItems": [{"const": tag}]}, required=["a", name])
      for tag, name in ("Ax", "By")]}, {"a": ["B"]}, '{"a":["B"],"y":null}'),
    # Nothing tells it.
    ({"anyOf": UNTAGGED}, {"a": 1}, '{"a":1}'), ({"anyOf": UNTAGGED}, {"b": None}, '{"b":null}'),
    ({"anyOf": UNTAGGED}, {"a": None, "b": None}, '{"a":null,"b":null}'),
    ({"anyOf": [{"required": ["a"]}, {"required": ["b", "a"]}], **of(NULLABLE)}, {},
     '{"a":null}'),
    ({"anyOf": [of(NULLABLE, required=["a"]), {"type": "object"}]}, {"c": 1}, '{"c":1}'),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "value", "wanted"), CHOSEN, ids=shortly)
def test_a_dict_says_by_itself_which_choice_it_is(schema: Any, value: Any, wanted: str) -> None:
    found = writer(schema).one(value)
    assert found.decode() == wanted
    jsonschema.validate(json.loads(found), schema)


def test_a_dict_that_lacks_what_each_choice_requires_is_refused() -> None:
    with pytest.raises(UnencodableRowError, match="a: one of the fields a, b is missing"):
        writer(of({"anyOf": UNTAGGED})).one({"a": {}})


def test_ignored_fields_do_not_tell_the_choice() -> None:
    assert writer({"oneOf": CLOSED}, "note").one({"k": "B", "note": 1}) == b'{"k":"B","b":null}'


@pytest.mark.parametrize("value", [{"x": None}, [("x", None)]], ids=repr)
@pytest.mark.parametrize("keywords", [{"additionalProperties": INTEGER},
    {"patternProperties": {"^x": INTEGER}}, {"patternProperties": {"^x": INTEGER},
     "additionalProperties": False}], ids=shortly)  # fmt: skip
def test_a_null_in_a_map_is_refused_where_the_schema_has_none(keywords: Any, value: Any) -> None:
    schema = {"type": "object", **keywords}
    with pytest.raises(UnencodableRowError, match=r"\bx: null, where the schema has integer"):
        writer(schema).one(value)
    with pytest.raises(UnencodableRowError, match=r"\ba\.x: null, where"):
        writer(of(schema)).one({"a": value})
    with pytest.raises(UnencodableRowError, match="null"):
        writer(schema).encode(pa.array([[("x", None)]], pa.map_(pa.string(), pa.int8())), b"")


# -- drawn -----------------------------------------------------------------------------------------


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the array in the type, where pyarrow can: its cast of lists of nulls is broken."""
    found = array if array.type == kind else array.cast(kind)
    try:
        found.validate(full=True)
    except pa.ArrowInvalid:
        assume(False)
    return found


def _as_written(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([(each.name, _as_written(each.type)) for each in kind])
    if pa.types.is_map(kind):
        return pa.map_(pa.string(), _as_written(kind.item_type))
    if pa.types.is_list(kind):
        return array_of(_as_written(kind.value_type))
    found = written(kind, "")
    return pa.string() if pa.types.is_null(found) else found


@drawn
@given(st.data())
def test_a_column_is_refused_or_what_is_written_validates_and_reads_back(
    data: st.DataObject,
) -> None:
    written_or_refused(data)


def written_or_refused(data: st.DataObject) -> None:
    schema = data.draw(SCHEMAS)
    jsonschema.Draft202012Validator.check_schema(schema)
    kind = data.draw(kinds(schema))
    by = writer(schema)
    try:
        by.fit(kind)
    except UnfitColumnError:
        event("refused")
        return
    rows = [
        each for each in data.draw(st.lists(values(plain(kind)), max_size=5)) if each is not None
    ]
    array = _cast(pa.array([as_arrow(each, plain(kind)) for each in rows], plain(kind)), kind)
    try:
        texts = by.encode(array, b"").to_pylist()
    except UnencodableRowError as error:
        event("a row was refused")
        assert all(0 <= each < len(rows) for each in error.rows)
        return
    event("written")
    validator = jsonschema.Draft202012Validator(schema)
    for each in texts:
        validator.validate(json.loads(each))
    if not pa.types.is_struct(kind):
        return
    found = decoded(JsonReader(_as_written(plain(kind))), texts, ONE_BY_ONE)
    assert not found.status.any(), found.reason(int(found.status.argmax()))
    assert avro_oracle.plain(found.array) == avro_oracle.plain(
        pa.array(rows, _as_written(plain(kind)))
    )


def has(kind: pa.DataType, *others: pa.DataType) -> bool:
    """Whether a type, or one within it, is among others. Maps always are."""
    if pa.types.is_map(kind) or kind in others:
        return True
    return any(has(kind.field(place).type, *others) for place in range(kind.num_fields))


@pytest.mark.long
@settings(drawn, max_examples=3_000)
@given(st.data())
def test_many_columns_are_refused_or_what_is_written_validates_and_reads_back(
    data: st.DataObject,
) -> None:
    written_or_refused(data)


@drawn
@given(st.data())
def test_a_dict_is_written_as_a_column_of_one_row(data: st.DataObject) -> None:
    schema = data.draw(SCHEMAS)
    kind = data.draw(kinds(schema))
    # In Python a float has no 32 bits, and a map of no schema is a list.
    assume(pa.types.is_struct(kind) and not has(kind, pa.float32(), pa.float16()))
    by = writer(schema)
    try:
        by.fit(kind)
    except UnfitColumnError:
        event("refused")
        return
    array = _cast(pa.array([data.draw(values(plain(kind)))], plain(kind)), kind)
    try:
        (value,) = array.to_pylist()
    except (OverflowError, ValueError):
        assume(False)  # Python has no such time.
    assume(value is not None)
    try:
        (found,) = by.encode(array, b"").to_pylist()
    except UnencodableRowError as refused:
        event("a row was refused")
        if "[]: null, where" in refused.reason and "prefixItems" in str(schema):
            return  # A column has one type for all items. Of a dict, each fits its own place.
        with pytest.raises(UnencodableRowError):
            by.one(value)
        return
    event("written")
    try:
        assert by.one(value) == found
    except UnencodableRowError as error:
        # A struct's null field is left out. A dict may be a map, and that has a null.
        assert "null, where" in error.reason or "one of the fields" in error.reason


@drawn
@given(st.data())
def test_a_dict_of_a_type_is_written_as_a_column_of_one_row(data: st.DataObject) -> None:
    kind = data.draw(STRUCTS)
    array = pa.array([data.draw(values(kind))], kind)
    assume("float" not in str(kind))
    try:
        (value,) = array.to_pylist()
    except (OverflowError, ValueError):
        assume(False)
    assume(value is not None)
    by = JsonWriter(None, kind)
    try:
        (found,) = by.encode(array, b"").to_pylist()
    except UnencodableRowError:
        with pytest.raises(UnencodableRowError):
            by.one(value)
        return
    assert by.one(value) == found


CONTEXT = SerializationContext("t", MessageField.VALUE)


def test_what_is_written_is_read_by_a_deserializer_that_validates() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Order",
        "type": "object",
        "additionalProperties": False,
        "required": ["id", "note", "lines", "by"],
        "properties": {
            "id": INTEGER,
            "note": {"oneOf": [NULL, STRING]},
            "lines": {"type": "array", "items": {"oneOf": [NULL, {"$ref": "#/definitions/line"}]}},
            "by": {"type": ["object", "null"], "additionalProperties": NULLABLE},
            "optional": STRING,
        },
        "definitions": {"line": {"type": "object", "required": ["price"], "properties": {
            "price": {"type": ["number", "null"]}, "sku": STRING}, "additionalProperties": False}},
    }  # fmt: skip
    kind = from_ddl(
        "id INT, note STRING, lines ARRAY<STRUCT<sku: STRING, price: FLOAT>>, by MAP<STRING, INT>,"
        "optional STRING"
    )
    rows: list[dict[str, Any]] = [
        {"id": 1, "note": None, "lines": [{"sku": None, "price": None}, None], "by": None},
        {"id": 2, "note": "x", "lines": [{"sku": "s", "price": 0.5}], "by": {"k": None}},
    ]
    by = writer(schema)
    read = JSONDeserializer(json.dumps(schema))
    array = pa.array(
        [{**each, "by": each["by"] and list(each["by"].items())} for each in rows], kind
    )
    for data in (by.encode(array, b"\0\0\0\0\1").to_pylist(),
                 [b"\0\0\0\0\1" + by.one(each) for each in rows]):  # fmt: skip
        assert [read(each, CONTEXT) for each in data] == [
            {"id": 1, "note": None, "lines": [{"price": None}, None], "by": None},
            {"id": 2, "note": "x", "lines": [{"sku": "s", "price": 0.5}], "by": {"k": None}},
        ]
