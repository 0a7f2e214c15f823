"""Meaning of a JSON text as a value of an Arrow type, one row at a time, by Python's `json`.

This is the definition. All other readers of JSON must give the same results. Objects are structs or
maps. If a name comes twice, the last one counts. Names that the type does not have are ignored.
Null can stand for any value. If a value is not of its type, the whole row is bad:

| type | JSON |
|---|---|
| integers | a number without fraction and exponent, within the type's range |
| float, double | a number, or `NaN`, `Infinity`, `-Infinity` with or without quotes |
| decimal | a number, or a string with one; rounded half up |
| boolean | `true`, `false` |
| string | a string; any other value as its text |
| binary | a string of base64 |
| date, timestamps | a string, see `values.json.times`; a timestamp in UTC also seconds since 1970 |
"""

import binascii
import json
import re
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from spark_kafka_source.values.ddl import TIMESTAMP, TIMESTAMP_NTZ, array_of, to_ddl
from spark_kafka_source.values.errors import SchemaError
from spark_kafka_source.values.faults import Fault
from spark_kafka_source.values.fitting import below
from spark_kafka_source.values.json.texts import (
    DECODER,
    NotAScalarError,
    Number,
    decoder,
    marked,
    shown,
    with_texts,
)
from spark_kafka_source.values.json.times import MICROS, days, micros
from spark_kafka_source.values.typing import JsonTyping

MAX_DEPTH = 256
"""The deepest nesting of objects and arrays. Python's own limit depends on the caller's stack."""

_MOST_DIGITS = 20
_NON_FINITE = {
    name: float(name.replace("INF", "Infinity"))
    for name in ("NaN", "Infinity", "+Infinity", "-Infinity", "+INF", "-INF")
}
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE]([+-]?)0*(\d+))?\Z", re.ASCII)
_EXACT = Context(prec=100, rounding=ROUND_HALF_UP, Emin=MIN_EMIN, Emax=MAX_EMAX)
_MOST_EXPONENT = 15
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_LONG_WAYS = re.compile(r'"(?:[^"\\]|\\.)*+"?|-?(?:Inf(?:inity)?|NaN)', re.DOTALL)

_PLAIN = (
    *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
    *(pa.string(), pa.binary(), pa.date32(), TIMESTAMP, TIMESTAMP_NTZ),
)
_NESTED = {
    pa.lib.Type_STRUCT: "STRUCT", pa.lib.Type_MAP: "MAP", pa.lib.Type_LIST: "ARRAY",
}  # fmt: skip
DEFAULT = JsonTyping()

Convert = Callable[[Any], Any]


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


class BadValueError(Exception):
    """A row is bad because of the value at `path`. `detail` is the reason with the value."""

    def __init__(self, fault: Fault, path: str = "", detail: str = "") -> None:
        super().__init__(fault, path, detail)
        self.fault, self.path, self.detail = fault, path, detail


class Place(NamedTuple):
    """Column, or field or item within it, and its type."""

    path: str
    kind: pa.DataType

    def bad(self, fault: Fault, value: Any) -> BadValueError:
        """Return the error for a value that the type does not have."""
        # A name can be missing within it, and there is no DDL of that.
        wanted = _NESTED.get(self.kind.id) or to_ddl(self.kind)
        return BadValueError(fault, self.path, f"{fault.reason}: {shown(value)} is no {wanted}")


