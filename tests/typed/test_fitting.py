"""What does not fit a schema is refused before a row is written, in all ways to write.

Each way gets the same columns: the sink's planning, `encode`'s, `send_columns`, and `send` where a
dict can be such a value. Spark's own `to_avro` judges pairs of types in
`tests/value_parity/test_writing.py`.
"""

import datetime
import json
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType

from spark_kafka_source.errors import KafkaError
from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.records import UnencodableRowError
from spark_kafka_source.spark.sink.columns import SinkColumns
from spark_kafka_source.typed import TypedEncoding, TypedWriteConfig, plan_writes
from spark_kafka_source.values.fitting import UnfitColumnError

UTC = pa.timestamp("us", "UTC")
NTZ = pa.timestamp("us")
NOON = datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.UTC)


def avro(*fields: tuple[str, Any], **options: str) -> dict[str, str]:
    """Return the options to write records with these fields."""
    named = [{"name": name, "type": kind} for name, kind in fields]
    schema = {"type": "record", "name": "R", "fields": named}
    return {"value.format": "avro", "value.schema": json.dumps(schema), **options}


def logical(kind: str, name: str) -> dict[str, str]:
    return {"type": kind, "logicalType": name}


def column(kind: pa.DataType, value: Any, name: str = "v") -> pa.Array:
    """Return a column of structs with one field."""
    return pa.array([{name: value}], pa.struct([(name, kind)]))


Way = Callable[[pa.Array, Mapping[str, str]], bytes]


def by_columns(values: pa.Array, options: Mapping[str, str]) -> bytes:
    """Encode as `send_columns` does."""
    encoding = TypedEncoding(TypedWriteConfig.from_settings(Settings(options)))
    (found,) = encoding.table("t", pa.table({"value": values}))["value"].to_pylist()
    return bytes(found)


def by_sink(values: pa.Array, options: Mapping[str, str]) -> bytes:
    """Encode as the sink does: the plan is made of Spark's type."""
    config = TypedWriteConfig.from_settings(Settings(options))
    kind = from_arrow_type(values.type, prefer_timestamp_ntz=True)
    planned = SinkColumns.of(StructType([StructField("value", kind)]), "t", config)
    (found,) = planned.select(pa.record_batch({"value": values}))["value"].to_pylist()
    return bytes(found)


def by_plan(values: pa.Array, options: Mapping[str, str]) -> bytes:
    """Encode as the function `encode` does."""
    config = TypedWriteConfig.from_settings(Settings(options))
    write = plan_writes(config, {"value": values.type}, "t")["value"]
    return bytes(write.encode(values)[0].as_py())


def by_dict(values: pa.Array, options: Mapping[str, str]) -> bytes:
    """Encode as `send` does."""
    encoding = TypedEncoding(TypedWriteConfig.from_settings(Settings(options)))
    found = encoding.one("value", "t", values[0].as_py())
    assert found is not None
    return found


COLUMNS: tuple[Way, ...] = (by_columns, by_sink, by_plan)
WAYS: tuple[Way, ...] = (*COLUMNS, by_dict)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("kind", "number"),
    [
        (logical("long", "time-micros"), 43_200_000_000),
        (logical("long", "timestamp-millis"), 1_704_067_200_000),
        (logical("long", "local-timestamp-millis"), 1_704_067_200_000),
        (logical("long", "timestamp-micros"), 1_704_067_200_000_000),
        (logical("long", "timestamp-nanos"), 1_704_067_200_000_000_000),
    ],
)
def test_a_number_for_a_time_is_the_number_in_the_schemas_unit(
    way: Way, kind: Any, number: int
) -> None:
    data = way(column(pa.int64(), number), avro(("v", "long")))
    assert way(column(pa.int64(), number), avro(("v", kind))) == data
    listed = column(pa.list_(pa.int64()), [number])
    of_items = avro(("v", {"type": "array", "items": kind}))
    assert way(listed, of_items) == b"\x02" + data + b"\0"
    assert way(column(pa.int64(), number), avro(("v", ["null", kind]))) == b"\x02" + data


