"""JSON Schema, drafts 4 to 2020-12 as registries hold them, to Arrow types.

| JSON Schema | column |
|---|---|
| integer, number, boolean | BIGINT, DOUBLE, BOOLEAN |
| string; with format `date`, `date-time` | STRING; DATE, TIMESTAMP |
| string with contentEncoding `base64` | BINARY |
| several of these types; `enum` or `const` of several | DOUBLE for numbers, else STRING: the text |
| null, or no type given | STRING: the text |
| array | ARRAY; of STRING if `items` are not described; tuples of one type |
| object with `properties` | STRUCT of these; other properties are not read |
| object without | MAP of `additionalProperties` or one `patternProperties`, or else of STRING |
| `oneOf`, `anyOf` of one and null | that one |
| `allOf` | the common type of its members; for objects one STRUCT with the fields of all |
| `$ref` to `#`, `#/definitions/x`, `#/$defs/x`, to a reference's name or `$id` | the type there |

Keywords that only restrict values (`required`, `pattern`, `minimum`, `not`, `if`, ...) are ignored.
Every column is nullable. https://json-schema.org/specification
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from spark_kafka_source.values.ddl import TIMESTAMP, array_of
from spark_kafka_source.values.errors import RecursiveTypeError, SchemaError, quoted
from spark_kafka_source.values.json.types import within
from spark_kafka_source.values.schema_text import SchemaText

MAX_COLUMNS = 10_000
MAX_DEPTH = 100

_STRING = pa.string()
_SCALARS: Mapping[str, pa.DataType] = {
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "string": _STRING,
}
_NUMBERS = {pa.int64(), pa.float64()}
_FORMATS: Mapping[object, pa.DataType] = {"date": pa.date32(), "date-time": TIMESTAMP}
_DESCRIBES = {
    *("type", "properties", "additionalProperties", "patternProperties", "items", "prefixItems"),
    *("enum", "const", "$ref", "allOf", "oneOf", "anyOf", "format", "contentEncoding"),
}
"""The keywords that decide the column's type."""
_INSTEAD = "Give the schema as DDL, where a STRING keeps the text"

Node = Mapping[str, Any]


def arrow_type(schema: SchemaText) -> pa.DataType:
    """Return the type of the values that the schema describes.

    Raises `SchemaError` with the path of a part that cannot be a column, and `RecursiveTypeError`.
    """
    documents = {name: _document(text, name) for name, text in schema.references}
    for each in list(documents.values()):
        name = each.get("$id", each.get("id")) if isinstance(each, dict) else None
        if isinstance(name, str):
            documents.setdefault(name.rstrip("#"), each)
    return _Reading(documents).type(_document(schema.text, ""), "", "")


