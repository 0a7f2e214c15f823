"""One Python value as a column of one row: what a direct writer is held against."""

from typing import Any

import pyarrow as pa

from spark_kafka_source.values import ValueWriter
from spark_kafka_source.values.fitting import below
from spark_kafka_source.values.one_value import (
    boolean,
    items_of,
    known_fields,
    moment,
    no_such_value,
    pairs_of,
    real,
    refuse,
    text,
    unscaled,
    whole,
)

_MOST_SHOWN = 100
_BYTES = (bytes, bytearray, memoryview)


def encode_one(writer: ValueWriter, value: Any) -> bytes:
    """Return the bytes of a value, encoded as a column of one row."""
    found: bytes = writer.encode(array_of_one(value, writer.arrow_type), b"")[0].as_py()
    return found


def array_of_one(value: object, kind: pa.DataType, path: str = "") -> pa.Array:
    """Return a column of this type with only this value. Raises `UnencodableRowError`."""
    _check(value, kind, path)
    try:
        return pa.array([value], kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        refuse(path, str(error)[:_MOST_SHOWN])


def _check(value: Any, kind: pa.DataType, path: str) -> None:
    if value is None:
        return
    if pa.types.is_struct(kind):
        fields = {each.name: each.type for each in kind}
        known_fields(value, fields, path)
        for name, each in fields.items():
            _check(value.get(name), each, below(path, name))
    elif pa.types.is_map(kind):
        for key, item in pairs_of(value, path):
            _check(key, kind.key_type, f"{path}{{}}")
            _check(item, kind.item_type, f"{path}{{}}")
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        for each in items_of(value, path):
            _check(each, kind.value_type, f"{path}[]")
    else:
        check_leaf(value, kind, path)


def check_leaf(value: Any, kind: pa.DataType, path: str) -> None:
    """Raise `UnencodableRowError` if a value is no value of a type that is not nested."""
    of = pa.types
    if of.is_boolean(kind):
        boolean(value, path)
    elif of.is_integer(kind):
        whole(value, kind, path)
    elif of.is_floating(kind):
        real(value, kind, path)
    elif of.is_string(kind) or of.is_large_string(kind):
        text(value, path)
    elif of.is_decimal(kind):
        unscaled(value, kind, path)
    elif of.is_temporal(kind):
        moment(value, kind, path)
    elif of.is_null(kind) or not isinstance(value, _BYTES):
        no_such_value(path, value, kind)
