"""Schemas from JSON, and errors with the path of the fault."""

import itertools
import json
from typing import Any

import pytest

from spark_kafka_source.values import SchemaError
from spark_kafka_source.values.avro import ReaderSchema, parse_schema
from spark_kafka_source.values.avro.parse import MAX_DEPTH, MAX_NAMES
from spark_kafka_source.values.avro.schema import (
    ArrayType,
    EnumType,
    Field,
    Kind,
    Primitive,
    RecordType,
    Reference,
)
from tests.values.avro_oracle import program

INT = Primitive(Kind.INT)


def parsed(schema: Any, *references: Any) -> Any:
    return parse_schema(json.dumps(schema), map(json.dumps, references))


def record(*fields: Any, name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": fields, **more}


def test_names_are_full_and_namespaces_are_passed_on() -> None:
    inner = {"name": "a", "type": {"type": "enum", "name": "E", "symbols": ["X"], "aliases": ["F"]}}
    again = {"name": "b", "type": {"type": "array", "items": "E"}, "aliases": ["c"], "default": []}
    schema = parsed(record(inner, again, name="n.s.R", namespace="other"))
    assert schema.type == Reference("n.s.R")
    assert schema.named["n.s.E"] == EnumType("n.s.E", ("X",), None, ("n.s.F",))
    assert schema.named["n.s.R"] == RecordType(
        "n.s.R",
        (
            Field("a", Reference("n.s.E")),
            Field("b", ArrayType(Reference("n.s.E")), [], ("c",)),
        ),
    )


def test_references_are_parsed_before() -> None:
    one = {"type": "fixed", "name": "x.One", "size": 1}
    two = record({"name": "one", "type": "x.One"}, name="y.Two")
    schema = parsed(record({"name": "two", "type": "y.Two"}), one, two)
    assert str(ReaderSchema.of(schema).arrow_type) == "struct<two: struct<one: binary>>"
    with pytest.raises(SchemaError, match=r"at two: there is no type 'y\.Two'"):
        parsed(record({"name": "two", "type": "y.Two"}), one)
    with pytest.raises(SchemaError, match=r"there is no type 'y\.Two'"):
        parsed("x.One", record({"name": "two", "type": "y.Two"}, name="x.One"), two)  # a cycle


def test_a_type_within_type() -> None:
    assert parsed({"type": {"type": "int"}}).type == INT


DEEP: Any = "int"
for _ in range(MAX_DEPTH + 1):
    DEEP = {"type": "array", "items": DEEP}
WIDE = {"type": "enum", "name": "E", "symbols": [f"S{n}" for n in range(MAX_NAMES + 1)]}

REFUSED: list[tuple[Any, str]] = [
    (5, "at the top: 5 is no type. A type is a name"),
    ({"name": "x"}, "is no type"),
    ("unknown", "there is no type 'unknown'. Define it before"),
    ([], "an empty union"),
    (["int", ["null"]], "a union in a union"),
    (["int", "int"], "a union with 'int' twice"),
    ({"type": "array"}, "has no 'items'"),
    ({"type": "map"}, "has no 'values'"),
    ({"type": "fixed", "name": "F", "size": -1}, "fixed F has a size of -1"),
    ({"type": "fixed", "name": "F", "size": True}, "fixed F has a size of True"),
    ({"type": "fixed", "name": "F", "size": 1 << 40}, "It has a size from 0 to"),
    ({"type": "enum", "name": "E", "symbols": ["A", "A"]}, "enum E has a symbol twice"),
    ({"type": "enum", "name": "E", "symbols": ["A b"]}, "the name 'A b'"),
    ({"type": "enum", "name": "E", "symbols": "A"}, "the symbols 'A'"),
    ({"type": "enum", "name": "E", "symbols": ["A"], "default": "B"}, "the default 'B'"),
    ({"type": "record", "name": "R", "fields": {}}, "the fields of R are no list"),
    (record(5), "5 is no field"),
    (record({"name": "a"}), "has no 'type'"),
    (record({"name": "", "type": "int"}), "the name ''"),
    (record({"name": "1a", "type": "int"}), "the name '1a'"),
    (record({"name": "a", "type": "x"}), "at a: there is no type 'x'"),
    (record({"name": "a", "type": "int"}, {"name": "a", "type": "int"}), "R has 'a' twice"),
    (record({"name": "a", "type": record(name="R")}), "at a: 'R' is defined twice"),
    (record(name="int"), "'int' is defined twice"),
    (record(name="a" * 2000), "the name 'aaa"),
    (DEEP, "nested too deeply"),
    (WIDE, f"more than {MAX_NAMES} names"),
]


@pytest.mark.parametrize(("schema", "message"), REFUSED)
def test_what_is_refused(schema: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message) as caught:
        parsed(schema)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "1" * 5000, "x", '"int"x'])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(SchemaError):
        parse_schema(text)


def test_few_types_do_not_become_many_columns() -> None:
    named = [record({"name": "x", "type": "int"}, name="T0")]
    for number in range(1, 40):
        last = f"T{number - 1}"
        fields = [{"name": "a", "type": last}, {"name": "b", "type": last}]
        named.append(record(*fields, name=f"T{number}"))
    schema = parsed("T39", *named)
    with pytest.raises(SchemaError, match="more than 10000 columns"):
        ReaderSchema.of(schema)


def test_types_are_deep_by_their_names_too() -> None:
    named = [record({"name": "x", "type": "int"}, name="T0")]
    for number in range(1, MAX_DEPTH + 1):
        inner = {"type": "array", "items": f"T{number - 1}"}
        named.append(record({"name": "a", "type": inner}, name=f"T{number}"))
    deepest = MAX_DEPTH // 2 - 1
    assert parsed(f"T{deepest}", *named[: deepest + 1]).type == Reference(f"T{deepest}")
    with pytest.raises(SchemaError, match=rf"record T{deepest + 1} is nested too deeply"):
        parsed(f"T{deepest + 1}", *named[: deepest + 2])


def test_branches_within_branches_are_not_tried_for_ever() -> None:
    numbers = itertools.count()

    def union(depth: int, leaf: str) -> Any:
        return [
            record(
                {"name": "v", "type": union(depth - 1, leaf) if depth else leaf},
                name=f"R{next(numbers)}",
            )
            for _ in range(6)
        ]

    with pytest.raises(SchemaError, match="more than 100000 types to try as another"):
        program(union(3, "string"), union(3, "int"))


def test_decimals_beyond_what_spark_has_are_refused() -> None:
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 50, "scale": 2}
    schema = parsed(record({"name": "v", "type": kind}))
    with pytest.raises(SchemaError, match=r"at v: .*Spark has decimals of up to 38 digits"):
        ReaderSchema.of(schema)
