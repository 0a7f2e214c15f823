"""JSON Schemas in registries: their columns, or the reason why they have none."""

import json
from typing import Any

import pyarrow as pa
import pytest

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.values import RecursiveTypeError, SchemaError, SchemaText, SchemaType
from spark_kafka_source.values.ddl import from_ddl, to_ddl
from spark_kafka_source.values.json import arrow_type, documents


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

NUMBER, INTEGER = {"type": "number"}, {"type": "integer"}
MAP = {"type": "object", "additionalProperties": INTEGER}

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
    ("an enum of objects", {"enum": [{"x": 1}]}, "MAP<STRING, STRING>"),
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
    ("all of a number and an integer", {"allOf": [NUMBER, INTEGER]}, "BIGINT"),
    ("all of several and one", {"allOf": [{"type": ["string", "integer"]}, NUMBER]}, "BIGINT"),
    ("all of a string and a format", {"allOf": [STRING, {"format": "date"}]}, "DATE"),
    ("all of a type and an object", {"type": "object", "allOf": [X]}, "STRUCT<x: BIGINT>"),
    ("one of a type and an object", {"type": "object", "oneOf": [X]}, "STRUCT<x: BIGINT>"),
    (
        "any of objects, null by the type beside them",
        {"type": ["object", "null"], "anyOf": [X, NULL]},
        "STRUCT<x: BIGINT>",
    ),
    ("all of maps", {"allOf": [{"type": "object"}, MAP]}, "MAP<STRING, BIGINT>"),
    ("all of arrays", {"type": "array", "allOf": [{"items": INTEGER}]}, "ARRAY<BIGINT>"),
    (
        "all of what is open inside",
        {"allOf": [{"properties": {"z": {"type": "object"}}}, {"properties": {"z": X}}]},
        "STRUCT<z: STRUCT<x: BIGINT>>",
    ),
    ("any of a string and anything", {"anyOf": [STRING, {"title": "x"}]}, "STRING"),
    ("any of a number and anything", {"anyOf": [NUMBER, {}]}, "STRING"),
    (
        "a choice that no value fits",
        {**X, "anyOf": [STRING, {"required": ["x"]}]},
        "STRUCT<x: BIGINT>",
    ),
    (
        "a type beside a reference",
        {"type": "object", "$ref": "#/definitions/d"},
        "STRUCT<x: BIGINT>",
    ),
    (
        "all of references",
        {"allOf": [{"$ref": "#/definitions/d"}, Y]},
        "STRUCT<x: BIGINT, y: BIGINT>",
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
    ("no value", False, "at a: no value fits"),
    ("no schema", "string", "at a: 'string' describes no value"),
    ("an unknown type", {"type": "text"}, "at a: a value of type 'text'"),
    (
        "scalar or object",
        {"type": ["string", "object"]},
        "at a: a value of type object or string",
    ),
    ("two objects", {"oneOf": [X, Y]}, "at a: any of 'struct<x: int64> or struct<y: int64>'"),
    ("text or object", {"anyOf": [STRING, X]}, "at a: any of"),
    ("a tuple of both", {"prefixItems": [STRING, X]}, r"at a\[\]: any of"),
    ("an enum of objects and others", {"enum": [{"x": 1}, 5]}, "a value of type integer or object"),
    ("all of what differs", {"allOf": [X, {"properties": {"x": STRING}}]}, "at a.x: no value fits"),
    ("all of two kinds", {"allOf": [X, STRING]}, "at a: no value fits"),
    ("a reference to nowhere", {"$ref": "#/definitions/q"}, "leads nowhere.*which are 'r'"),
    ("an unknown schema", {"$ref": "q.json"}, "'q.json' leads nowhere"),
    ("an unknown anchor", {"$ref": "#q"}, "'#q' leads nowhere"),
    ("a place of a list that is none", {"$ref": "#/properties/a/allOf/x"}, "leads nowhere"),
    ("a place beyond a list", {"$ref": "#/properties/a/allOf/7", "allOf": []}, "leads nowhere"),
    ("a reference that is no text", {"$ref": 5}, "ref is 5"),
    ("members that are no list", {"oneOf": 5}, "oneOf is 5"),
    ("properties that are no object", {"properties": [1]}, r"properties are \[1\]"),
    ("values that are no list", {"enum": 5}, "enum is 5"),
]