def _document(text: str, name: str) -> Any:
    """Parse a document. References have a name; the schema itself has an empty one."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        found = f"the reference {quoted(name)}" if name else "the schema"
        raise SchemaError("", f"{found} is not JSON", "Give a JSON Schema") from None


class _Reading:
    """Walk through the schema. `document` is the name of a node's document."""

    def __init__(self, documents: Mapping[str, Any]) -> None:
        self._documents = dict(documents)
        self._within = [("", "")]
        self._columns = self._depth = 0

    def type(self, node: Any, document: str, path: str) -> pa.DataType:
        """Return the type of a node. The first node is the whole schema."""
        self._documents.setdefault("", node)
        self._columns += 1
        self._depth += 1
        if self._columns > MAX_COLUMNS or self._depth > MAX_DEPTH:
            found = f"more than {MAX_COLUMNS} columns, or {MAX_DEPTH} within each other"
            raise SchemaError(path, found, _INSTEAD)
        kind = self._type(node, document, path)
        self._depth -= 1
        return kind

    def _type(self, node: Any, document: str, path: str) -> pa.DataType:
        if node is True:
            return _STRING
        if not isinstance(node, dict):
            raise SchemaError(path, f"{quoted(node)} describes no value", "Give a JSON Schema")
        kinds = list(self._said(node, document, path))
        return _all_of(kinds, path) if kinds else _STRING

    def _said(self, node: Node, document: str, path: str) -> Iterable[pa.DataType]:
        """Yield the type from each keyword of a node."""
        if "$ref" in node:
            yield self._reference(node["$ref"], document, path)
        for name in ("allOf", "oneOf", "anyOf"):
            members = node.get(name, [])
            if not isinstance(members, list):
                raise SchemaError(path, f"{name} is {quoted(members)}", "Give a list of schemas")
            found = [each for each in members if _describes(each) and not _is_null(each)]
            kinds = [self.type(each, document, path) for each in found]
            if kinds:
                yield _all_of(kinds, path) if name == "allOf" else _one_of(kinds, path)
        if "type" in node or node.keys() & {"properties", "items", "prefixItems"}:
            yield self._typed(node, document, path)
        elif "enum" in node or "const" in node:
            yield _of_values(node, path)
        elif node.keys() & {"format", "contentEncoding"}:
            yield _string(node)
        elif node.keys() & {"additionalProperties", "patternProperties"}:
            yield self._object(node, document, path)

    def _typed(self, node: Node, document: str, path: str) -> pa.DataType:
        given = node.get("type", "array" if "properties" not in node else "object")
        names = [name for name in (given if isinstance(given, list) else [given]) if name != "null"]
        if names == ["object"]:
            return self._object(node, document, path)
        if names == ["array"]:
            return self._array(node, document, path)
        kinds = [_string(node) if n == "string" else _SCALARS.get(str(n)) for n in names]
        if None in kinds:
            found = f"a value of type {', '.join(map(quoted, names))}"
            raise SchemaError(path, found, f"One type has one column. {_INSTEAD}")
        return _one_of(kinds, path) if kinds else _STRING

    def _object(self, node: Node, document: str, path: str) -> pa.DataType:
        properties = node.get("properties")
        if properties:
            if not isinstance(properties, dict):
                raise SchemaError(path, f"properties are {quoted(properties)}", "Give an object")
            names = properties.keys()
            types = (self.type(properties[n], document, within(path, n)) for n in names)
            return pa.struct(list(zip(names, types, strict=True)))
        patterns = node.get("patternProperties")
        of = list(patterns.values()) if isinstance(patterns, dict) else []
        more = node.get("additionalProperties", not of)
        of += [more] if more is not False else []
        if not of:
            return pa.struct([])
        kinds = [self.type(each, document, f"{path}{{}}") for each in of]
        return pa.map_(_STRING, _one_of(kinds, f"{path}{{}}"))

    def _array(self, node: Node, document: str, path: str) -> pa.DataType:
        inner = f"{path}[]"
        items = node.get("items", True)
        of = [*node.get("prefixItems", []), *(items if isinstance(items, list) else [])]
        if not of:
            of = [items]
        elif isinstance(items, dict):
            of.append(items)
        return array_of(_one_of([self.type(each, document, inner) for each in of], inner))

    def _reference(self, reference: Any, document: str, path: str) -> pa.DataType:
        if not isinstance(reference, str):
            raise SchemaError(path, f"$ref is {quoted(reference)}", "Give a text")
        name, _, pointer = reference.partition("#")
        place = (name or document, pointer)
        if place in self._within:
            raise RecursiveTypeError(path, f"{quoted(reference)} holds itself", _INSTEAD)
        self._within.append(place)
        kind = self.type(self._at(place, reference, path), place[0], path)
        self._within.pop()
        return kind

    def _at(self, place: tuple[str, str], reference: str, path: str) -> Any:
        """Return the node at a place: a document's name, and a pointer into it (RFC 6901)."""
        name, pointer = place
        node = self._documents.get(name)
        for part in pointer.split("/")[1:] if pointer else ():
            key = part.replace("~1", "/").replace("~0", "~")
            node = node.get(key) if isinstance(node, dict) else None
        if node is None or (pointer and pointer[0] != "/"):
            known = ", ".join(map(quoted, filter(None, self._documents))) or "none"
            expected = f"A $ref is to a place in this schema or its references, which are {known}"
            raise SchemaError(path, f"$ref {quoted(reference)} leads nowhere", expected)
        return node


def _describes(node: Any) -> bool:
    """Whether the node describes a type, and does not only restrict values."""
    return not isinstance(node, dict) or bool(node.keys() & _DESCRIBES)


def _is_null(node: Any) -> bool:
    return isinstance(node, dict) and (
        node.get("type") in ("null", ["null"])
        or node.get("enum") == [None]
        or ("const" in node and node["const"] is None)
    )


def _string(node: Node) -> pa.DataType:
    if node.get("contentEncoding") == "base64":
        return pa.binary()
    found = node.get("format")
    return _FORMATS.get(found, _STRING) if isinstance(found, str) else _STRING


def _of_values(node: Node, path: str) -> pa.DataType:
    values = node.get("enum", [node.get("const")])
    if not isinstance(values, list):
        raise SchemaError(path, f"enum is {quoted(values)}", "Give a list of values")
    kinds = [_of_value(each, path) for each in values if each is not None]
    return _one_of(kinds, path) if kinds else _STRING


def _of_value(value: Any, path: str) -> pa.DataType:
    kinds = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: _STRING}
    if type(value) not in kinds:
        raise SchemaError(path, f"the value {quoted(value)}", f"Values are scalars. {_INSTEAD}")
    return kinds[type(value)]


def _all_of(kinds: list[pa.DataType], path: str) -> pa.DataType:
    """Return the type that fits all: one common type, or a struct with the fields of all."""
    if not all(pa.types.is_struct(each) for each in kinds):
        first, *others = kinds
        if any(each != first for each in others):
            raise SchemaError(path, f"both {first} and {others[0]}", _INSTEAD)
        return first
    fields: dict[str, list[pa.DataType]] = {}
    for each in kinds:
        for field in each:
            fields.setdefault(field.name, []).append(field.type)
    return pa.struct([(name, _all_of(of, within(path, name))) for name, of in fields.items()])


def _one_of(kinds: list[pa.DataType], path: str) -> pa.DataType:
    """Return a type for any of these: one type, or for scalars a number or a text."""
    found = set(kinds)
    if len(found) == 1:
        return kinds[0]
    if found <= _NUMBERS:
        return pa.float64()
    if any(pa.types.is_nested(each) for each in found):
        shown = " or ".join(sorted({str(each) for each in found}))
        raise SchemaError(path, f"any of {quoted(shown)}", f"One type has one column. {_INSTEAD}")
    return _STRING
