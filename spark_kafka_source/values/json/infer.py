"""Inference of the common type of JSON values, as in Spark."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from spark_kafka_source.values.ddl import MAX_PRECISION, array_of
from spark_kafka_source.values.errors import SchemaError
from spark_kafka_source.values.json.meaning import DEFAULT, is_deep, loaded
from spark_kafka_source.values.json.texts import Number
from spark_kafka_source.values.typing import JsonTyping

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


def infer(values: Iterable[bytes], typing: JsonTyping = DEFAULT) -> pa.DataType:
    """Return a type that all values can be read into.

    Whole numbers are BIGINT, larger ones DECIMAL. Together with other numbers they are DOUBLE.
    Values of different kinds, and values that are always null, are STRING. Fields are sorted by
    name. Values that are not JSON, or not objects, are ignored. `typing` may say otherwise. Raises
    `SchemaError` if all are.
    """
    top, has_object = _Seen(), False
    for value in values:
        read = _read(value)
        if isinstance(read, dict):
            _look(read, top, typing)
            has_object = True
    if not has_object:
        raise SchemaError("", "there is no JSON object among the values", "Give the schema")
    kind = _type(top, typing)
    return pa.struct([]) if kind is None else kind


def _read(value: bytes) -> Any:
    if is_deep(value):
        return None
    try:
        return loaded(value.decode())
    except (ValueError, RecursionError):
        return None


def _look(value: Any, seen: _Seen, typing: JsonTyping) -> None:
    if isinstance(value, dict):
        if seen.fields is None:
            seen.fields = {}
        for name, each in value.items():
            if name not in seen.fields and len(seen.fields) >= MAX_FIELDS:
                raise SchemaError("", f"more than {MAX_FIELDS} fields of an object", "Use a MAP")
            _look(each, seen.fields.setdefault(name, _Seen()), typing)
    elif isinstance(value, list):
        if seen.items is None:
            seen.items = _Seen()
        for each in value:
            _look(each, seen.items, typing)
    elif value is not None:
        seen.scalars.add(_scalar(value, typing))


def _scalar(value: Any, typing: JsonTyping) -> pa.DataType:
    if typing.primitives_as_string:
        return pa.string()
    if isinstance(value, bool):
        return pa.bool_()
    if not isinstance(value, Number):
        return pa.string()
    if not value.lstrip("-").isdigit():
        return _decimal(value) if typing.prefers_decimal else pa.float64()
    return _whole(value, len(value.lstrip("-")))


def _whole(number: str, digits: int) -> pa.DataType:
    if digits > MAX_PRECISION:
        return pa.float64()
    is_long = digits < _LONG_DIGITS or -(1 << 63) <= int(number) < 1 << 63
    return _LONG if is_long else pa.decimal128(digits, 0)


def _decimal(number: str) -> pa.DataType:
    """Return a decimal type with all digits of a number, or DOUBLE if there is none."""
    try:
        _, digits, exponent = Decimal(number).as_tuple()
    except InvalidOperation:  # The number is infinite, or has an exponent of many digits.
        return pa.float64()
    if not isinstance(exponent, int):
        return pa.float64()
    precision, scale = len(digits) + max(exponent, 0), max(-exponent, 0)
    precision = max(precision, scale)
    return pa.decimal128(precision, scale) if precision <= MAX_PRECISION else pa.float64()


def _type(seen: _Seen, typing: JsonTyping) -> pa.DataType | None:
    """Return the type. None for an object that never has a field: Spark has no column for it.

    None, too, for a place that is always null, or an empty array, if such fields are dropped.
    """
    shapes = bool(seen.scalars) + (seen.fields is not None) + (seen.items is not None)
    nothing = None if typing.drop_field_if_all_null else pa.string()
    if shapes != 1:
        return pa.string() if shapes else nothing
    if seen.items is not None:
        item = _type(seen.items, typing)
        item = nothing if item is None else item
        return None if item is None else array_of(item)
    if seen.fields is not None:
        types = ((name, _type(each, typing)) for name, each in sorted(seen.fields.items()))
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
    decimals = [kind for kind in kinds if kind != _LONG]
    scale = max(each.scale for each in decimals)
    whole = max(each.precision - each.scale for each in decimals)
    precision = max(whole, _WIDE if _LONG in kinds else 0) + scale
    return pa.decimal128(precision, scale) if precision <= MAX_PRECISION else pa.float64()
