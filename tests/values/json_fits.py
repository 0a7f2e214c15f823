"""JSON Schemas, and types of columns for them: most fit, and some do not."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from spark_kafka_source.values.ddl import TIMESTAMP, TIMESTAMP_NTZ, array_of

NAMES = ("a", "b", "c", "A", "x1", "x2")
_LEAVES: dict[str, list[pa.DataType]] = {
    "integer": [pa.int8(), pa.int64(), pa.uint32(), pa.uint64(), pa.decimal128(20, 0)],
    "number": [pa.float64(), pa.float32(), pa.int32(), pa.decimal128(10, 2), pa.float16()],
    "boolean": [pa.bool_()],
    "string": [pa.string(), pa.large_string()],
    "date": [pa.date32(), pa.string()],
    "date-time": [TIMESTAMP, pa.timestamp("us", "Europe/Berlin"), pa.string(), TIMESTAMP_NTZ],
    "base64": [pa.binary(), pa.string()],
    "null": [pa.null()],
}
ANY_LEAF = st.sampled_from(
    [*(each for kinds in _LEAVES.values() for each in kinds), pa.duration("s"), pa.time64("us")]
)


def _scalar() -> st.SearchStrategy[Any]:
    plain = st.sampled_from(["integer", "number", "boolean", "string", "null"])
    formats = st.sampled_from(
        [
            {"type": "string", "format": "date"},
            {"type": "string", "format": "date-time"},
            {"type": "string", "contentEncoding": "base64"},
            {"type": ["null", "string"], "format": "date-time"},
        ]
    )
    several = st.lists(plain, min_size=1, max_size=3, unique=True)
    typed = plain.map(lambda name: {"type": name}) | several.map(lambda names: {"type": names})
    return typed | typed | formats | st.sampled_from([{}, True, {"title": "x"}])


@st.composite
def objects(draw: Callable[..., Any], inner: st.SearchStrategy[Any]) -> dict[str, Any]:
    """Draw a schema of objects."""
    found: dict[str, Any] = {"type": draw(st.sampled_from(["object", ["object", "null"]]))}
    names = draw(st.lists(st.sampled_from(NAMES), max_size=4, unique_by=str.lower))
    if names:
        found["properties"] = {name: draw(inner) for name in names}
    if draw(st.booleans()):
        found["required"] = draw(st.lists(st.sampled_from([*names, "z"]), max_size=3, unique=True))
    match draw(st.integers(0, 5)):
        case 0:
            found["additionalProperties"] = False
        case 1:
            found["additionalProperties"] = draw(inner)
        case 2:
            found["patternProperties"] = {"^x": draw(inner)}
            found["additionalProperties"] = draw(st.booleans())
        case _:
            pass
    return found


def arrays(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    plain = st.builds(lambda items: {"type": "array", "items": items}, inner)
    tuples = st.builds(
        lambda prefix, items: {"type": "array", "prefixItems": prefix, "items": items},
        st.lists(inner, min_size=1, max_size=2),
        inner | st.just(False),
    )
    return plain | plain | tuples | st.just({"type": "array"})


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    two = st.lists(inner, min_size=1, max_size=2)
    null = inner.map(lambda each: {"anyOf": [{"type": "null"}, each]})
    return st.one_of(
        objects(inner),
        objects(inner),
        arrays(inner),
        null,
        two.map(lambda each: {"anyOf": each}),
        two.map(lambda each: {"allOf": each}),
    )


SCHEMAS = objects(st.recursive(_scalar(), _nested, max_leaves=5))
"""Schemas of objects: `oneOf` is not among them, since its members could fit at once."""


@st.composite
def kinds(draw: Callable[..., Any], schema: Any) -> pa.DataType:
    """Draw a type of columns for a schema. Most of its parts fit."""
    if not isinstance(schema, dict) or draw(st.integers(0, 30)) == 0:
        return draw(ANY_LEAF)
    for keyword in ("anyOf", "allOf"):
        if keyword in schema:
            return draw(kinds(draw(st.sampled_from(schema[keyword]))))
    names = schema.get("type", [])
    name = draw(st.sampled_from([names] if isinstance(names, str) else names or ["any"]))
    if name == "object" or (name == "null" and "object" in names):
        return draw(_of_object(schema))
    if name == "array":
        items = schema.get("items") or {}
        item = draw(kinds(draw(st.sampled_from([*schema.get("prefixItems", []), items]))))
        # A cast of lists of nulls, which the tests need, is broken in pyarrow.
        return array_of(pa.string() if pa.types.is_null(item) else item)
    name = schema.get("format", schema.get("contentEncoding", name))
    return draw(st.sampled_from(_LEAVES[name]) if name in _LEAVES else ANY_LEAF)


@st.composite
def _of_object(draw: Callable[..., Any], schema: dict[str, Any]) -> pa.DataType:
    properties = schema.get("properties", {})
    more = schema.get("additionalProperties", {})
    if not properties and draw(st.booleans()):
        inner = next(iter(schema.get("patternProperties", {}).values()), more)
        return pa.map_(pa.string(), draw(kinds(inner)))
    fields = [(name, draw(kinds(each))) for name, each in properties.items() if draw(_MOSTLY)]
    if not draw(_MOSTLY):
        name = draw(st.sampled_from(["A", "y", "x3"]))
        if name not in properties:
            fields.append((name, draw(kinds(more))))
    return pa.struct(draw(st.permutations(fields)))


_MOSTLY = st.sampled_from([True] * 7 + [False])
