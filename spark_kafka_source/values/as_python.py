"""Columns as Python objects. A time that Python has no object for is a text.

Python's dates and times are of the years 1 to 9999. Those of a column are of 300,000 years before
and after: PostgreSQL's `infinity` is one, as Debezium writes it.
"""

import datetime
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_kafka_source.values.ddl import TIMESTAMP, TIMESTAMP_NTZ
from spark_kafka_source.values.iso_8601 import DAY, iso_8601, time_of_day

_EPOCH = datetime.date(1970, 1, 1).toordinal()
_FIRST, _END = 1 - _EPOCH, datetime.date.max.toordinal() + 1 - _EPOCH
_TIME = pa.time64("ns")
_NANOSECONDS = 1_000
_RANGES = {
    pa.date32(): range(_FIRST, _END),
    TIMESTAMP: range(_FIRST * DAY, _END * DAY),
    TIMESTAMP_NTZ: range(_FIRST * DAY, _END * DAY),
    _TIME: range(DAY * _NANOSECONDS),
}
"""The numbers in a column that Python has an object for, by type."""


def as_python(array: pa.Array) -> list[Any]:
    """Return the values as `to_pylist` does, and those that it cannot make as texts.

    A date or a time before the year 1, or after the year 9999, is a text in ISO 8601 with the sign
    of its year. A time of day that is no time of a day is a text with a sign: `+25:00:00.000000`.
    """
    if pa.types.is_binary(array.type) or pa.types.is_string(array.type):
        objects: list[Any] = array.to_numpy(zero_copy_only=False).tolist()  # Faster, all at once.
        return objects
    if not _has_times(array.type) or _is_plain(array):
        found: list[Any] = array.to_pylist()
        return found
    if pa.types.is_struct(array.type):
        return _structs(array)
    if pa.types.is_nested(array.type):
        return _lists(array)
    far = _far(array)
    texts = iter(_texts(array.filter(pa.array(far))))
    near = pc.if_else(pa.array(~far), array, None).to_pylist()
    return [next(texts) if is_far else each for is_far, each in zip(far, near, strict=True)]


@lru_cache(maxsize=256)
def _has_times(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_has_times(each.type) for each in kind)
    if pa.types.is_map(kind):
        return _has_times(kind.key_type) or _has_times(kind.item_type)
    return kind in _RANGES or (pa.types.is_nested(kind) and _has_times(kind.value_type))


def _is_plain(array: pa.Array) -> bool:
    """Whether Python has an object for each value."""
    if pa.types.is_struct(array.type):
        return all(_is_plain(array.field(place)) for place in range(array.type.num_fields))
    if pa.types.is_nested(array.type):
        return all(map(_is_plain, _inner(array)))
    return array.type not in _RANGES or not _far(array).any()


def _far(array: pa.Array) -> npt.NDArray[np.bool_]:
    wanted = _RANGES[array.type]
    kind = pa.int32() if pa.types.is_date(array.type) else pa.int64()
    numbers = pc.fill_null(array.view(kind), 0).to_numpy()
    far: npt.NDArray[np.bool_] = (numbers < wanted.start) | (numbers >= wanted.stop)
    return far


def _texts(array: pa.Array) -> list[str]:
    if array.type != _TIME:
        texts: list[str] = iso_8601(array).to_pylist()
        return texts
    numbers = array.view(pa.int64()).to_pylist()
    return [f"{'-+'[number >= 0]}{time_of_day(abs(number) // _NANOSECONDS)}" for number in numbers]


def _structs(array: pa.StructArray) -> list[Any]:
    names = [each.name for each in array.type]
    columns = [as_python(array.field(place)) for place in range(len(names))]
    there = array.is_valid().to_pylist()
    rows = zip(there, zip(*columns, strict=True), strict=True)
    return [dict(zip(names, row, strict=True)) if is_there else None for is_there, row in rows]


def _lists(array: pa.ListArray) -> list[Any]:
    """Return lists, and maps as lists of pairs."""
    columns = map(as_python, _inner(array))
    items = list(zip(*columns, strict=True)) if pa.types.is_map(array.type) else next(columns)
    bounds = array.offsets.to_numpy()
    bounds = (bounds - bounds[0]).tolist()
    rows = zip(array.is_valid().to_pylist(), bounds, bounds[1:], strict=False)
    return [items[start:end] if is_there else None for is_there, start, end in rows]


def _inner(array: pa.ListArray) -> list[pa.Array]:
    """Return the items of all lists, or the keys and the values of all maps."""
    start, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
    columns = [array.keys, array.items] if pa.types.is_map(array.type) else [array.values]
    return [column.slice(start, end - start) for column in columns]
