"""Options of `from_json`, `to_json` and `schema_of_json`, beside Spark's own functions."""

import json
import pickle
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.typed import TypedConfig, TypedWriteConfig, plan_writes
from spark_kafka_source.typed.reading import plan_columns
from spark_kafka_source.values import SchemaText, SchemaType, decode_column
from spark_kafka_source.values.ddl import from_ddl, to_ddl
from spark_kafka_source.values.json import JsonReader, JsonWriter, infer
from spark_kafka_source.values.typing import JsonTyping

_JSON = SchemaText(SchemaType.JSON, "")
OPTIONS = {
    "allowNonNumericNumbers": "allow_non_numeric_numbers",
    "allowUnquotedControlChars": "allow_unquoted_control_chars",
    "ignoreNullFields": "ignore_null_fields",
    "primitivesAsString": "primitives_as_string",
    "prefersDecimal": "prefers_decimal",
    "dropFieldIfAllNull": "drop_field_if_all_null",
}


def typing(options: Mapping[str, bool]) -> JsonTyping:
    return JsonTyping(**{OPTIONS[name]: value for name, value in options.items()})


READ: list[tuple[str, str, dict[str, bool], Any]] = [
    # The type of `a`, its text, options, and the value; `BAD` for a bad row.
    ("DOUBLE", "NaN", {}, "nan"),
    ("DOUBLE", "NaN", {"allowNonNumericNumbers": False}, "BAD"),
    ("DOUBLE", '"Infinity"', {}, "inf"),
    ("DOUBLE", '"Infinity"', {"allowNonNumericNumbers": False}, "BAD"),
    ("DOUBLE", "-Infinity", {"allowNonNumericNumbers": False}, "BAD"),
    ("DOUBLE", "1.5", {"allowNonNumericNumbers": False}, "1.5"),
    ("STRING", '"NaN"', {"allowNonNumericNumbers": False}, "NaN"),
    ("STRING", '"x\ny"', {}, "BAD"),
    ("STRING", '"x\ny"', {"allowUnquotedControlChars": True}, "x\ny"),
    ("STRING", '{"z":"x\ty"}', {"allowUnquotedControlChars": True}, None),
    ("INT", "1", {"allowUnquotedControlChars": True}, "1"),
]


@pytest.mark.parametrize(("ddl", "text", "options", "wanted"), READ, ids=str)
def test_what_is_read(ddl: str, text: str, options: dict[str, bool], wanted: Any) -> None:
    reader = JsonReader(from_ddl(f"a {ddl}"), None, None, typing(options))
    # So many rows would be read together.
    rows = pa.array([f'{{"a":{text}}}'.encode()] * 100)
    for each in (reader, pickle.loads(pickle.dumps(reader))):
        found = decode_column(each, rows, _JSON)
        assert len(set(found.status.tolist())) == 1
        value = found.array[0].as_py()
        assert ("BAD" if value is None else str(value["a"])) == (wanted or text)


@pytest.mark.spark
def test_spark_reads_the_same(spark: SparkSession) -> None:
    for ddl, text, options, wanted in READ:
        if wanted is None:
            continue  # Spark writes an object anew, where it is a string here.
        row = spark.createDataFrame([(f'{{"a":{text}}}',)], "t STRING")
        given = ", ".join(f"'{name}', '{str(value).lower()}'" for name, value in options.items())
        call = f"from_json(t, 'a {ddl}'{f', map({given})' if given else ''}).a"
        (found,) = row.selectExpr(f"CAST({call} AS STRING) AS a").collect()[0]
        names = {"nan": "NaN", "inf": "Infinity"}
        assert (found or "BAD") == names.get(wanted, wanted), (ddl, text, options)


INFERRED: list[tuple[list[str], dict[str, bool], str]] = [
    (['{"a":1,"b":true,"c":"x","d":[1.5]}'], {"primitivesAsString": True},
     "a STRING, b STRING, c STRING, d ARRAY<STRING>"),
    (['{"a":1.50}'], {}, "a DOUBLE"),
    (['{"a":1.50}'], {"prefersDecimal": True}, "a DECIMAL(3, 2)"),
    (['{"a":0.05}'], {"prefersDecimal": True}, "a DECIMAL(2, 2)"),
    (['{"a":1.5}', '{"a":100.25}'], {"prefersDecimal": True}, "a DECIMAL(5, 2)"),
    (['{"a":1.5}', '{"a":7}'], {"prefersDecimal": True}, "a DECIMAL(21, 1)"),
    ([f'{{"a":0.{"1" * 39}}}'], {"prefersDecimal": True}, "a DOUBLE"),
    (['{"a":1,"b":null,"c":[],"d":{"e":null}}'], {"dropFieldIfAllNull": True}, "a BIGINT"),
    (['{"b":null}', '{"a":1,"b":"x"}'], {"dropFieldIfAllNull": True}, "a BIGINT, b STRING"),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "options", "ddl"), INFERRED, ids=str)
