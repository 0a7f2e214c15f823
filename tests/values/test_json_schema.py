"""JSON Schemas in registries: their columns, or the reason why they have none."""

import json
from typing import Any

import pyarrow as pa
import pytest

from spark_kafka_source.values import RecursiveTypeError, SchemaError, SchemaText, SchemaType
from spark_kafka_source.values.ddl import from_ddl, to_ddl
from spark_kafka_source.values.json import arrow_type


def read(schema: Any, **references: Any) -> pa.DataType:
    texts = tuple((name, json.dumps(each)) for name, each in references.items())
    return arrow_type(SchemaText(SchemaType.JSON, json.dumps(schema), texts))


def of(schema: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}, **more}


STRING, NULL = {"type": "string"}, {"type": "null"}
X, Y = (
    {"type": "object", "properties": {name: {"type": "integer"}}, "required": [name]}
    for name in "xy"
)

FIELDS: list[tuple[str, Any, str]] = [
    ("an integer", {"type": "integer", "minimum": 0}, "BIGINT"),
    ("a number", {"type": "number", "multipleOf": 0.01}, "DOUBLE"),
    ("a boolean", {"type": "boolean"}, "BOOLEAN"),
    ("a string", {"type": "string", "pattern": "x"}, "STRING"),
    ("a date", {"type": "string", "format": "date"}, "DATE"),
    ("a time of a day", {"type": "string", "format": "time"}, "STRING"),
    ("a timestamp", {"type": "string", "format": "date-time"}, "TIMESTAMP"),
    ("base64", {"type": "string", "contentEncoding": "base64"}, "BINARY"),
    ("a format alone", {"format": "date"}, "DATE"),
    ("or null", {"type": ["null", "string"], "format": "date-time"}, "TIMESTAMP"),
    ("several numbers", {"type": ["integer", "number", "null"]}, "DOUBLE"),
    ("several scalars", {"type": ["integer", "string"]}, "STRING"),
    ("null", NULL, "STRING"),
    ("anything", {}, "STRING"),
    ("anything, said otherwise", True, "STRING"),
    ("an enum", {"enum": ["x", "y", None]}, "STRING"),
    ("an enum with a type", {"type": "string", "enum": ["x"]}, "STRING"),
    ("an enum of integers", {"enum": [1, 2]}, "BIGINT"),
    ("an enum of numbers", {"enum": [1, 2.5]}, "DOUBLE"),
    ("an enum of several", {"enum": [1, "x", True]}, "STRING"),
    ("a const", {"const": True}, "BOOLEAN"),
    ("an array", {"type": "array", "items": STRING}, "ARRAY<STRING>"),
    ("an array without a type", {"items": {"type": "integer"}}, "ARRAY<BIGINT>"),
    ("an array of anything", {"type": "array"}, "ARRAY<STRING>"),
    ("a tuple", {"type": "array", "items": [STRING, STRING]}, "ARRAY<STRING>"),
    ("a new tuple", {"prefixItems": [{"type": "integer"}, {"type": "number"}]}, "ARRAY<DOUBLE>"),
    ("a tuple and more", {"prefixItems": [STRING], "items": False}, "ARRAY<STRING>"),
    ("an object", {"properties": {"b": STRING, "c": X}}, "STRUCT<b: STRING, c: STRUCT<x: BIGINT>>"),
    ("a closed object", {**X, "additionalProperties": False}, "STRUCT<x: BIGINT>"),
    ("an open object", {**X, "additionalProperties": STRING}, "STRUCT<x: BIGINT>"),
    ("an empty object", {"type": "object", "additionalProperties": False}, "STRUCT<>"),
    ("a map", {"type": "object", "additionalProperties": X}, "MAP<STRING, STRUCT<x: BIGINT>>"),
    ("a map without a type", {"additionalProperties": STRING}, "MAP<STRING, STRING>"),
    ("a map of anything", {"type": "object"}, "MAP<STRING, STRING>"),
    (
        "a map by a pattern",
        {"type": "object", "patternProperties": {"^x": X}, "additionalProperties": False},
        "MAP<STRING, STRUCT<x: BIGINT>>",
    ),
    ("one or null", {"oneOf": [NULL, {"type": "integer"}]}, "BIGINT"),
    ("any or null", {"anyOf": [X, {"enum": [None]}]}, "STRUCT<x: BIGINT>"),
    ("any of two numbers", {"anyOf": [{"type": "integer"}, {"type": "number"}]}, "DOUBLE"),
    ("one of the same", {"oneOf": [X, {**X, "title": "other"}]}, "STRUCT<x: BIGINT>"),
    (
        "only what is required",
        {**X, "oneOf": [{"required": ["x"]}, {"not": {}}]},
        "STRUCT<x: BIGINT>",
    ),
    ("all of two objects", {"allOf": [X, Y]}, "STRUCT<x: BIGINT, y: BIGINT>"),
    ("all of two, and more", {"allOf": [X], **Y}, "STRUCT<x: BIGINT, y: BIGINT>"),
    ("all of one and a title", {"allOf": [STRING, {"title": "x"}]}, "STRING"),
    (
        "all of what overlaps",
        {"allOf": [{"properties": {"z": X}}, {"properties": {"z": Y}}]},
        "STRUCT<z: STRUCT<x: BIGINT, y: BIGINT>>",
    ),
    ("a reference", {"$ref": "#/definitions/d"}, "STRUCT<x: BIGINT>"),
    ("a new reference", {"$ref": "#/$defs/e", "description": "x"}, "ARRAY<STRUCT<x: BIGINT>>"),
    ("a reference and more", {"$ref": "#/definitions/d", **Y}, "STRUCT<x: BIGINT, y: BIGINT>"),
    ("an escaped reference", {"$ref": "#/$defs/a~1b~0"}, "DATE"),
    ("another schema", {"$ref": "other.json"}, "STRUCT<o: STRUCT<x: BIGINT>>"),
    ("a place in another schema", {"$ref": "other.json#/definitions/d"}, "BOOLEAN"),
    ("another schema by its id", {"$ref": "http://example.com/o#/definitions/d"}, "BOOLEAN"),
]
DEFINITIONS = {
    "definitions": {"d": X},
    "$defs": {
        "e": {"type": "array", "items": {"$ref": "#/definitions/d"}},
        "a/b~": {"type": "string", "format": "date"},
    },
}
OTHER = {
    "$id": "http://example.com/o",
    "properties": {"o": {"$ref": "third.json"}},
    "definitions": {"d": {"type": "boolean"}},
}


