"""JSON texts of single Python values that are no objects and no arrays, strictly by type."""

import binascii
import json
import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Context, Decimal, Inexact, InvalidOperation
from operator import index
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from spark_kafka_source.values.ddl import TIMESTAMP, TIMESTAMP_NTZ
from spark_kafka_source.values.errors import quoted
from spark_kafka_source.values.json.encode import encode
from spark_kafka_source.values.one_value import refuse

Text = Callable[[Any, str], str]
"""Returns the text of a value that is not None. Raises `UnencodableRowError` with the path."""

BYTES = (bytes, bytearray, memoryview)
FLOATS = (float, np.floating)
DIGITS = 38
"""The most digits of a decimal."""
_EXACT = Context(prec=DIGITS, traps=[Inexact, InvalidOperation])


def leaf(kind: pa.DataType, written: pa.DataType) -> Text:
    """Return the writer for values of a type, which a column has as the type `written`."""
    if pa.types.is_integer(kind):
        return _integer(kind)
    if pa.types.is_floating(written):
        return _float(written)
    return _decimal(written) if pa.types.is_decimal(written) else _LEAVES[written]


def no_such_value(path: str, value: object, kind: pa.DataType) -> NoReturn:
    """Raise `UnencodableRowError` for a value of another type."""
    refuse(path, f"{quoted(value)} is no {kind}")


def whole(value: Any) -> int | None:
    """Return an integer of Python's or numpy's as an int. None for any other value."""
    if isinstance(value, bool | np.bool_):
        return None
    try:
        return index(value)
    except TypeError:
        return None


def _integer(kind: pa.DataType) -> Text:
    is_signed, bits = pa.types.is_signed_integer(kind), kind.bit_width
    numbers = range(-(1 << bits - 1), 1 << bits - 1) if is_signed else range(1 << bits)

    def text(value: Any, path: str) -> str:
        number = whole(value)
        if number is None or number not in numbers:
            no_such_value(path, value, kind)
        return str(number)

    return text


def _float(kind: pa.DataType) -> Text:
    of = np.float32 if kind == pa.float32() else np.float64

    def text(value: Any, path: str) -> str:
        number = whole(value)
        if number is None and not isinstance(value, FLOATS):
            no_such_value(path, value, kind)
        try:
            with np.errstate(over="ignore"):
                found = of(value)
        except OverflowError:
            no_such_value(path, value, kind)
        # A float may be rounded to 32 bits, but not to infinity. An integer stays as it is.
        if np.isinf(found) and not (number is None and math.isinf(value)):
            no_such_value(path, value, kind)
        if number is not None and int(found) != number:
            no_such_value(path, value, kind)
        return by_column(found, kind)

    return text


def _decimal(kind: pa.DataType) -> Text:
    unit = Decimal(1).scaleb(-kind.scale)
    most = Decimal(10) ** (kind.precision - kind.scale)

    def text(value: Any, path: str) -> str:
        number = whole(value)
        if number is None and not isinstance(value, Decimal):
            no_such_value(path, value, kind)
        try:
            found = _EXACT.quantize(Decimal(value) if number is None else Decimal(number), unit)
        except (Inexact, InvalidOperation):
            no_such_value(path, value, kind)
        if not found.is_finite() or found.copy_abs() >= most:
            no_such_value(path, value, kind)
        return str(found.copy_abs() if found.is_zero() else found)

    return text


def by_column(value: Any, kind: pa.DataType) -> str:
    """Return the text that a value has as a column of one row."""
    found: bytes = encode(pa.array([value], kind))[0].as_py()
    return found.decode()


def boolean(value: Any, path: str) -> str:
    """Return the text of a `bool`."""
    if not isinstance(value, bool):
        no_such_value(path, value, pa.bool_())
    return "true" if value else "false"


def string(value: Any, path: str) -> str:
    """Return the text of a `str` that UTF-8 has a place for."""
    if not isinstance(value, str):
        no_such_value(path, value, pa.string())
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            no_such_value(path, value, pa.string())
    return json.dumps(value, ensure_ascii=False)


def base64(value: Any, path: str) -> str:
    """Return the text of bytes."""
    if not isinstance(value, BYTES):
        no_such_value(path, value, pa.binary())
    return f'"{binascii.b2a_base64(value, newline=False).decode()}"'


def day(value: Any, path: str) -> str:
    """Return the text of a `date` that is no `datetime`."""
    if not isinstance(value, date) or isinstance(value, datetime):
        no_such_value(path, value, pa.date32())
    return f'"{value.isoformat()}"'


def moment(value: Any, path: str) -> str:
    """Return the text of a `datetime` with a time zone, in UTC."""
    _check_time(value, path, TIMESTAMP)
    if value.utcoffset() is None:
        refuse(path, f"{quoted(value)} has no time zone. Give it one")
    try:
        utc = value.astimezone(UTC).replace(tzinfo=None)
    except OverflowError:
        no_such_value(path, value, TIMESTAMP)
    return f'"{utc.isoformat(timespec="microseconds")}Z"'


def local_time(value: Any, path: str) -> str:
    """Return the text of a `datetime` without a time zone."""
    _check_time(value, path, TIMESTAMP_NTZ)
    if value.utcoffset() is not None:
        refuse(path, f"{quoted(value)} has a time zone, and the schema has times without one")
    return f'"{value.replace(tzinfo=None).isoformat(timespec="microseconds")}"'


def _check_time(value: Any, path: str, kind: pa.DataType) -> None:
    """Raise for anything but a `datetime`. Subclasses may have nanoseconds, which would be cut."""
    if not isinstance(value, datetime) or (hasattr(value, "nanosecond") and value.nanosecond):
        no_such_value(path, value, kind)


def _null(value: Any, path: str) -> NoReturn:
    no_such_value(path, value, pa.null())


_LEAVES: Mapping[pa.DataType, Text] = {
    pa.null(): _null,
    pa.bool_(): boolean,
    pa.string(): string,
    pa.binary(): base64,
    pa.date32(): day,
    TIMESTAMP: moment,
    TIMESTAMP_NTZ: local_time,
}
