"""Inference of the common type of JSON values, as in Spark."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from spark_kafka_source.values.ddl import MAX_PRECISION, array_of
from spark_kafka_source.values.errors import SchemaError
from spark_kafka_source.values.json.meaning import is_deep, loaded
from spark_kafka_source.values.json.texts import Number

MAX_FIELDS = 10_000

_LONG = pa.int64()
_LONG_DIGITS = 19
_WIDE = 20
"""The digits of a decimal that can also hold a long, as in Spark."""


@dataclass(slots=True)
class _Seen:
    """Values seen in one place: types of scalars, objects by field, and array items."""

    scalars: set[pa.DataType] = field(default_factory=set)
    fields: "dict[str, _Seen] | None" = None
    items: "_Seen | None" = None


def infer(values: Iterable[bytes]) -> pa.DataType:
    """Return a type that all values can be read into.

    Whole numbers are BIGINT, larger ones DECIMAL. Together with other numbers they are DOUBLE.
    Values of different kinds, and values that are always null, are STRING. Fields are sorted by
    name. Values that are not JSON, or not objects, are ignored. Raises `SchemaError` if all are.
    """
    top, found = _Seen(), False
    for value in values:
        read = _read(value)
        if isinstance(read, dict):
            _look(read, top)
            found = True
    if not found:
        raise SchemaError("", "there is no JSON object among the values", "Give the schema")
    kind = _type(top)
    return pa.struct([]) if kind is None else kind


def _read(value: bytes) -> Any:
    if is_deep(value):
        return None
    try:
        return loaded(value.decode())
    except (ValueError, RecursionError):
        return None


def _look(value: Any, seen: _Seen) -> None:
    if isinstance(value, dict):
        if seen.fields is None:
            seen.fields = {}
        for name, each in value.items():
            if name not in seen.fields and len(seen.fields) >= MAX_FIELDS:
                raise SchemaError("", f"more than {MAX_FIELDS} fields of an object", "Use a MAP")
            _look(each, seen.fields.setdefault(name, _Seen()))
    elif isinstance(value, list):
        if seen.items is None:
            seen.items = _Seen()
        for each in value:
            _look(each, seen.items)
    elif value is not None:
        seen.scalars.add(_scalar(value))


def _scalar(value: Any) -> pa.DataType:
    if isinstance(value, bool):
        return pa.bool_()
    if not isinstance(value, Number):
        return pa.string()
    digits = len(value.lstrip("-"))
    if not value.lstrip("-").isdigit() or digits > MAX_PRECISION:
        return pa.float64()
    if digits < _LONG_DIGITS or -(1 << 63) <= int(value) < 1 << 63:
        return _LONG
    return pa.decimal128(digits, 0)


def _type(seen: _Seen) -> pa.DataType | None:
    """Return the type. None for an object that never has a field: Spark has no column for it."""
    shapes = bool(seen.scalars) + (seen.fields is not None) + (seen.items is not None)
    if shapes != 1:
        return pa.string()
    if seen.items is not None:
        item = _type(seen.items)
        return array_of(pa.string() if item is None else item)
    if seen.fields is not None:
        types = ((name, _type(each)) for name, each in sorted(seen.fields.items()))
        fields = [(name, kind) for name, kind in types if kind is not None]
        return pa.struct(fields) if fields else None
    return _number(seen.scalars)


def _number(kinds: set[pa.DataType]) -> pa.DataType:
    if len(kinds) == 1:
        return next(iter(kinds))
    if pa.string() in kinds or pa.bool_() in kinds:
        return pa.string()
    if pa.float64() in kinds:
        return pa.float64()
    digits = max(each.precision for each in kinds if each != _LONG)
    return pa.decimal128(max(digits, _WIDE if _LONG in kinds else 0), 0)