def test_what_is_inferred(rows: list[str], options: dict[str, bool], ddl: str) -> None:
    assert to_ddl(infer((each.encode() for each in rows), typing(options))) == ddl


def test_numbers_without_a_decimal_are_double() -> None:
    rows = [b'{"a":NaN,"b":1e400,"c":1e99999999999999999999}']
    ddl = to_ddl(infer(rows, typing({"prefersDecimal": True})))
    assert ddl == "a DOUBLE, b DOUBLE, c DOUBLE"


@pytest.mark.spark
def test_spark_infers_the_same(spark: SparkSession) -> None:
    for rows, options, ddl in INFERRED:
        texts = spark.sparkContext.parallelize(rows)
        found = spark.read.options(**options).json(texts).schema
        wanted = spark.createDataFrame([], ddl).schema
        assert found == wanted, rows


WRITTEN = [
    ("a INT, b STRING", {"a": 1, "b": None}, '{"a":1,"b":null}'),
    ("a STRUCT<x: INT, y: INT>", {"a": {"x": None, "y": 1}}, '{"a":{"x":null,"y":1}}'),
    ("a ARRAY<STRUCT<x: INT>>", {"a": [{"x": None}, None]}, '{"a":[{"x":null},null]}'),
    ("a MAP<STRING, INT>", {"a": None}, '{"a":null}'),
]
NULLS = JsonTyping(ignore_null_fields=False)


@pytest.mark.parametrize(("ddl", "row", "wanted"), WRITTEN, ids=str)
def test_null_fields_are_written(ddl: str, row: Any, wanted: str) -> None:
    kind = from_ddl(ddl)
    nullable = {"type": "object", "properties": {name: {} for name in row}}
    for schema in (
        None,
        SchemaText(SchemaType.JSON, ddl),
        SchemaText(SchemaType.JSON, json.dumps(nullable)),
    ):
        writer = JsonWriter(schema, kind, (), None, NULLS)
        for each in (writer, pickle.loads(pickle.dumps(writer))):
            assert each.encode(pa.array([row], kind), b"").to_pylist() == [wanted.encode()]
            if schema is None or schema.text == ddl:
                assert each.one(row) == wanted.encode()


@pytest.mark.spark
def test_spark_writes_the_same(spark: SparkSession) -> None:
    for ddl, row, wanted in WRITTEN:
        frame = spark.createDataFrame([(row,)], f"s STRUCT<{ddl}>")
        (found,) = frame.selectExpr("to_json(s, map('ignoreNullFields', 'false'))").collect()[0]
        assert found == wanted


def test_nulls_are_written_where_the_schema_has_them() -> None:
    schema = {"properties": {"a": {"type": ["integer", "null"]}, "b": {"type": "integer"}}}
    writer = JsonWriter(SchemaText(SchemaType.JSON, json.dumps(schema)), None, (), None, NULLS)
    kind = from_ddl("a INT, b INT")
    assert writer.encode(pa.array([{"a": None, "b": None}], kind), b"").to_pylist() == [
        b'{"a":null}'
    ]
    assert writer.one({"a": None, "b": None}) == b'{"a":null}'


def test_what_a_dataframe_lacks_is_null_in_ddl() -> None:
    writer = JsonWriter(SchemaText(SchemaType.JSON, "a INT, b INT"), None, (), None, NULLS)
    assert writer.encode(pa.array([{"a": 1}], from_ddl("a INT")), b"").to_pylist() == [
        b'{"a":1,"b":null}'
    ]
    assert writer.one({"a": 1}) == b'{"a":1,"b":null}'


def test_the_options_are_spark_s_own_in_any_case() -> None:
    options = {"value.format": "json", "value.schema": "a DOUBLE"}
    given = {**options, "value.allownonnumericnumbers": "false"}
    columns = plan_columns(TypedConfig.from_settings(Settings(given)), ("value",), lambda: [])
    found = decode_column(columns.parts["value"].reader, pa.array([b'{"a":NaN}']), _JSON)
    assert found.status[0]
    config = TypedWriteConfig.from_settings(
        Settings({**options, "value.ignorenullfields": "false"})
    )
    write = plan_writes(config, {"value": from_ddl("a DOUBLE")}, "t")["value"]
    assert write.one({"a": None}) == b'{"a":null}'
    avro = {"value.format": "avro", "value.schema": "{}", "value.ignorenullfields": "true"}
    with pytest.raises(ConfigurationError, match=r"'value\.ignoreNullFields'.*has no effect"):
        TypedConfig.from_settings(Settings(avro))