@pytest.mark.parametrize("way", WAYS)
def test_a_time_is_written_in_the_schemas_unit(way: Way) -> None:
    millis = int(NOON.timestamp() * 1000)
    number = avro(("v", "long"))
    for unit, wanted in (("millis", millis), ("micros", millis * 1000)):
        data = way(column(pa.int64(), wanted), number)
        moment = avro(("v", logical("long", f"timestamp-{unit}")))
        assert way(column(UTC, NOON), moment) == data
        local = avro(("v", logical("long", f"local-timestamp-{unit}")))
        assert way(column(NTZ, NOON.replace(tzinfo=None)), local) == data
    time = avro(("v", logical("long", "time-micros")))
    noon = column(pa.time64("ns"), datetime.time(12))
    if way is not by_sink:  # Spark's session has no TIME by default.
        assert way(noon, time) == way(column(pa.int64(), 43_200_000_000), number)


def schema_of(kind: Any) -> dict[str, str]:
    return avro(("v", kind))


OTHERS: list[tuple[pa.DataType, Any, Any]] = [
    (pa.float64(), 1e300, "float"), (pa.float64(), 1.5, "int"), (pa.int64(), 1 << 40, "double"),
    (pa.int32(), 5, "boolean"), (pa.string(), "12", "long"), (pa.int64(), 12, "string"),
    (pa.string(), "ab", "bytes"), (pa.binary(), b"ab", "string"), (pa.int64(), 5, "int"),
    (UTC, NOON, logical("int", "date")), (UTC, NOON, "long"), (UTC, NOON, "string"),
    (NTZ, NOON.replace(tzinfo=None), logical("long", "timestamp-millis")),
    (UTC, NOON, logical("long", "local-timestamp-micros")),
    (pa.list_(pa.string()), ["1"], {"type": "array", "items": "int"}),
    (pa.list_(pa.int32()), [1], "int"), (pa.int32(), 1, {"type": "array", "items": "int"}),
    (pa.map_(pa.string(), pa.string()), [("a", "1")], {"type": "map", "values": "long"}),
    (pa.bool_(), True, "int"), (pa.date32(), datetime.date(2024, 1, 1), "int"),
    (pa.struct([("a", pa.int32())]), {"a": 1}, {"type": "map", "values": "int"}),
]  # fmt: skip


@pytest.mark.parametrize("way", COLUMNS)
@pytest.mark.parametrize(("given", "value", "kind"), OTHERS, ids=str)
def test_another_type_is_refused_with_its_path_and_both_types(
    way: Way, given: pa.DataType, value: Any, kind: Any
) -> None:
    for schema in (kind, ["null", kind]):
        with pytest.raises(UnfitColumnError, match=r"Column 'value\.v(\[\]|\{\})?'") as refused:
            way(column(given, value), schema_of(schema))
        assert "it is of the type" in refused.value._text()
        assert "The schema has" in refused.value._text()
    nested = column(pa.list_(pa.struct([("x", given)])), [{"x": value}])
    record = {"type": "record", "name": "X", "fields": [{"name": "x", "type": kind}]}
    with pytest.raises(UnfitColumnError, match=r"Column 'value\.v\[\]\.x"):
        way(nested, schema_of({"type": "array", "items": record}))


# A dict has no type: a number fits if it is one of the schema's, and a dict may be a map.
_OF_COLUMNS_ALONE = (str((pa.int64(), 5)), str((pa.int64(), 1 << 40)), str(OTHERS[-1][:2]))
_AS_VALUES = [each for each in OTHERS if str(each[:2]) not in _OF_COLUMNS_ALONE]


