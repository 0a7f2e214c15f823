"""DDL to types and back, and errors for wrong texts."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructType

from spark_kafka_source.values import SchemaError
from spark_kafka_source.values.ddl import (
    MAX_DEPTH,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    from_ddl,
    to_ddl,
    written_ddl,
)
from tests.values.json_values import TYPES

drawn = settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))


def test_columns_of_all_types() -> None:
    text = """
        id BIGINT NOT NULL COMMENT 'it''s', flag boolean, t1 TINYINT, t2 byte, s SMALLINT, s2 SHORT,
        i INT, i2 INTEGER, l LONG, f FLOAT, f2 REAL, d DOUBLE, st STRING COMMENT "\\" b", b BINARY,
        dt DATE, ts TIMESTAMP, ltz TIMESTAMP_LTZ, ntz TIMESTAMP_NTZ, -- a comment, with a comma
        d1 DECIMAL, d2 DEC(5), d3 NUMERIC ( 10 , 2 ), /* another */ e STRUCT<>,
        `a b``c`: ARRAY<MAP<STRING, STRUCT<x: INT NOT NULL COMMENT 'x', `y`: ARRAY<INT>>>>,
        array INT, date DATE, struct STRUCT<map: MAP<STRING,INT>>
    """.replace("'it''s'", "'it\\'s'")
    found = from_ddl(text)
    types: dict[str, pa.DataType] = {
        "id": pa.int64(), "flag": pa.bool_(), "t1": pa.int8(), "t2": pa.int8(), "s": pa.int16(),
        "s2": pa.int16(), "i": pa.int32(), "i2": pa.int32(), "l": pa.int64(), "f": pa.float32(),
        "f2": pa.float32(), "d": pa.float64(), "st": pa.string(), "b": pa.binary(),
        "dt": pa.date32(), "ts": TIMESTAMP, "ltz": TIMESTAMP, "ntz": TIMESTAMP_NTZ,
        "d1": pa.decimal128(10, 0), "d2": pa.decimal128(5, 0), "d3": pa.decimal128(10, 2),
        "e": pa.struct([]), "array": pa.int32(), "date": pa.date32(),
    }  # fmt: skip
    inner = pa.struct([("x", pa.int32()), ("y", pa.list_(pa.field("element", pa.int32())))])
    nested = pa.list_(pa.field("element", pa.map_(pa.string(), inner)))
    assert {each.name: each.type for each in found} == {
        **types,
        "a b`c": nested,
        "struct": pa.struct([("map", pa.map_(pa.string(), pa.int32()))]),
    }
    assert all(each.nullable for each in found)
    written = written_ddl(text)
    assert [each.name for each in written if not each.nullable] == ["id"]
    items = written.field("a b`c").type.value_type.item_type
    assert [each.nullable for each in items] == [False, True]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("struct<a: int>", pa.struct([("a", pa.int32())])),
        (" decimal ( 3 ) ", pa.decimal128(3, 0)),
        ("BIGINT", pa.int64()),
        ("date date", pa.struct([("date", pa.date32())])),
        ("decimal decimal(1,1)", pa.struct([("decimal", pa.decimal128(1, 1))])),
        ("struct int", pa.struct([("struct", pa.int32())])),
    ],
)
def test_one_type_and_names_of_types(text: str, kind: pa.DataType) -> None:
    assert from_ddl(text) == kind


@drawn
@given(TYPES)
def test_a_type_is_written_and_read(kind: pa.DataType) -> None:
    if has_names(kind):
        assert from_ddl(to_ddl(kind)) == kind
    else:
        with pytest.raises(SchemaError, match="without a name"):
            to_ddl(kind)


def has_names(kind: pa.DataType) -> bool:
    """Return whether no field has the empty name, which DDL cannot express."""
    return all(kind.field(place).name for place in range(kind.num_fields)) and all(
        has_names(kind.field(place).type) for place in range(kind.num_fields)
    )


@drawn
@given(st.text(alphabet="ab`<>(),:' \n\\1int", max_size=30))
def test_any_text_is_a_type_or_an_error_of_its_own(text: str) -> None:
    try:
        from_ddl(text)
    except SchemaError as error:
        assert "DDL" in str(error)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "at the top: the DDL ends. Expected a name"),
        ("a", "at a: the DDL ends. Expected a type"),
        ("a int b", "at a: 'b' stands at character 7 of the DDL. Expected ,"),
        ("a int,", "at the top: the DDL ends"),
        ("a-b int", "at a: '-b' stands at character 2"),
        ("1a int", "in backquotes"),
        ("a varchar(3)", "at a: 'varchar(3)' stands at character 3 of the DDL. VARCHAR cannot be"),
        ("interval", "INTERVAL cannot be read. Use STRING"),
        ("a array<struct<q: void>>", r"at a\[\].q: .* VOID cannot be read"),
        ("a foo", "Expected a type, such as BOOLEAN"),
        ("a decimal(39)", "Expected 1 to 38 digits"),
        ("a decimal(3,4)", "no larger scale"),
        ("a decimal(0)", "Expected 1 to 38"),
        ("a decimal(1234567)", "Expected a number of digits"),
        ("a map<int,string>", "Expected keys of type STRING"),
        ("a struct<b int", "at a: the DDL ends. Expected >"),
        (
            "a int, b int, a int",
            "at a: 'a' stands at character 15 of the DDL. Each name comes once",
        ),
        ("a int comment x", "Expected a comment in quotes"),
        ("a " + "array<" * (MAX_DEPTH + 1) + "int", "at most 100 types within each other"),
        ("a " + "array<" * 5000, "at most 100 types"),
        ("bigint x y", "Expected a type"),
        ("struct<a int> b", "Expected a comma, or nothing more"),
    ],
)
def test_what_is_no_ddl(text: str, said: str) -> None:
    with pytest.raises(SchemaError, match=said.replace("(3)", r"\(3\)")):
        from_ddl(text)


def test_types_without_a_name() -> None:
    with pytest.raises(SchemaError, match=r"at a\[\]: uint8 has no name in DDL"):
        to_ddl(pa.struct([("a", pa.list_(pa.uint8()))]))


@pytest.mark.spark
def test_spark_reads_the_same(spark: Any) -> None:
    """Spark's parser reads drawn types, and Spark's own notations of types."""
    texts = [
        "a INT NOT NULL COMMENT 'it\\'s', `b c` ARRAY<STRING>, d MAP<STRING, DOUBLE>, e LONG",
        "a: struct<b: int, c: decimal>, d dec(3), e numeric(4,2), f TIMESTAMP_LTZ, g byte",
        "date date, array array<int>, struct struct<>, map int -- the end",
        "a real, b short, c timestamp_ntz, d binary /* not said */",
    ]

    @settings(deadline=None, max_examples=30, suppress_health_check=list(HealthCheck))
    @given(st.dictionaries(st.text("aé `.-_1", min_size=1, max_size=4), TYPES, min_size=1))
    def drawn_types(fields: dict[str, pa.DataType]) -> None:
        kind = pa.struct(list(fields.items()))
        if has_names(kind):
            texts.append(to_ddl(kind))

    drawn_types()
    for text in texts:
        ours, theirs = from_arrow_type(from_ddl(text)), StructType.fromDDL(text)
        assert ours.simpleString() == theirs.simpleString(), text
