"""Validation of JSON texts, read and written: by `jsonschema`, with the path and the reason."""

import datetime
import json
import pickle
from typing import Any

import pyarrow as pa
import pytest

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.records import UnencodableRowError
from spark_kafka_source.typed import TypedConfig, TypedWriteConfig, plan_writes
from spark_kafka_source.typed.reading import plan_columns
from spark_kafka_source.values import SchemaError, SchemaText, SchemaType, decode_column
from spark_kafka_source.values.json import (
    JsonReader,
    JsonWriter,
    Validation,
    arrow_type,
    validation,
)

LINE = {"type": "object", "properties": {"price": {"type": "number", "minimum": 0}}}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "integer", "maximum": 9},
        "kind": {"enum": ["a", "b"]},
        "name": {"type": "string", "pattern": "^[A-Z]"},
        "lines": {"type": "array", "items": LINE, "maxItems": 2},
    },
    "required": ["id"],
}
CASES = [
    ({"id": 1, "kind": "a", "name": "X", "lines": [{"price": 0}]}, None),
    ({"id": 10}, ("id", "10 is greater than the maximum of 9")),
    ({"id": 1, "kind": "c"}, ("kind", "'c' is not one of ['a', 'b']")),
    ({"id": 1, "name": "x"}, ("name", "'x' does not match '^[A-Z]'")),
    (
        {"id": 1, "lines": [{}, {"price": -1}]},
        ("lines[1].price", "-1 is less than the minimum of 0"),
    ),
    ({"kind": "a"}, ("", "'id' is a required property")),
]


def text(schema: Any, *references: tuple[str, Any]) -> SchemaText:
    texts = tuple((name, json.dumps(each)) for name, each in references)
    return SchemaText(SchemaType.JSON, json.dumps(schema), texts)


@pytest.mark.parametrize(("value", "wanted"), CASES, ids=str)
def test_a_text(value: Any, wanted: tuple[str, str] | None) -> None:
    assert Validation(text(SCHEMA)).invalid(json.dumps(value).encode()) == wanted


def test_records_that_are_not_valid_are_bad() -> None:
    reader = JsonReader(arrow_type(text(SCHEMA)), None, Validation(text(SCHEMA)))
    reader = pickle.loads(pickle.dumps(reader))
    rows = [None, *(json.dumps(value).encode() for value, _ in CASES), b"{", b'{"id":"x"}', b"null"]
    found = decode_column(reader, pa.array(rows, pa.binary()), SchemaText(SchemaType.JSON, ""))
    good = [0, 1]
    assert [row for row in range(len(rows)) if not found.status[row]] == good
    assert found.array.is_valid().to_pylist() == [row == 1 for row in range(len(rows))]
    reasons = [found.reason(row) for row in range(2, len(rows))]
    wanted = [": ".join(filter(None, each)) for _, each in CASES if each]
    assert reasons[:5] == wanted
    assert reasons[5:] == [
        "not JSON, or more than one JSON value",
        'id: a JSON value of another kind than the column: "x" is no BIGINT',
        "None is not of type 'object'",
    ]


def test_fields_that_are_not_read_are_validated() -> None:
    reader = JsonReader(arrow_type(text(SCHEMA)), ["id"], Validation(text(SCHEMA)))
    rows = pa.array([b'{"id":1}', b'{"id":2,"kind":"q"}'])
    found = decode_column(reader, rows, SchemaText(SchemaType.JSON, ""))
    assert found.array.to_pylist() == [{"id": 1}, None]


def test_rows_that_are_not_valid_are_not_written() -> None:
    writer = JsonWriter(text(SCHEMA), None, (), Validation(text(SCHEMA)))
    kind = arrow_type(text(SCHEMA))
    writer.fit(kind)
    assert writer.encode(pa.array([{"id": 1, "kind": "a"}], kind), b"\0") == pa.array(
        [b'\0{"id":1,"kind":"a"}']
    )
    rows = pa.array([{"id": 1}, {"id": 2, "kind": "c"}, {"id": 3, "lines": [{"price": -1}]}], kind)
    with pytest.raises(UnencodableRowError, match="kind: 'c' is not one of") as failed:
        writer.encode(rows, b"")
    assert failed.value.rows == (1, 2)
    assert pickle.loads(pickle.dumps(writer)).one({"id": 1}) == b'{"id":1}'
    with pytest.raises(UnencodableRowError, match="id: 10 is greater"):
        writer.one({"id": 10})


def test_references_are_followed() -> None:
    schema = {
        "$id": "http://example.com/s/order.json",
        "properties": {"a": {"$ref": "line.json"}, "b": {"$ref": "http://example.com/l#/$defs/n"}},
    }
    others = (("line.json", LINE), ("l", {"$id": "http://example.com/l", "$defs": {"n": LINE}}))
    by = Validation(text(schema, *others))
    by.check()
    assert by.invalid(b'{"a":{"price":1},"b":{}}') is None
    for name in "ab":
        invalid = by.invalid(json.dumps({name: {"price": -1}}).encode())
        assert invalid is not None
        assert invalid.path == f"{name}.price"


def test_nothing_is_fetched() -> None:
    by = Validation(text({"not": {"$ref": "http://127.0.0.1:9/x.json"}}))
    with pytest.raises(ConfigurationError, match=r"'value\.validate'.*leads nowhere"):
        by.invalid(b"1")