@pytest.mark.parametrize(
    ("schema", "ddl"), [each[1:] for each in FIELDS], ids=[f[0] for f in FIELDS]
)
def test_a_field(schema: Any, ddl: str) -> None:
    references = {"other.json": OTHER, "third.json": X}
    found = read(of(schema, **DEFINITIONS), **references)
    assert to_ddl(found) == f"a {ddl}"
    assert to_ddl(read({**DEFINITIONS, **schema} if isinstance(schema, dict) else schema,
                       **references)) == to_ddl(found.field("a").type)  # fmt: skip


def test_the_order_of_fields_is_kept() -> None:
    properties = dict.fromkeys("zaqb", STRING)
    assert [each.name for each in read({"properties": properties})] == list("zaqb")


REFUSED: list[tuple[str, Any, str]] = [
    ("no value", False, "at a: False describes no value"),
    ("no schema", "string", "at a: 'string' describes no value"),
    ("an unknown type", {"type": "text"}, "at a: a value of type 'text'"),
    (
        "scalar or object",
        {"type": ["string", "object"]},
        "at a: a value of type 'string', 'object'",
    ),
    ("two objects", {"oneOf": [X, Y]}, "at a: any of 'struct<x: int64> or struct<y: int64>'"),
    ("text or object", {"anyOf": [STRING, X]}, "at a: any of"),
    ("a tuple of both", {"prefixItems": [STRING, X]}, r"at a\[\]: any of"),
    ("an enum of objects", {"enum": [{"x": 1}]}, "at a: the value {'x': 1}"),
    (
        "all of what differs",
        {"allOf": [X, {"properties": {"x": STRING}}]},
        "at a.x: both int64 and",
    ),
    ("all of two kinds", {"allOf": [X, STRING]}, "at a: both struct"),
    ("a reference to nowhere", {"$ref": "#/definitions/q"}, "leads nowhere.*which are 'r'"),
    ("an unknown schema", {"$ref": "q.json"}, "'q.json' leads nowhere"),
    ("an anchor", {"$ref": "#q"}, "'#q' leads nowhere"),
    ("a reference that is no text", {"$ref": 5}, "ref is 5"),
    ("members that are no list", {"oneOf": 5}, "oneOf is 5"),
    ("properties that are no object", {"properties": [1]}, r"properties are \[1\]"),
    ("values that are no list", {"enum": 5}, "enum is 5"),
]


