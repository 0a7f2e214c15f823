"""One Python value, checked strictly against a type. Errors have the path of the value.

A struct is a dict. A list is a list. A map is a dict or a list of pairs. A moment is a `datetime`
with a time zone. Without these checks Arrow would cut 1.5 to 1, and ignore a field that the type
does not have.
"""

import datetime
import struct
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from math import isnan
from numbers import Real
from operator import index
from typing import Any, NoReturn, cast

import pyarrow as pa

from spark_kafka_source.records import UnencodableRowError
from spark_kafka_source.values.errors import quoted
from spark_kafka_source.values.fitting import below, no_such_field

_MOST_SHOWN = 100
_BYTES = (bytes, bytearray, memoryview)
_ALONE = (str, *_BYTES)
"""Types that are iterable but do not count as lists."""

_MICROSECOND = datetime.timedelta(microseconds=1)
_EPOCH = datetime.datetime(1970, 1, 1)
_UTC_EPOCH = _EPOCH.replace(tzinfo=datetime.UTC)
_FORMS = {pa.float16(): "<e", pa.float32(): "<f", pa.float64(): "<d"}
_NANOS_OF = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_INT64 = range(-(1 << 63), 1 << 63)


# -- values of several values ----------------------------------------------------------------------


def known_fields(
    value: Any, names: Collection[str], path: str, ignored: Collection[str] = ()
) -> None:
    """Raise `UnencodableRowError` if the value is not a dict, or has a field beyond these.

    `ignored` are the paths of fields that it may have besides.
    """
    if not isinstance(value, Mapping):
        refuse(path, f"{quoted(value)} is no dict")
    for name in value:
        if name not in names and below(path, name) not in ignored:
            text = str(name)[:_MOST_SHOWN]
            reason, advice = no_such_field(text, names, path)
            refuse(below(path, text), f"{reason}. {advice}")


def items_of(value: Any, path: str) -> Sequence[Any]:
    """Return the items of a list, or of another sequence, such as an array of numpy.

    Raises `UnencodableRowError`, also for an iterator, which can be read only once, and for a set,
    which has no order.
    """
    if isinstance(value, list | tuple):
        return value
    is_sequence = hasattr(value, "__len__") and hasattr(value, "__getitem__")
    if isinstance(value, (*_ALONE, Mapping)) or not is_sequence:
        refuse(path, f"{quoted(value)} is no list")
    return list(value)


def pairs_of(value: Any, path: str) -> Sequence[tuple[Any, Any]]:
    """Return the entries of a map, given as a dict or as pairs. Raises `UnencodableRowError`."""
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, _ALONE) or not hasattr(value, "__len__"):
        refuse(path, f"{quoted(value)} is no dict")
    pairs: Iterable[Any] = value
    tuples = [tuple(pair) if isinstance(pair, list | tuple) else () for pair in pairs]
    if any(len(each) != 2 for each in tuples):
        refuse(path, f"{quoted(value)} is no dict, nor a list of pairs")
    return tuples


# -- single values ---------------------------------------------------------------------------------


def boolean(value: Any, path: str) -> bool:
    """Return a boolean. Raises `UnencodableRowError` for anything else."""
    return value if isinstance(value, bool) else no_such_value(path, value, pa.bool_())


def whole(value: Any, kind: pa.DataType, path: str) -> int:
    """Return a whole number in the range of an integer type. Raises `UnencodableRowError`."""
    is_whole = hasattr(value, "__index__") and not isinstance(value, bool)
    number = index(value) if is_whole else no_such_value(path, value, kind)
    bits, is_signed = kind.bit_width, pa.types.is_signed_integer(kind)
    least, end = (-(1 << bits - 1), 1 << bits - 1) if is_signed else (0, 1 << bits)
    return number if least <= number < end else no_such_value(path, value, kind)


def real(value: Any, kind: pa.DataType, path: str) -> float:
    """Return a float or a double.

    A `float` is rounded to a type of 32 bits. A number of another type must be the same there.
    Raises `UnencodableRowError`, also for a number that would become infinite.
    """
    is_float = isinstance(value, float)
    if isinstance(value, bool) or not (is_float or isinstance(value, Real)):
        no_such_value(path, value, kind)
    try:
        number: float = struct.unpack(form := _FORMS[kind], struct.pack(form, float(value)))[0]
    except OverflowError:
        no_such_value(path, value, kind)
    is_same = is_float or number == value or isnan(number)
    return number if is_same else no_such_value(path, value, kind)


