"""Avro schema of columns without a schema: as from Spark's `to_avro`, except for the order of null.

A union has null first, and null as its default, so that a field can be added later.
"""

import json
import re
from typing import Any

import pyarrow as pa

from spark_kafka_source.values.errors import SchemaError

_PRIMITIVES: dict[pa.DataType, Any] = {
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "bytes",
    pa.large_binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.timestamp("us"): {"type": "long", "logicalType": "local-timestamp-micros"},
    pa.time64("ns"): {"type": "long", "logicalType": "time-micros"},
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def schema_of(kind: pa.DataType, name: str, namespace: str = "") -> str:
    """Return the schema for values of this type, as JSON. Names of records begin with `name`.

    Raises `SchemaError` for a type, or a field's name, that Avro does not have.
    """
    return json.dumps(_schema(kind, name, namespace, ""))


def _schema(kind: pa.DataType, name: str, namespace: str, path: str) -> Any:
    if kind in _PRIMITIVES:
        return _PRIMITIVES[kind]
    if pa.types.is_timestamp(kind) and kind.unit == "us":
        return {"type": "long", "logicalType": "timestamp-micros"}
    if pa.types.is_decimal128(kind):
        sizes = {"precision": kind.precision, "scale": kind.scale}
        return {"type": "bytes", "logicalType": "decimal", **sizes}
    if pa.types.is_struct(kind):
        return _record(kind, name, namespace, path)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        items = _nullable(kind.value_type, f"{name}_item", namespace, f"{path}[]")
        return {"type": "array", "items": items}
    if pa.types.is_map(kind) and kind.key_type == pa.string():
        values = _nullable(kind.item_type, f"{name}_value", namespace, f"{path}{{}}")
        return {"type": "map", "values": values}
    expected = "Cast it to a type that Avro has, or give the schema to write with"
    raise SchemaError(path, f"a column of type {kind}", expected)


def _record(kind: pa.StructType, name: str, namespace: str, path: str) -> Any:
    fields = []
    for place in range(kind.num_fields):
        each = kind.field(place)
        where = f"{path}.{each.name}" if path else each.name
        if not _NAME.fullmatch(each.name):
            found = f"a field named {each.name!r}"
            raise SchemaError(where, found, "Names have letters, digits and underscores")
        inner = _nullable(each.type, f"{name}_{each.name}", namespace, where)
        fields.append({"name": each.name, "type": inner, "default": None})
    record = {"type": "record", "name": name, "fields": fields}
    return record | ({"namespace": namespace} if namespace and not path else {})


def _nullable(kind: pa.DataType, name: str, namespace: str, path: str) -> Any:
    return ["null", _schema(kind, name, namespace, path)]