class Meaning:
    """Reader of texts as values of one type, in a form for `pa.array`."""

    def __init__(self, kind: pa.DataType, typing: JsonTyping = DEFAULT) -> None:
        """`kind` must come from `readable`."""
        self._kind = kind
        self._convert = _converter(kind, "", typing.allow_non_numeric_numbers)
        self._typing = typing
        self._decoder = decoder(
            constants=typing.allow_non_numeric_numbers,
            control_characters=typing.allow_unquoted_control_chars,
        )

    def value(self, data: bytes) -> Any:
        """Return the value. Raises `BadValueError`."""
        if is_deep(data):
            raise BadValueError(Fault.NESTING)
        try:
            text = data.decode()
            parsed = self._loaded(text)
        except UnicodeDecodeError:
            raise BadValueError(Fault.TEXT, detail=marked(data)) from None
        except RecursionError:
            raise BadValueError(Fault.NESTING) from None
        except ValueError:
            raise BadValueError(Fault.SYNTAX, detail=marked(data)) from None
        try:
            return self._convert(parsed)
        except NotAScalarError:
            return self._convert(with_texts(_spelled(text), self._kind))

    def _loaded(self, text: str) -> Any:
        if self._typing.allow_non_numeric_numbers:
            return loaded(text, self._decoder)
        return self._decoder.decode(text)


def is_deep(data: bytes) -> bool:
    """Whether objects and arrays are nested deeper than `MAX_DEPTH`."""
    if len(data) <= 2 * MAX_DEPTH or data.count(b"{") + data.count(b"[") <= MAX_DEPTH:
        return False
    marks = np.frombuffer(_STRINGS.sub(b"", data), np.uint8)
    opened = (marks == ord("{")) | (marks == ord("["))
    closed = (marks == ord("}")) | (marks == ord("]"))
    depth = np.cumsum(opened.astype(np.int64) - closed)
    return bool(depth.max(initial=0) > MAX_DEPTH)


def loaded(text: str, by: json.JSONDecoder = DECODER) -> Any:
    """Parse a text, with numbers as they are written. Raises `ValueError`."""
    try:
        return by.decode(text)
    except json.JSONDecodeError:
        spelled = _spelled(text)
        if spelled == text:
            raise
        return by.decode(spelled)


def _spelled(text: str) -> str:
    """Respell `Inf`, `-Inf` and `-NaN` in the only way that `json` reads."""
    if "Inf" not in text and "NaN" not in text:
        return text
    return _LONG_WAYS.sub(_long_way, text)


def _long_way(match: re.Match[str]) -> str:
    if match[0][0] == '"':
        return match[0]
    if match[0].endswith("NaN"):
        return "NaN"
    return "-Infinity" if match[0][0] == "-" else "Infinity"


def _converter(kind: pa.DataType, path: str, names: bool) -> Convert:
    """Return the conversion to a type. `names` says whether a string such as "NaN" is a float."""
    at = Place(path, kind)
    if pa.types.is_list(kind):
        return _list(_converter(kind.value_type, f"{path}[]", names), at)
    if pa.types.is_map(kind):
        return _map(_converter(kind.item_type, f"{path}{{}}", names), at)
    if pa.types.is_struct(kind):
        children = {
            each.name: _converter(each.type, below(path, each.name), names) for each in kind
        }
        return _struct(children, at)
    if pa.types.is_decimal(kind):
        return _decimal(at)
    return _float(at, names) if pa.types.is_floating(kind) else _LEAVES[kind](at)


def _integer(bits: int, at: Place) -> Convert:
    least, most = -(1 << bits), (1 << bits) - 1

    def convert(value: Any) -> Any:
        if type(value) is not Number:
            return _null(value, at)
        try:
            number = int(value) if len(value) <= _MOST_DIGITS else most + 1
        except ValueError:
            raise at.bad(Fault.INTEGER, value) from None
        if not least <= number <= most:
            raise at.bad(Fault.INTEGER, value)
        return number

    return convert


def _null(value: Any, at: Place) -> Any:
    """Raise for a value that is not of the column's type, unless it is null."""
    if value is not None:
        raise at.bad(Fault.KIND, value)
    return None


def _float(at: Place, names: bool) -> Convert:
    def convert(value: Any) -> Any:
        if type(value) is Number:
            return float(value)
        if type(value) is str and names and value in _NON_FINITE:
            return _NON_FINITE[value]
        return _null(value, at)

    return convert


