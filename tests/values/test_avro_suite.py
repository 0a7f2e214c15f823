"""The examples of Apache Avro's own suite, which its Python package has."""

import io
import json
from importlib.resources import files
from typing import Any

import avro.io
import avro.schema
import numpy as np
import pytest
from avro.test import gen_interop_data, test_io, test_schema

from spark_kafka_source.values import (
    Encoded,
    RecursiveTypeError,
    SchemaError,
    SchemaText,
    SchemaType,
)
from spark_kafka_source.values.avro import TIME, AvroReader, AvroWriter, parse_schema

RECURSIVE = {
    "value": {
        "member1": {"car": {"value": {"member0": "head"}}, "cdr": {"value": None}},
    }
}
"""The suite's datum of the record `Lisp`, with the members of its union."""


def text(schema: str) -> SchemaText:
    return SchemaText(SchemaType.AVRO, schema)


def by_apache(schema: str, value: Any) -> bytes:
    out = io.BytesIO()
    avro.io.DatumWriter(avro.schema.parse(schema)).write(value, avro.io.BinaryEncoder(out))
    return out.getvalue()


def read(writer: str, reader: AvroReader, data: bytes) -> Any:
    (size,) = sizes = np.array([len(data)])
    found = reader.decode([reader.program(text(writer))], Encoded(data, sizes - size, sizes))
    assert not found.status[0], found.reason(0)
    return found.array.to_pylist()[0]


@pytest.mark.parametrize("example", test_schema.VALID_EXAMPLES, ids=str)
def test_valid_schemas_are_parsed(example: Any) -> None:
    parse_schema(str(example))


@pytest.mark.parametrize("example", test_schema.INVALID_EXAMPLES, ids=str)
def test_invalid_schemas_are_refused(example: Any) -> None:
    with pytest.raises(SchemaError):
        parse_schema(str(example))


@pytest.mark.filterwarnings("ignore::avro.errors.IgnoredLogicalType")
@pytest.mark.parametrize(
    ("schema", "datum"),
    test_io.SCHEMAS_TO_VALIDATE,
    ids=[f"{number}" for number in range(len(test_io.SCHEMAS_TO_VALIDATE))],
)
def test_data_are_written_and_read(schema: str, datum: Any) -> None:
    data = by_apache(schema, datum)
    by = AvroWriter(text(schema))
    value = RECURSIVE if '"Lisp"' in schema else datum
    assert by.one(value) == data
    try:
        reader = AvroReader(text(schema), time_type=TIME)
    except RecursiveTypeError:
        return
    again = read(schema, reader, data)
    assert (b"" if again is None else by.one(again)) == (b"" if datum is None else data)


@pytest.mark.parametrize(("kind", "default"), test_io.DEFAULT_VALUE_EXAMPLES, ids=str)
def test_defaults_are_read(kind: Any, default: Any) -> None:
    writer = json.dumps({"type": "record", "name": "T", "fields": [{"name": "A", "type": "int"}]})
    field = {"name": "H", "type": kind, "default": default}
    schema = json.dumps({"type": "record", "name": "T", "fields": [field]})
    data = by_apache(writer, {"A": 1})
    one, other = (avro.schema.parse(each) for each in (writer, schema))
    wanted: Any = avro.io.DatumReader(one, other).read(avro.io.BinaryDecoder(io.BytesIO(data)))
    if isinstance(wanted["H"], bytes):
        # Against the specification, Apache's reader in Python takes the UTF-8 of the default.
        wanted["H"] = default.encode("latin-1")
    found = read(writer, AvroReader(text(schema)), data)
    assert AvroWriter(text(schema)).one(found) == by_apache(schema, wanted)


def test_the_interoperability_record_is_read() -> None:
    schema = files("avro").joinpath("interop.avsc").read_text()
    names = [each["name"] for each in json.loads(schema)["fields"] if each["name"] != "recordField"]
    reader = AvroReader(text(schema), [*names, "recordField.label"])
    datum: dict[str, Any] = gen_interop_data.DATUM
    found = read(schema, reader, by_apache(schema, datum))
    union = {"member0": None, "member1": datum["unionField"], "member2": None}
    entries = list(datum["mapField"].items())
    label = {"label": datum["recordField"]["label"]}
    assert found == {**datum, "unionField": union, "mapField": entries, "recordField": label}
    given = {**datum, "unionField": {"member1": datum["unionField"]}}
    assert AvroWriter(text(schema)).one(given) == by_apache(schema, datum)
