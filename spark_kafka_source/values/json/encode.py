"""Encoder from columns to JSON texts, as Spark's `to_json` writes them, a column at a time.

Null fields are left out. In arrays and maps null is written. NaN and infinite doubles are strings,
and years beyond four digits have a sign, both as Spark writes them. Times have six digits after the
point. Spark writes only three, and drops the rest.
"""

import binascii
import json
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from spark_kafka_source.records import ColumnTypeError
from spark_kafka_source.values.ddl import TIMESTAMP, TIMESTAMP_NTZ, array_of
from spark_kafka_source.values.errors import SchemaError
from spark_kafka_source.values.iso_8601 import iso_8601
from spark_kafka_source.values.json.types import readable

_ESCAPED = r'["\\\x00-\x1f]'
_INTEGRAL = r"^-?[0-9]+$"


def encode(array: pa.Array) -> pa.BinaryArray:
    """Return a text for each row, or null for a null row.

    Raises `ColumnTypeError` for types that JSON has no place for.
    """
    try:
        kind = readable(_narrow(array.type))
    except SchemaError as error:
        raise ColumnTypeError("value", array.type, f"of types that JSON has: {error}") from error
    return _text(array.cast(kind)).cast(pa.binary())


def _narrow(kind: pa.DataType) -> pa.DataType:
    """Return the type with times in microseconds and UTC, and without large texts."""
    if pa.types.is_struct(kind):
        return pa.struct([(each.name, _narrow(each.type)) for each in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return array_of(_narrow(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(_narrow(kind.key_type), _narrow(kind.item_type))
    if pa.types.is_timestamp(kind):
        return TIMESTAMP if kind.tz else TIMESTAMP_NTZ
    return _NARROWER.get(kind, kind)


def _text(array: pa.Array) -> pa.Array:
    """Return the texts of a column, null where the column is."""
    kind = array.type
    if pa.types.is_struct(kind):
        return _object(array)
    if pa.types.is_map(kind):
        keys, values = _text(array.keys), _text(array.items)
        pairs = _joined(keys, ":", pc.fill_null(values, "null"))
        return _around("{", _listed(array, pairs), "}")
    if pa.types.is_list(kind):
        items = pc.fill_null(_text(array.values), "null")
        return _around("[", _listed(array, items), "]")
    if kind in (TIMESTAMP, TIMESTAMP_NTZ, pa.date32()):
        return _around('"', iso_8601(array), '"')
    return _LEAVES.get(kind, _plain)(array)


def _object(array: pa.Array) -> pa.Array:
    fields = [pa.array([""] * len(array), pa.string())]
    for place, each in enumerate(array.type):
        name = pa.scalar(f",{json.dumps(each.name, ensure_ascii=False)}:")
        fields.append(_joined(name, _text(array.field(place))))
    inner = pc.binary_join_element_wise(*fields, pa.scalar(""), null_handling="skip")
    texts = _around("{", pc.utf8_slice_codeunits(inner, 1), "}")
    return _null_where(array, texts)


def _listed(array: pa.Array, items: pa.Array) -> pa.Array:
    """Return the texts of each list's items, with commas between them."""
    texts = pc.binary_join(pa.ListArray.from_arrays(array.offsets, items), ",")
    return _null_where(array, texts)


def _null_where(array: pa.Array, texts: pa.Array) -> pa.Array:
    return pc.if_else(array.is_valid(), texts, None) if array.null_count else texts


def _joined(*parts: pa.Array | pa.Scalar | str) -> pa.Array:
    return pc.binary_join_element_wise(*parts, pa.scalar(""))


def _around(before: str, texts: pa.Array, behind: str) -> pa.Array:
    return _joined(pa.scalar(before), texts, pa.scalar(behind))


def _plain(array: pa.Array) -> pa.Array:
    return array.cast(pa.string())


def _float(array: pa.Array) -> pa.Array:
    texts = _plain(array)
    integral = pc.match_substring_regex(texts, _INTEGRAL)
    if pc.any(integral).as_py():
        texts = pc.if_else(integral, _joined(texts, ".0"), texts)
    finite = pc.is_finite(array)
    if pc.all(finite).as_py() is not False:
        return texts
    named = pc.if_else(pc.is_nan(array), "NaN", pc.if_else(pc.greater(array, 0), *_INFINITE))
    return pc.if_else(finite, texts, _around('"', named, '"'))


_INFINITE = "Infinity", "-Infinity"


def _string(array: pa.Array) -> pa.Array:
    special = pc.match_substring_regex(array, _ESCAPED)
    if not pc.any(special).as_py():
        return _around('"', array, '"')
    texts = [json.dumps(each, ensure_ascii=False) for each in array.filter(special).to_pylist()]
    plain = _around('"', array, '"')
    return pc.replace_with_mask(plain, pc.fill_null(special, False), pa.array(texts, pa.string()))


def _base64(array: pa.Array) -> pa.Array:
    texts = (
        None if each is None else binascii.b2a_base64(each, newline=False).decode()
        for each in array.to_pylist()
    )
    return _around('"', pa.array(texts, pa.string()), '"')


_NARROWER = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
_LEAVES: dict[pa.DataType, Callable[[pa.Array], pa.Array]] = {
    pa.float32(): _float,
    pa.float64(): _float,
    pa.string(): _string,
    pa.binary(): _base64,
}