def _decimal(at: Place) -> Convert:
    precision, scale = at.kind.precision, at.kind.scale
    unit = Decimal(1).scaleb(-scale)
    most = Decimal(10) ** (precision - scale)

    def convert(value: Any) -> Any:
        if not isinstance(value, str):
            return _null(value, at)
        match = _DECIMAL.match(value)
        if not match:
            raise at.bad(Fault.DECIMAL, value)
        if len(match[2] or "") > _MOST_EXPONENT:
            number = Decimal(0 if match[1] == "-" or not _mantissa(value) else most)
        else:
            number = Decimal(value)
        try:
            rounded = number.quantize(unit, context=_EXACT)
        except InvalidOperation:
            raise at.bad(Fault.DECIMAL, value) from None
        if rounded.copy_abs() >= most:  # `abs` rounds to 28 digits.
            raise at.bad(Fault.DECIMAL, value)
        return rounded

    return convert


def _mantissa(number: str) -> Decimal:
    return Decimal(re.split("[eE]", number, maxsplit=1)[0])


def _timestamp(zoned: bool, at: Place) -> Convert:
    seconds = _integer(63, at)

    def convert(value: Any) -> Any:
        if type(value) is str:
            moment = micros(value, zoned=zoned)
            if moment is None:
                raise at.bad(Fault.TIME, value)
            return moment
        if type(value) is Number and zoned:
            moment = int(seconds(value)) * MICROS
            if not -(1 << 63) <= moment < 1 << 63:
                raise at.bad(Fault.TIMESTAMP, value)
            return moment
        return _null(value, at)

    return convert


def _date(at: Place) -> Convert:
    def convert(value: Any) -> Any:
        if type(value) is not str:
            return _null(value, at)
        day = days(value)
        if day is None:
            raise at.bad(Fault.TIME, value)
        return day

    return convert


def _boolean(at: Place) -> Convert:
    def convert(value: Any) -> Any:
        return value if type(value) is bool else _null(value, at)

    return convert


def _string(at: Place) -> Convert:
    def convert(value: Any) -> Any:
        if type(value) is str:
            return _checked(value, at.path)
        if value is None:
            return None
        if type(value) is Number:
            return str(value)
        if type(value) is bool:
            return "true" if value else "false"
        raise NotAScalarError

    return convert


def _checked(text: str, path: str) -> str:
    """Return the text. Raise for an unpaired surrogate."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise BadValueError(Fault.TEXT, path) from None
    return text


def _binary(at: Place) -> Convert:
    def convert(value: Any) -> Any:
        if type(value) is not str:
            return _null(value, at)
        try:
            return from_base64(value)
        except ValueError:
            raise at.bad(Fault.BASE64, value) from None

    return convert


def from_base64(text: str) -> bytes:
    """Decode base64. Raises `ValueError` for anything that is not exactly base64."""
    return binascii.a2b_base64(text, strict_mode=True)


def _list(item: Convert, at: Place) -> Convert:
    def convert(value: Any) -> Any:
        return list(map(item, value)) if type(value) is list else _null(value, at)

    return convert


def _map(item: Convert, at: Place) -> Convert:
    keys = f"{at.path}{{}}"

    def convert(value: Any) -> Any:
        if type(value) is not dict:
            return _null(value, at)
        return [(_checked(key, keys), item(each)) for key, each in value.items()]

    return convert


def _struct(children: dict[str, Convert], at: Place) -> Convert:
    fields = list(children.items())

    def convert(value: Any) -> Any:
        if type(value) is not dict:
            return _null(value, at)
        return {name: child(value.get(name)) for name, child in fields}

    return convert


_LEAVES: dict[pa.DataType, Callable[[Place], Convert]] = {
    pa.int8(): partial(_integer, 7),
    pa.int16(): partial(_integer, 15),
    pa.int32(): partial(_integer, 31),
    pa.int64(): partial(_integer, 63),
    TIMESTAMP: partial(_timestamp, True),
    TIMESTAMP_NTZ: partial(_timestamp, False),
    pa.bool_(): _boolean,
    pa.string(): _string,
    pa.binary(): _binary,
    pa.date32(): _date,
}