def test_a_schema_that_is_not_valid_itself() -> None:
    with pytest.raises(SchemaError, match=r"at properties\.a\.minimum: .*'x' is not of type"):
        Validation(text({"properties": {"a": {"minimum": "x"}}})).check()


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[" * 100_000, b"{}{}"])
def test_texts_that_are_not_json(data: bytes) -> None:
    found = Validation(text({})).invalid(data)
    assert found is not None
    assert found.reason in ("not JSON", "values nested too deeply")


def test_values_that_are_deep() -> None:
    schema = {"properties": {"a": {"$ref": "#"}}, "additionalProperties": False}
    deep = b'{"a":' * 400 + b"{}" + b"}" * 400
    assert Validation(text(schema)).invalid(deep) in (None, ("", "values nested too deeply"))


# -- the option ------------------------------------------------------------------------------------

OPTIONS = {"value.format": "json", "value.schema": json.dumps(SCHEMA), "value.validate": "true"}


def test_the_option_reads_and_writes_by_the_schema() -> None:
    columns = plan_columns(TypedConfig.from_settings(Settings(OPTIONS)), ("value",), lambda: [])
    reader = columns.parts["value"].reader
    found = decode_column(reader, pa.array([b'{"id":10}']), SchemaText(SchemaType.JSON, ""))
    assert found.reason(0) == "id: 10 is greater than the maximum of 9"
    config = TypedWriteConfig.from_settings(Settings(OPTIONS))
    for kind in (pa.struct([("id", pa.int64())]), None):
        write = plan_writes(config, {"value": kind}, "t")["value"]
        with pytest.raises(UnencodableRowError, match=r"id: 10 is greater than the maximum of 9"):
            write.one({"id": 10})


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"value.schema": "id INT"}, "'value.validate': is 'true', and there is no JSON Schema"),
        ({"value.schema": ""}, "is 'true', and there is no JSON Schema"),
        ({"value.format": "avro"}, "'value.validate': is only for JSON"),
        ({"value.format": "string", "value.schema": ""}, "has no effect"),
        ({"value.schema": '{"type":"object","minimum":"x"}'}, "it is no schema by"),
        ({"value.validate": "perhaps"}, "Give 'true' or 'false'"),
    ],
)
def test_where_the_option_cannot_be_used(more: dict[str, str], reason: str) -> None:
    options = {name: each for name, each in (OPTIONS | more).items() if each}
    with pytest.raises(ConfigurationError, match=reason):
        plan_writes(
            TypedWriteConfig.from_settings(Settings(options)),
            {"value": pa.struct([("id", pa.int64())])},
            "t",
        )
        # Options of other formats are refused by both.
        TypedConfig.from_settings(Settings(options))


def test_the_option_takes_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "find_spec", lambda name: None)
    config = TypedConfig.from_settings(Settings(OPTIONS))
    with pytest.raises(ConfigurationError, match="Install this package with its extra 'json'"):
        plan_columns(config, ("value",), lambda: [])


def test_formats_are_no_part_of_it() -> None:
    schema = {"properties": {"a": {"type": "string", "format": "email"}}}
    assert Validation(text(schema)).invalid(b'{"a":"x"}') is None
    at = {"properties": {"a": {"type": "string", "format": "date-time"}}}
    writer = JsonWriter(text(at), None, (), Validation(text(at)))
    moment = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    assert writer.one({"a": moment}) == b'{"a":"2026-01-01T00:00:00.000000Z"}'


DRAFTS = [f"http://json-schema.org/draft-0{number}/schema#" for number in (4, 6, 7)]
DRAFTS += [f"https://json-schema.org/draft/{name}/schema" for name in ("2019-09", "2020-12")]


@pytest.mark.parametrize(
    ("of", "text_of_value", "is_valid"),
    [
        (0.01, "19.99", True), (0.01, "4.35", True), (0.01, "19.995", False), (0.1, "0.3", True),
        (0.01, "1e300", True), (1e-300, "1e308", True), (1e-5, "0.00012", True), (3, "9", True),
        (3, "9.0", True), (3, "10", False), (0.5, "10", True), (0.01, "1e400", False),
        (0.01, "NaN", False), (2, "9" * 400 + "8", True), (0.01, "true", True),
        (0.0001, "1.00005", False), (0.01, '"x"', True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("draft", ["", *DRAFTS])
def test_multiples_are_exact(draft: str, of: float, text_of_value: str, *, is_valid: bool) -> None:
    schema: dict[str, Any] = {"$schema": draft} if draft else {}
    schema["properties"] = {"a": {"multipleOf": of}, "b": {"$ref": "#"}}
    found = pickle.loads(pickle.dumps(Validation(text(schema))))
    for before, behind in [('{"a":', "}"), ('{"b":{"b":{"a":', "}}}")]:
        invalid = found.invalid(f"{before}{text_of_value}{behind}".encode())
        assert (invalid is None) == is_valid
        if invalid is not None:
            assert invalid.path == ("a" if before == '{"a":' else "b.b.a")
            assert f"is not a multiple of {of}" in invalid.reason


def test_multiples_of_a_reference_are_exact() -> None:
    other = {"$schema": DRAFTS[2], "properties": {"p": {"multipleOf": 0.01}}}
    schema = {"$schema": DRAFTS[-1], "$ref": "other.json"}
    by = Validation(text(schema, ("other.json", other)))
    assert by.invalid(b'{"p":19.99}') is None
    assert by.invalid(b'{"p":19.995}') == ("p", "19.995 is not a multiple of 0.01")


def test_multiples_are_exact_in_what_is_read_and_written() -> None:
    schema = {"properties": {"a": {"type": "number", "multipleOf": 0.01}}}
    by = JsonWriter(text(schema), None, (), Validation(text(schema)))
    assert by.one({"a": 19.99}) == b'{"a":19.99}'
    reader = JsonReader(arrow_type(text(schema)), None, Validation(text(schema)))
    found = decode_column(reader, pa.array([b'{"a":19.99}']), SchemaText(SchemaType.JSON, ""))
    assert found.array.to_pylist() == [{"a": 19.99}]
