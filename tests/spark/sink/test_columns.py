"""The written columns, and the refused schemas: as in Spark's own connector."""

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.producer import UnknownColumnError
from spark_kafka_source.records import ColumnTypeError
from spark_kafka_source.spark.sink.columns import MissingColumnError, SinkColumns
from tests.spark.settings import shipped

STRING, BINARY, INT, TIMESTAMP = StringType(), BinaryType(), IntegerType(), TimestampType()


def schema(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


def headers(**fields: DataType) -> ArrayType:
    return ArrayType(schema(**fields))


HEADERS = headers(key=STRING, value=BINARY)
OF_HEADERS = "array<struct<key:string,value:binary>>"


def test_the_columns_that_are_written() -> None:
    every = schema(
        other=INT,
        timestamp=TIMESTAMP,
        headers=HEADERS,
        key=STRING,
        partition=INT,
        topic=STRING,
        value=BINARY,
    )
    assert SinkColumns.of(every, None).places == {
        "topic": 5, "key": 3, "value": 6, "headers": 2, "partition": 4, "timestamp": 1,
    }  # fmt: skip
    assert SinkColumns.of(schema(value=STRING), "t").places == {"value": 0}


def test_the_option_goes_before_the_column_whatever_its_type() -> None:
    assert SinkColumns.of(schema(topic=INT, value=STRING), "t").places == {"value": 1}


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("topic", INT, "string"),
        ("topic", BINARY, "string"),
        ("key", INT, "string or binary"),
        ("key", NullType(), "string or binary"),
        ("value", INT, "string or binary"),
        ("value", ArrayType(BINARY), "string or binary"),
        ("value", schema(a=STRING), "string or binary"),
        ("partition", LongType(), "int"),
        ("partition", STRING, "int"),
        ("timestamp", TimestampNTZType(), "timestamp"),
        ("timestamp", LongType(), "timestamp"),
        ("headers", MapType(STRING, BINARY), OF_HEADERS),
        ("headers", ArrayType(STRING), OF_HEADERS),
        ("headers", headers(key=STRING, value=STRING), OF_HEADERS),
        ("headers", headers(value=BINARY, key=STRING), OF_HEADERS),
        ("headers", headers(key=STRING, value=BINARY, more=INT), OF_HEADERS),
        ("headers", headers(name=STRING, value=BINARY), OF_HEADERS),
    ],
    ids=lambda each: each.simpleString() if isinstance(each, DataType) else None,
)
def test_a_column_of_another_type_is_refused(name: str, kind: DataType, expected: str) -> None:
    found = schema(**{"topic": STRING, "value": STRING, name: kind})
    with pytest.raises(ColumnTypeError) as refused:
        SinkColumns.of(found, None)
    text = f"Column '{name}' is of the type {kind.simpleString()}; it must be {expected}"
    assert str(refused.value) == text


def test_texts_of_any_collation_are_values() -> None:
    collated = StringType("UTF8_LCASE")
    assert SinkColumns.of(schema(key=collated, value=collated), "t").places == {
        "key": 0,
        "value": 1,
    }


def test_nothing_need_be_nullable() -> None:
    header = StructType([StructField("key", STRING, False), StructField("value", BINARY, False)])
    strict = StructType(
        [
            StructField("value", STRING, False),
            StructField("headers", ArrayType(header, False), False),
        ]
    )
    assert SinkColumns.of(strict, "t").places == {"value": 0, "headers": 1}


def test_without_values_there_is_nothing_to_write() -> None:
    with pytest.raises(MissingColumnError, match=r"no column 'value'.* there are key, text\. Ren"):
        SinkColumns.of(schema(key=STRING, text=STRING), "t")


@pytest.mark.parametrize("name", ["Key", "VALUE", "Headers", "Partition", "Timestamp", "Topic"])
def test_a_column_in_another_case_is_not_left_out_in_silence(name: str) -> None:
    others = {each: STRING for each in ("topic", "value") if each != name.lower()}
    with pytest.raises(UnknownColumnError) as refused:
        SinkColumns.of(schema(**others, **{name: INT}), None)
    text = f"Column '{name}' is no part of a record. Names count with their case: '{name.lower()}'"
    assert str(refused.value) == text


def test_a_column_in_another_case_does_no_harm_beside_the_right_one() -> None:
    both = schema(Key=INT, value=STRING, key=STRING, VALUE=INT)
    assert SinkColumns.of(both, "t").places == {"key": 2, "value": 1}
    # The option says the topic, so no column need.
    assert SinkColumns.of(schema(Topic=INT, value=STRING), "t").places == {"value": 1}


def test_something_says_the_topic() -> None:
    with pytest.raises(ConfigurationError, match=r"'topic': is missing, .* there are value\. Give"):
        SinkColumns.of(schema(value=STRING), None)


# -- rows ----------------------------------------------------------------------------------------


def test_columns_are_picked_by_their_place() -> None:
    given = pa.RecordBatch.from_arrays(
        [pa.array(["other"]), pa.array(["first"]), pa.array(["second"])],
        names=["VALUE", "value", "value"],
    )
    columns = StructType(
        [StructField("VALUE", STRING), StructField("value", STRING), StructField("value", INT)]
    )
    found = shipped(SinkColumns.of(columns, "t")).select(given)
    assert found.to_pylist() == [{"value": "first"}]


def test_fields_of_headers_may_be_cased_in_any_way() -> None:
    header = pa.struct([("Key", pa.string()), ("VALUE", pa.binary())])
    rows = [
        [{"Key": "a", "VALUE": b"1"}, {"Key": "b", "VALUE": None}],
        None,
        [],
        [{"Key": "c", "VALUE": b""}, None],
    ]
    given = pa.RecordBatch.from_arrays(
        [pa.array(["v"] * 4), pa.array(rows, pa.list_(header))], names=["value", "headers"]
    )
    wanted = schema(value=STRING, headers=headers(Key=STRING, VALUE=BINARY))
    found = SinkColumns.of(wanted, "t").select(given)["headers"]
    assert found.type.value_type.names == ["key", "value"]
    assert found.to_pylist() == [
        [{"key": "a", "value": b"1"}, {"key": "b", "value": None}],
        None,
        [],
        [{"key": "c", "value": b""}, None],
    ]
