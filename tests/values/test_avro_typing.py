"""Options of Spark's `from_avro`: types within themselves, and the names of a union's members."""

import json
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_kafka_source.values import (
    Encoded,
    RecursiveTypeError,
    SchemaError,
    SchemaText,
    SchemaType,
)
from spark_kafka_source.values.avro import AvroReader, AvroWriter, ReaderSchema, parse_schema
from spark_kafka_source.values.ddl import to_ddl
from spark_kafka_source.values.typing import AvroTyping
from tests.values.avro_oracle import laid, written
from tests.values.test_avro_cases import array, record
from tools.value_parity.answers import Spark


def node(**fields: Any) -> dict[str, Any]:
    return record(("v", "int"), *fields.items(), name="N")


LIST = node(next=["null", "N"])
RECURSIVE = {
    "list": LIST,
    "array": node(kids=array("N")),
    "map": node(kids={"type": "map", "values": "N"}),
    "union": node(u=["null", "int", "N", "string"]),
    "nothing else": record(("next", ["null", "N"]), name="N"),
}
UNION = [
    "null", "int", {"type": "long", "logicalType": "timestamp-millis"}, "string",
    {"type": "record", "name": "ns.Foo", "fields": [{"name": "a", "type": "int"}]},
    {"type": "enum", "name": "Bar", "symbols": ["A"]}, {"type": "fixed", "name": "Fx", "size": 2},
    array("int"), {"type": "map", "values": "int"}, "bytes", "boolean", "float",
]  # fmt: skip
MEMBERS = record(("u", UNION))


def type_of(schema: Any, **typing: Any) -> pa.DataType:
    return ReaderSchema.of(parse_schema(json.dumps(schema)), typing=AvroTyping(**typing)).arrow_type


@pytest.mark.spark
def test_columns_are_those_of_spark(spark: SparkSession) -> None:
    Spark(spark)  # It adds Spark's own jar.
    for schema in (*RECURSIVE.values(), MEMBERS):
        for depth in (1, 2, 3, 15):
            for stable, prefix in ((False, "member_"), (True, "member_"), (True, "of_")):
                typing = (stable, prefix, depth)
                wanted = to_sql_type(spark, schema, typing)
                found = type_of(
                    schema,
                    recursive_field_max_depth=depth,
                    enable_stable_identifiers_for_union_type=stable,
                    stable_identifier_prefix_for_union_type=prefix,
                )
                assert simple(found) == wanted, (schema, typing)


def to_sql_type(spark: SparkSession, schema: Any, typing: tuple[bool, str, int]) -> str:
    """Return the type that Spark makes of an Avro schema. It is case-sensitive."""
    jvm: Any = spark._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    converters = loader.loadClass("org.apache.spark.sql.avro.SchemaConverters$")
    parsed = jvm.org.apache.avro.Schema.Parser().parse(json.dumps(schema))
    found = converters.getField("MODULE$").get(None).toSqlType(parsed, *typing)
    text: str = found.dataType().catalogString()
    return text


def simple(kind: pa.DataType) -> str:
    """Return the name of a type as Spark writes it."""
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{each.name}:{simple(each.type)}' for each in kind)}>"
    if pa.types.is_list(kind):
        return f"array<{simple(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<string,{simple(kind.item_type)}>"
    return to_ddl(kind).lower()


def decoded(schema: Any, values: list[Any], **typing: Any) -> list[Any]:
    text = SchemaText(SchemaType.AVRO, json.dumps(schema))
    reader = AvroReader(text, typing=AvroTyping(**typing))
    found = reader.decode([reader.program(text)], Encoded(*laid(written(schema, values))))
    found.array.validate(full=True)
    assert not found.status.any()
    rows: list[Any] = found.array.to_pylist()
    return rows


def chain(*values: int) -> Any:
    first, *others = values
    return {"v": first, "next": chain(*others) if others else None}


def test_a_list_ends_where_its_columns_end() -> None:
    values = [chain(1), chain(1, 2), chain(1, 2, 3), chain(1, 2, 3, 4)]
    assert decoded(LIST, values, recursive_field_max_depth=2) == [
        {"v": 1, "next": None},
        *[{"v": 1, "next": {"v": 2}}] * 3,
    ]


def test_a_value_of_a_member_without_a_column_is_null() -> None:
    inner = {"v": 5, "u": "x"}
    values = [{"v": 1, "u": 7}, {"v": 2, "u": inner}, {"v": 3, "u": "y"}, {"v": 4, "u": None}]
    assert decoded(RECURSIVE["union"], values, recursive_field_max_depth=1) == [
        {"v": 1, "u": {"member0": 7, "member2": None}},
        {"v": 2, "u": None},
        {"v": 3, "u": {"member0": None, "member2": "y"}},
        {"v": 4, "u": None},
    ]


def test_a_type_within_itself_is_refused_by_default_and_the_option_is_named() -> None:
    with pytest.raises(RecursiveTypeError, match=r"at next: .*'value.recursiveFieldMaxDepth'"):
        type_of(LIST)


def test_two_members_of_one_name_are_refused() -> None:
    twice = record(("u", ["int", record(name="a.Foo"), record(name="b.foo")]))
    with pytest.raises(SchemaError, match="two members of a union would be 'member_Foo'"):
        type_of(twice, enable_stable_identifiers_for_union_type=True)


def test_members_are_written_by_the_names_by_which_they_are_read() -> None:
    schema = SchemaText(SchemaType.AVRO, json.dumps(MEMBERS))
    typing = AvroTyping(enable_stable_identifiers_for_union_type=True)
    by = AvroWriter(schema, typing=typing)
    value = {"u": {"member_Foo": {"a": 1}}}
    data = by.one(value)
    rows = pa.array([value], by.arrow_type)
    assert by.encode(rows, b"").to_pylist() == [data]
    assert data == AvroWriter(schema).one({"u": {"member3": {"a": 1}}})


def test_a_value_within_itself_can_be_written() -> None:
    """The type of a column ends somewhere, and so does a dict."""
    by = AvroWriter(SchemaText(SchemaType.AVRO, json.dumps(LIST)))
    kind = pa.struct([("v", pa.int32()), ("next", pa.struct([("v", pa.int32())]))])
    value = {"v": 1, "next": {"v": 2}}
    assert by.encode(pa.array([value], kind), b"").to_pylist() == [by.one(value)]
    assert by.one(chain(*range(30))) == written(LIST, [chain(*range(30))])[0]


def test_a_number_and_a_time_are_two_members() -> None:
    """Else 5 would read as a time. Spark makes one bigint of them, so that a time is a number."""
    schema = record(("u", ["int", {"type": "long", "logicalType": "timestamp-millis"}]))
    assert [each.name for each in type_of(schema).field("u").type] == ["member0", "member1"]
    number, time = decoded(schema, [{"u": 5}, {"u": 1 << 40}])
    assert number == {"u": {"member0": 5, "member1": None}}
    assert time["u"]["member1"].year == 2004
    assert type_of(record(("u", ["null", "int", "long"]))).field("u").type == pa.int64()
