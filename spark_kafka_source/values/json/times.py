"""Dates and times in ISO 8601: one at a time, which defines them, and as columns.

A text has a date, then optionally `T` or a space and a time: hours, minutes or seconds, with any
number of digits after the point, of which six count. A zone is `Z`, `+02`, `+0200` or `+02:00`.
"""

import re
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_kafka_source.values.ddl import TIMESTAMP, TIMESTAMP_NTZ

MICROS = 1_000_000
_DAY = 86_400
_EPOCH = date(1970, 1, 1).toordinal()
_YEARS, _DAYS = 400, 146_097
"""The calendar repeats after this many years, which have this many days."""
_FIRST_YEAR, _LAST_YEAR = 1678, 2261
"""The whole years that an int64 of nanoseconds can count."""
_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[T ](\d\d)(?::(\d\d)(?::(\d\d)(?:\.(\d+))?)?)?(Z|[+-]\d\d(?::?\d\d)?)?)?\Z",
    re.ASCII,
)


def micros(text: str, *, zoned: bool) -> int | None:
    """Return microseconds since 1970, or None for a text that is not a time.

    A time without a zone is UTC. A time with a zone is not accepted unless `zoned`.
    """
    match = _TIME.match(text)
    day = _day(match) if match else None
    if match is None or day is None or (match[8] and not zoned):
        return None
    hour, minute, second = (int(match[place] or 0) for place in (4, 5, 6))
    shift = _shift(match[8] or "Z")
    if hour > 23 or minute > 59 or second > 59 or shift is None:
        return None
    fraction = int((match[7] or "0")[:6].ljust(6, "0"))
    seconds = day * _DAY + hour * 3600 + minute * 60 + second - shift
    return seconds * MICROS + fraction


def days(text: str) -> int | None:
    """Return days since 1970, or None for a text that is not exactly a date."""
    match = _TIME.match(text)
    return _day(match) if match and match[4] is None else None


def _day(match: re.Match[str]) -> int | None:
    year, month, day = (int(match[place]) for place in (1, 2, 3))
    rounds, year = divmod(year, _YEARS)
    try:
        ordinal = date(year + _YEARS, month, day).toordinal()
    except ValueError:
        return None
    return ordinal + (rounds - 1) * _DAYS - _EPOCH


def _shift(zone: str) -> int | None:
    """Return how many seconds a zone is ahead of UTC."""
    if zone == "Z":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[3:].lstrip(":") or 0)
    if hours > 23 or minutes > 59:
        return None
    return (hours * 3600 + minutes * 60) * (-1 if zone[0] == "-" else 1)


def timestamps(texts: pa.Array) -> pa.Array:
    """Parse a column of times, all with a zone or all without. Raises `ArrowInvalid`."""
    try:
        return texts.cast(TIMESTAMP)
    except pa.ArrowInvalid:
        pass
    try:
        return local_timestamps(texts).cast(TIMESTAMP)
    except pa.ArrowInvalid:
        return _cut(_nanos(texts, pa.timestamp("ns", "UTC")), TIMESTAMP)


def local_timestamps(texts: pa.Array) -> pa.Array:
    """Parse a column of times without zones. Raises `ArrowInvalid`."""
    try:
        return texts.cast(TIMESTAMP_NTZ)
    except pa.ArrowInvalid:
        return _cut(_nanos(texts, pa.timestamp("ns")), TIMESTAMP_NTZ)


def _nanos(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Parse times in years that nanoseconds can count. Raises `ArrowInvalid`.

    An older pyarrow wraps around in other years instead.
    """
    years = pc.utf8_slice_codeunits(texts, 0, 4).cast(pa.int16())
    if pc.any(pc.or_(pc.less(years, _FIRST_YEAR), pc.greater(years, _LAST_YEAR))).as_py():
        raise pa.ArrowInvalid(f"a year before {_FIRST_YEAR} or after {_LAST_YEAR}")
    return texts.cast(kind)


def _cut(nanos: pa.Array, kind: pa.DataType) -> pa.Array:
    """Drop the digits beyond microseconds."""
    micros_since = np.floor_divide(pc.fill_null(nanos.view(pa.int64()), 0).to_numpy(), 1000)
    return pa.array(micros_since, mask=np.asarray(nanos.is_null())).view(kind)


def dates(texts: pa.Array) -> pa.Array:
    """Parse a column of dates. Raises `ArrowInvalid`."""
    return texts.cast(pa.date32())


_MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?"
    r"([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)\Z",
    re.ASCII,
)


def is_moment(text: str) -> bool:
    """Whether a text is a `date-time` of RFC 3339, which has a time zone."""
    match = _MOMENT.match(text)
    return match is not None and is_full_date(match[1])


def is_full_date(text: str) -> bool:
    """Whether a text is a `full-date` of RFC 3339."""
    return days(text) is not None