@pytest.mark.parametrize(("schema", "said"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_what_is_no_column(schema: Any, said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        read(of(schema), r={})


BASE = "http://example.com/schemas/order.json"
ITEM = {**INTEGER, "$id": "item.json"}
REFERENCES: list[tuple[str, Any, dict[str, Any]]] = [
    ("an encoded pointer", {"$ref": "#/$defs/a%20b%25"}, {"$defs": {"a b%": INTEGER}}),
    ("an escaped pointer", {"$ref": "#/$defs/a~1b~0c"}, {"$defs": {"a/b~c": INTEGER}}),
    ("escaped, then encoded", {"$ref": "#/$defs/a~1%7E0"}, {"$defs": {"a/~": INTEGER}}),
    ("a pointer with quotes", {"$ref": "#/$defs/a%22b"}, {"$defs": {'a"b': INTEGER}}),
    (
        "a pointer through a list",
        {"$ref": "#/properties/b/anyOf/1"},
        {"properties": {"b": {"anyOf": [NULL, INTEGER]}}},
    ),
    (
        "a pointer through items of a list",
        {"$ref": "#/definitions/t/items/0"},
        {"definitions": {"t": {"items": [INTEGER]}}},
    ),
    ("an anchor", {"$ref": "#q"}, {"$defs": {"d": {**INTEGER, "$anchor": "q"}}}),
    ("an old anchor", {"$ref": "#q"}, {"definitions": {"d": {**INTEGER, "$id": "#q"}}}),
    ("a dynamic anchor", {"$dynamicRef": "#q"},
     {"$defs": {"d": {**INTEGER, "$dynamicAnchor": "q"}}}),
    ("its own id", {"$ref": f"{BASE}#/$defs/d"}, {"$id": BASE, "$defs": {"d": INTEGER}}),
    ("its own id, relative", {"$ref": "order.json#/$defs/d"},
     {"$id": BASE, "$defs": {"d": INTEGER}}),
    ("its own old id", {"$ref": "order.json#/$defs/d"},
     {"$schema": "http://json-schema.org/draft-04/schema#", "id": BASE, "$defs": {"d": INTEGER}}),
    ("an embedded id", {"$ref": "item.json"}, {"$id": BASE, "$defs": {"d": ITEM}}),
    ("an embedded id without a base", {"$ref": "item.json"}, {"$defs": {"d": ITEM}}),
    ("an embedded id, absolute", {"$ref": "http://example.com/schemas/item.json"},
     {"$id": BASE, "definitions": {"d": ITEM}}),
    ("a place in what has an embedded id", {"$ref": "item.json#/$defs/e"},
     {"$id": BASE, "$defs": {"d": {"$id": "item.json", "$defs": {"e": INTEGER}}}}),
    ("an anchor in what has an embedded id", {"$ref": "item.json#e"},

     {"$id": BASE, "$defs": {
         "d": {"$id": "item.json", "$defs": {"e": {**INTEGER, "$anchor": "e"}}}}}),
    ("an embedded urn", {"$ref": "urn:example:item"},
     {"$defs": {"d": {**INTEGER, "$id": "urn:example:item"}}}),
    ("a reference within what has a base of its own", {"$ref": "sub/item.json"},
     {"$id": BASE, "$defs": {
         "d": {"$id": "sub/item.json", "allOf": [{"$ref": "other.json"}]},
         "e": {**INTEGER, "$id": "sub/other.json"}, "f": {**STRING, "$id": "other.json"}}}),
    ("references one after the other", {"$ref": "#/$defs/a"},
     {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/c"}, "c": INTEGER}}),
    ("by the name in the registry", {"$ref": "name.json"}, {}),
    ("by the name, with a base", {"$ref": "name.json"}, {"$id": BASE}),
    ("by the name, absolute", {"$ref": "http://example.com/schemas/name.json"}, {"$id": BASE}),
    ("a place, by the name", {"$ref": "name.json#/$defs/n"}, {"$id": BASE}),
    ("an anchor, by the name", {"$ref": "name.json#anchored"}, {}),
    ("by the id of the reference", {"$ref": "http://other.com/x/id.json"}, {"$id": BASE}),
    ("relative to the id of the reference", {"$ref": "/x/id.json"},
     {"$id": "http://other.com/y/z.json"}),
    ("by an id with a fragment that is empty", {"$ref": "http://other.com/x/id.json#"}, {}),
    ("an embedded id of the reference", {"$ref": "http://other.com/x/inner.json"}, {}),
    ("from reference to reference, by the id", {"$ref": "chain#/$defs/by_id"}, {}),
    ("from reference to reference, by the name", {"$ref": "chain#/$defs/by_name"}, {}),
    ("from reference to its own base", {"$ref": "chain#/$defs/here"}, {"$id": BASE}),
]  # fmt: skip
OTHERS = {
    "name.json": {**INTEGER, "$defs": {"n": {**INTEGER, "$anchor": "anchored"}}},
    "id": {**INTEGER, "$id": "http://other.com/x/id.json",
           "$defs": {"i": {**INTEGER, "$id": "inner.json"}}},
    "chain": {"$id": "http://other.com/x/chain.json", "$defs": {

     "by_id": {"$ref": "id.json"}, "by_name": {"$ref": "name.json"}, "here": {"$ref": "#/$defs/n"},
        "n": INTEGER}},
}  # fmt: skip


@pytest.mark.parametrize(
    ("field", "schema"), [each[1:] for each in REFERENCES], ids=[each[0] for each in REFERENCES]
)
def test_a_reference(field: Any, schema: dict[str, Any]) -> None:
    properties = {"a": field, **schema.get("properties", {})}
    found = read({**schema, "type": "object", "properties": properties}, **OTHERS)
    assert found.field("a").type == pa.int64()


def test_up_to_draft_7_nothing_beside_a_reference_counts() -> None:
    schema = of({"$ref": "#/$defs/d", **Y}, **{"$defs": {"d": X}})
    for draft, names in (("http://json-schema.org/draft-07/schema#", ["x"]),
                         ("https://json-schema.org/draft/2020-12/schema", ["x", "y"])):  # fmt: skip
        found = read({"$schema": draft, **schema})
        assert [each.name for each in found.field("a").type] == names


def test_a_reference_needs_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "find_spec", lambda name: None)
    assert read(of(INTEGER, **{"$id": BASE})) == pa.struct([("a", pa.int64())])
    with pytest.raises(ConfigurationError, match="Install this package with its extra 'json'"):
        read(of({"$ref": "#/$defs/d"}, **{"$defs": {"d": X}}))


@pytest.mark.parametrize(
    "schema",
    [
        {"$id": 5}, {"$schema": 5}, {"$defs": [5]}, {"$defs": {"d": 5}}, {"properties": {"b": 5}},
        {"$defs": {"d": {"$id": "http://[x"}}}, {"$anchor": 5}, {"allOf": 5}, {"items": "x"},
        {"$id": "http://[x"}, {"$defs": {"d": {"$id": [1]}}},
    ],
    ids=repr,
)  # fmt: skip
def test_documents_that_are_no_schemas(schema: dict[str, Any]) -> None:
    properties = {"a": {"$ref": "q.json"}, **schema.get("properties", {})}
    with pytest.raises(SchemaError):
        read({**schema, "properties": properties}, name=schema)


def test_nothing_is_fetched() -> None:
    with pytest.raises(SchemaError, match="leads nowhere"):
        read(of({"$ref": "http://127.0.0.1:9/x.json"}))
    with pytest.raises(SchemaError, match="leads nowhere"):
        read(of({"$ref": "http://json-schema.org/draft-07/schema#"}))


def test_chains_without_bound() -> None:
    chain: dict[str, Any] = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(3_000)}
    with pytest.raises(SchemaError, match="a chain of more than 100 references"):
        read(of({"$ref": "#/$defs/d0"}, **{"$defs": {**chain, "d3000": INTEGER}}))
    with pytest.raises(SchemaError, match="1001 references"):
        read({}, **{f"r{n}": {} for n in range(1_001)})
    groups = [{"anyOf": [{**X, "required": [f"{n}"]}, {**Y, "required": ["y"]}]} for n in range(30)]
    with pytest.raises(SchemaError, match="more than 1000 choices"):
        read({"allOf": groups})


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
