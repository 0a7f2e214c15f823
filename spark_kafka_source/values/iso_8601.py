"""Dates and times as texts in ISO 8601. Years beyond four digits have a sign, as Spark writes them.

Arrow writes a space in place of T, and only years of four digits.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_kafka_source.records.varints import Integers
from spark_kafka_source.values.ddl import TIMESTAMP
from spark_kafka_source.values.faults import Mask

DAY = 86_400 * 1_000_000
"""The microseconds of a day."""

_LEAST, _MOST = -719_528, 2_932_897
"""The days from year 0 up to year 10000: years of four digits."""


def iso_8601(array: pa.Array) -> pa.StringArray:
    """Return the texts of a column of DATE, TIMESTAMP or TIMESTAMP_NTZ, null where it is null.

    A TIMESTAMP has `Z` behind it. Times have six digits after the point.
    """
    far = is_far(array)
    near = pc.if_else(pa.array(~far), array, None) if far.any() else array
    texts = pc.replace_substring(near.cast(pa.string()), " ", "T")
    if far.any():
        numbers, per_day = _numbers(array)
        zone = "Z" if array.type == TIMESTAMP else ""
        signed = [f"{_far(each, per_day)}{zone}" for each in numbers[far].tolist()]
        texts = pc.replace_with_mask(texts, pa.array(far), pa.array(signed))
    return texts


def is_far(array: pa.Array) -> Mask:
    """Return which times have a year beyond four digits."""
    numbers, per_day = _numbers(array)
    far: Mask = (numbers < _LEAST * per_day) | (numbers >= _MOST * per_day)
    return far


def _numbers(array: pa.Array) -> tuple[Integers, int]:
    """Return days or microseconds since 1970, or 0 for null, and how many of them a day has."""
    per_day = 1 if pa.types.is_date(array.type) else DAY
    kind = pa.int32() if per_day == 1 else pa.int64()
    numbers: Integers = pc.fill_null(array.view(kind), 0).to_numpy()
    return numbers, per_day


def _far(number: int, per_day: int) -> str:
    days, microseconds = divmod(number, per_day)
    date = str(np.datetime64(days, "D"))
    if date[0] == "-":
        year, rest = date[1:].split("-", 1)
        signed = f"-{year:>04}-{rest}"
    else:
        signed = f"+{date}"
    return signed if per_day == 1 else f"{signed}T{time_of_day(microseconds)}"


def time_of_day(microseconds: int) -> str:
    """Return a time of day, of 24 hours or more, too. The number must not be negative."""
    seconds, fraction = divmod(microseconds, 1_000_000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour:02}:{minute:02}:{second:02}.{fraction:06}"
