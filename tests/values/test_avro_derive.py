"""Derived schemas of columns: round trips, and types that Avro lacks."""

import pyarrow as pa
import pytest

from spark_kafka_source.values import SchemaError
from spark_kafka_source.values.avro import TIME, ReaderSchema, parse_schema, schema_of

ADDRESS = pa.struct([("city", pa.string()), ("at", pa.list_(pa.float64()))])
EVENT = pa.struct(
    [
        ("id", pa.int64()),
        ("small", pa.int32()),
        ("ok", pa.bool_()),
        ("f", pa.float32()),
        ("data", pa.binary()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("tod", TIME),
        ("amount", pa.decimal128(10, 2)),
        ("home", ADDRESS),
        ("others", pa.list_(ADDRESS)),
        ("by_name", pa.map_(pa.string(), ADDRESS)),
    ]
)


def test_columns_come_back_as_they_were() -> None:
    schema = parse_schema(schema_of(EVENT, "Event", "shop"))
    found = ReaderSchema.of(schema, time_type=TIME).arrow_type
    assert _plain(found) == _plain(EVENT)


def _plain(kind: pa.DataType) -> str:
    """Return the type's text without the default names of items."""
    return str(kind).replace("element:", "item:")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (pa.struct([("a", pa.duration("us"))]), "at a: a column of type duration"),
        (pa.struct([("a", pa.struct([("b c", pa.int32())]))]), "at a.b c: a field named 'b c'"),
        (pa.struct([("a", pa.map_(pa.int32(), pa.int32()))]), "at a: a column of type map"),
    ],
)
def test_what_avro_does_not_have_is_refused_by_its_path(kind: pa.DataType, text: str) -> None:
    with pytest.raises(SchemaError, match=text.replace("[", r"\[")):
        schema_of(kind, "Event")