@pytest.mark.parametrize(("schema", "said"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_what_is_no_column(schema: Any, said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        read(of(schema), r={})


def test_types_that_hold_themselves() -> None:
    tree = {"properties": {"value": STRING, "children": {"items": {"$ref": "#"}}}}
    with pytest.raises(RecursiveTypeError, match=r"at children\[\]: '#' holds itself"):
        read(tree)
    node = {"properties": {"next": {"$ref": "#/$defs/n"}}}
    with pytest.raises(RecursiveTypeError, match=r"at a\.next: '#/\$defs/n' holds itself"):
        read(of({"$ref": "#/$defs/n"}, **{"$defs": {"n": node}}))
    with pytest.raises(RecursiveTypeError, match="at a: '#/\\$defs/n' holds itself"):
        read(of({"$ref": "#/$defs/n"}, **{"$defs": {"n": {"allOf": [{"$ref": "#/$defs/n"}]}}}))
    with pytest.raises(RecursiveTypeError, match=r"at b\.c: 'r' holds itself"):
        read({"properties": {"b": {"$ref": "r"}}}, r={"properties": {"c": {"$ref": "r"}}})


def test_schemas_that_grow_without_bound() -> None:
    definitions: dict[str, Any] = {"d0": STRING}
    for level in range(1, 30):
        inner = {"$ref": f"#/$defs/d{level - 1}"}
        definitions[f"d{level}"] = {"properties": {"x": inner, "y": inner}}
    with pytest.raises(SchemaError, match="more than 10000 columns"):
        read({"$ref": "#/$defs/d29", "$defs": definitions})
    deep: dict[str, Any] = {}
    for _ in range(200):
        deep = {"items": deep}
    with pytest.raises(SchemaError, match="100 within each other"):
        read(deep)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "\ud800"])
def test_what_is_not_json(text: str) -> None:
    with pytest.raises(SchemaError, match="the schema is not JSON"):
        arrow_type(SchemaText(SchemaType.JSON, text))
    with pytest.raises(SchemaError, match="the reference 'r' is not JSON"):
        arrow_type(SchemaText(SchemaType.JSON, "{}", (("r", text),)))


def test_a_whole_schema() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Order",
        "type": "object",
        "additionalProperties": False,
        "definitions": {"address": {"type": "object", "properties": {"city": STRING}}},
        "properties": {
            "id": {"type": "integer"},
            "at": {"oneOf": [{"type": "null", "title": "Not included"},
                             {"type": "string", "format": "date-time"}]},
            "address": {"oneOf": [NULL, {"$ref": "#/definitions/address"}]},
            "lines": {"type": "array", "items": {"type": "object", "properties": {
                "sku": STRING, "price": {"type": "number"}}}},
        },
    }  # fmt: skip
    assert read(schema) == from_ddl(
        "id BIGINT, at TIMESTAMP, address STRUCT<city: STRING>,"
        "lines ARRAY<STRUCT<sku: STRING, price: DOUBLE>>"
    )
