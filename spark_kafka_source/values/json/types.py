"""Arrow types that JSON can be read into, as `values.ddl` defines them."""

import pyarrow as pa

from spark_kafka_source.values.ddl import TIMESTAMP, TIMESTAMP_NTZ, array_of
from spark_kafka_source.values.errors import SchemaError
from spark_kafka_source.values.fitting import below

_PLAIN = (
    *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
    *(pa.string(), pa.binary(), pa.date32(), TIMESTAMP, TIMESTAMP_NTZ),
)


def readable(kind: pa.DataType, path: str = "") -> pa.DataType:
    """Return the type with nullable fields, and with Spark's name for items.

    Raises `SchemaError` with the path of a type that JSON is not read into.
    """
    if kind in _PLAIN:
        return kind
    if pa.types.is_decimal128(kind) and 0 <= kind.scale <= kind.precision:
        return kind
    if pa.types.is_list(kind):
        return array_of(readable(kind.value_type, f"{path}[]"))
    if pa.types.is_map(kind) and pa.types.is_string(kind.key_type):
        return pa.map_(pa.string(), readable(kind.item_type, f"{path}{{}}"))
    if pa.types.is_struct(kind):
        names = [each.name for each in kind]
        if len(set(names)) < len(names):
            raise SchemaError(path, f"{kind} has a name twice", "Each field has a name of its own")
        types = (readable(each.type, below(path, each.name)) for each in kind)
        return pa.struct(list(zip(names, types, strict=True)))
    raise SchemaError(path, f"JSON cannot be read into {kind}", f"Use one of {_names()}")


def _names() -> str:
    return f"{', '.join(map(str, _PLAIN))}, a decimal128, or a list, map or struct of them"