@pytest.mark.parametrize(("given", "value", "kind"), _AS_VALUES, ids=str)
def test_another_value_is_refused_in_a_dict_too(given: pa.DataType, value: Any, kind: Any) -> None:
    with pytest.raises(UnencodableRowError, match=r"Row 0: v"):
        by_dict(column(given, value), schema_of(kind))


@pytest.mark.parametrize("way", WAYS)
def test_a_type_that_widens_is_written(way: Way) -> None:
    for given, wanted in ((pa.int32(), "long"), (pa.int8(), "int"), (pa.int32(), "double")):
        value = 5.0 if wanted == "double" else 5
        exact = {"long": pa.int64(), "int": pa.int32(), "double": pa.float64()}[wanted]
        data = way(column(exact, value), schema_of(wanted))
        assert way(column(given, 5), schema_of(wanted)) == data
    data = way(column(pa.float64(), 1.5), schema_of("double"))
    assert way(column(pa.float32(), 1.5), schema_of("double")) == data


@pytest.mark.parametrize("way", WAYS)
def test_a_field_that_the_schema_lacks_is_refused_unless_it_is_named(way: Way) -> None:
    inner = {"type": "record", "name": "X", "fields": [{"name": "a", "type": "int"}]}
    kind = pa.struct(
        [("x", pa.struct([("a", pa.int32()), ("note", pa.string())])), ("new", pa.int64())]
    )
    value = pa.array([{"x": {"a": 1, "note": "n"}, "new": 2}], kind)
    for ignored, path in (("", "new"), ("x.note", "new"), ("new", "x.note"), ("note", "new")):
        with pytest.raises(KafkaError, match=path) as refused:
            way(value, avro(("x", inner), **{"value.ignore.fields": ignored}))
        assert "the schema has no such field. The schema has: " in str(refused.value)
        assert f"To leave it out, give 'value.ignore.fields' '{path}'" in str(refused.value)
    allowed = {"value.ignore.fields": " x.note,new"}
    assert way(value, avro(("x", inner), **allowed)) == b"\x02"
    with pytest.raises(KafkaError, match="the schema has no such field"):
        way(column(pa.int32(), 1, "other"), schema_of(["null", "int"]))


@pytest.mark.parametrize("way", WAYS)
def test_a_name_in_another_case_is_refused_with_the_right_one(way: Way) -> None:
    with pytest.raises(KafkaError, match="did you mean 'amount'") as refused:
        way(column(pa.int32(), 1, "Amount"), avro(("amount", ["null", "int"])))
    assert "Amount" in str(refused.value)


@pytest.mark.parametrize("way", WAYS)
def test_a_field_that_the_column_lacks_is_null_or_refused_by_name(way: Way) -> None:
    value = column(pa.int32(), 1, "a")
    assert way(value, avro(("a", "int"), ("b", ["null", "int"]), ("c", "null"))) == b"\x02\0"
    with pytest.raises(KafkaError, match=r"\bb\b"):
        way(value, avro(("a", "int"), ("b", "int")))
    with pytest.raises(KafkaError, match=r"\bb\b"):
        way(value, avro(("a", "int"), ("b", ["int", "string"])))
    none = pa.array([{"a": 1, "b": None}], pa.struct([("a", pa.int32()), ("b", pa.null())]))
    if way is not by_sink:
        assert way(none, avro(("a", "int"), ("b", ["null", "int"]))) == b"\x02\0"


def test_the_option_of_a_key_is_named_as_such() -> None:
    options = {name.replace("value", "key"): text for name, text in schema_of("int").items()}
    encoding = TypedEncoding(TypedWriteConfig.from_settings(Settings(options)))
    with pytest.raises(UnfitColumnError, match=r"Column 'key\.x'.*'key\.ignore\.fields' 'x'"):
        encoding.table("t", pa.table({"key": column(pa.int32(), 1, "x")}))
    with pytest.raises(UnencodableRowError, match=r"x: .*'key\.ignore\.fields' 'x'"):
        encoding.one("key", "t", {"x": 1})