def text(value: Any, path: str) -> bytes:
    """Return a text in UTF-8. Raises `UnencodableRowError` for half a surrogate pair, too."""
    try:
        return str.encode(value)
    except (TypeError, UnicodeEncodeError):
        no_such_value(path, value, pa.string())


def octets(value: Any, path: str) -> bytes:
    """Return bytes. Raises `UnencodableRowError` for anything else."""
    return bytes(value) if isinstance(value, _BYTES) else no_such_value(path, value, pa.binary())


def unscaled(value: Any, kind: pa.DataType, path: str) -> int:
    """Return the whole number that a decimal type stores for a `Decimal` or an integer."""
    if isinstance(value, bool) or not isinstance(value, Decimal | int):
        no_such_value(path, value, kind)
    number = Decimal(value)
    if not number.is_finite() or (number and number.adjusted() + kind.scale >= kind.precision):
        no_such_value(path, value, kind)
    sign, digits, exponent = number.as_tuple()
    shift = int(exponent) + kind.scale
    whole_part = int("".join(map(str, digits)))
    if number and shift < 0:
        whole_part, rest = divmod(whole_part, 10 ** min(-shift, len(digits)))
        if rest or -shift > len(digits):
            no_such_value(path, value, kind)
    elif number:
        whole_part *= 10**shift
    return -whole_part if sign else whole_part


def moment(value: Any, kind: pa.DataType, path: str) -> int:
    """Return the number that Arrow stores for a date, a time, a timestamp or a duration.

    Raises `UnencodableRowError` for a value of another type, a `datetime` that lacks a time zone or
    has one by mistake, and a value that is finer than the unit of the type, or beyond its range.
    """
    if pa.types.is_date(kind):
        if not isinstance(value, datetime.date) or isinstance(value, datetime.datetime):
            no_such_value(path, value, kind)
        return (value - _EPOCH.date()).days
    if pa.types.is_time(kind):
        nanos = _nanos_of_day(value, kind, path)
    elif pa.types.is_duration(kind):
        nanos = _nanos(value, kind, path)
    else:
        nanos = _nanos_since_1970(value, kind, path)
    number, rest = divmod(nanos, _NANOS_OF[kind.unit])
    if rest or number not in _INT64:
        refuse(path, f"{quoted(value)} is not a whole {kind}, or beyond its range")
    return number


def _nanos_of_day(value: Any, kind: pa.DataType, path: str) -> int:
    if not isinstance(value, datetime.time):
        no_such_value(path, value, kind)
    if value.tzinfo is not None:
        refuse(path, f"{quoted(value)} has a time zone. Give a time without one")
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return (seconds * 1_000_000 + value.microsecond) * 1_000


def _nanos(value: Any, kind: pa.DataType, path: str) -> int:
    if not isinstance(value, datetime.timedelta):
        no_such_value(path, value, kind)
    # pandas' own type has nanoseconds besides.
    return (value // _MICROSECOND) * 1_000 + int(getattr(value, "nanoseconds", 0))


def _nanos_since_1970(value: Any, kind: pa.DataType, path: str) -> int:
    # pandas' NaT is a datetime, and not equal to itself.
    if not isinstance(value, datetime.datetime) or value != value:  # noqa: PLR0124
        no_such_value(path, value, kind)
    if kind.tz is not None and value.utcoffset() is None:
        refuse(path, f"{quoted(value)} has no time zone. Give one, such as datetime.UTC")
    if kind.tz is None and value.tzinfo is not None:
        refuse(path, f"{quoted(value)} has a time zone. Give a local time, without one")
    # pandas' own type has nanoseconds besides.
    nanosecond: int = getattr(value, "nanosecond", 0)
    if nanosecond:
        value = cast(Any, value).replace(nanosecond=0)
    micros: int = (value - (_EPOCH if kind.tz is None else _UTC_EPOCH)) // _MICROSECOND
    return micros * 1_000 + nanosecond


def no_such_value(path: str, value: object, kind: pa.DataType) -> NoReturn:
    """Raise `UnencodableRowError` for a value of the wrong type."""
    refuse(path, f"{quoted(value)} is no {kind}")


def refuse(path: str, reason: str) -> NoReturn:
    """Raise `UnencodableRowError` with this path and reason."""
    raise UnencodableRowError([0], f"{path}: {reason}" if path else reason)
