"""Values as Python objects: `to_pylist` wherever it can, and texts for the times that it cannot."""

import datetime
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.values.as_python import as_python
from spark_kafka_source.values.ddl import TIMESTAMP, TIMESTAMP_NTZ
from spark_kafka_source.values.iso_8601 import DAY, iso_8601
from spark_kafka_source.values.json.encode import encode

TIME = pa.time64("ns")
INFINITY = 9223372036825200000  # PostgreSQL's infinity in microseconds, as Debezium writes it.
INT64 = st.integers(-(2**63), 2**63 - 1)
EDGES = st.sampled_from([-62135596800000000, 253402300800000000, INFINITY, -(2**63), 2**63 - 1])


def numbers(kind: pa.DataType, *values: int | None) -> pa.Array:
    width = pa.int32() if pa.types.is_date(kind) else pa.int64()
    return pa.array(values, width).view(kind)


@pytest.mark.parametrize(
    ("kind", "number", "expected"),
    [
        (TIMESTAMP, INFINITY, "+294247-01-10T04:00:25.200000Z"),
        (TIMESTAMP, -9223372036832400000, "-290308-12-21T19:59:27.600000Z"),
        (TIMESTAMP, -(2**63), "-290308-12-21T19:59:05.224192Z"),
        (TIMESTAMP, 253402300800000000, "+10000-01-01T00:00:00.000000Z"),
        (TIMESTAMP, -62135596800000001, "0000-12-31T23:59:59.999999Z"),
        (TIMESTAMP_NTZ, INFINITY, "+294247-01-10T04:00:25.200000"),
        (pa.date32(), 2932897, "+10000-01-01"),
        (pa.date32(), 2**31 - 1, "+5881580-07-11"),
        (pa.date32(), -(2**31), "-5877641-06-23"),
        (pa.date32(), -719529, "-0001-12-31"),
        (pa.date32(), -719163, "0000-12-31"),
        (TIME, 90_000_000_000_000, "+25:00:00.000000"),
        (TIME, 86_400_000_000_000, "+24:00:00.000000"),
        (TIME, -1_000, "-00:00:00.000001"),
        (TIMESTAMP, 253402300799999999, datetime.datetime.max.replace(tzinfo=datetime.UTC)),
        (TIMESTAMP_NTZ, -62135596800000000, datetime.datetime.min),
        (pa.date32(), 2932896, datetime.date.max),
        (pa.date32(), -719162, datetime.date.min),
        (TIME, 86_399_999_999_000, datetime.time.max),
    ],
)
def test_what_python_has_no_object_for_is_a_text(
    kind: pa.DataType, number: int, expected: object
) -> None:
    assert as_python(numbers(kind, number)) == [expected]
    # The sliced and the null.
    assert as_python(numbers(kind, 1, None, number, 1)[1:3]) == [None, expected]


def in_struct(array: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays(
        [array, pa.array(range(len(array)))], names=["at", "n"], mask=pa.array(mask(array))
    )


def in_list(array: pa.Array) -> pa.Array:
    bounds = [0, 0, *range(2, len(array), 3), len(array)]
    lists = pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), array)
    return pa.concat_arrays([lists, pa.nulls(1, lists.type), lists])


def in_map(array: pa.Array) -> pa.Array:
    bounds = pa.array([0, len(array) // 2, len(array) // 2, len(array)], pa.int32())
    names = pa.array([str(each) for each in range(len(array))])
    return pa.MapArray.from_arrays(bounds, names, array)


def mask(array: pa.Array) -> list[bool]:
    return [row % 3 == 1 for row in range(len(array))]


WRAPS: list[Callable[[pa.Array], pa.Array]] = [in_struct, in_list, in_map]


@given(st.data())
def test_nested_anywhere_near_values_are_as_to_pylist_makes_them(data: st.DataObject) -> None:
    """Far values are put in where zeros were: all other values must stay the same."""
    kind = data.draw(st.sampled_from([TIMESTAMP, TIMESTAMP_NTZ, TIME]))
    near = st.one_of(
        st.none(), st.integers(0, DAY * 1_000 - 1).map(lambda each: each // 1000 * 1000)
    )
    values = data.draw(st.lists(near, min_size=3, max_size=20))
    far = data.draw(st.sets(st.integers(0, len(values) - 1)))
    moved = [INFINITY if row in far else each for row, each in enumerate(values)]
    plain, changed = numbers(kind, *values), numbers(kind, *moved)
    for wrap in data.draw(st.lists(st.sampled_from(WRAPS), max_size=3)):
        plain, changed = wrap(plain), wrap(changed)
    start = data.draw(st.integers(0, len(plain)))
    expected = plain[start:].to_pylist()
    assert _without_texts(as_python(changed[start:]), expected) == expected
    assert as_python(plain[start:]) == expected


def _without_texts(found: Any, expected: Any) -> Any:
    """Put back what was expected where there is a text with a sign."""
    if isinstance(found, str) and found[0] in "+-":
        return expected
    if isinstance(found, dict):
        return {name: _without_texts(found[name], expected[name]) for name in found}
    if isinstance(found, list | tuple):
        assert len(found) == len(expected)
        pairs = zip(found, expected, strict=True)
        return type(found)(_without_texts(*each) for each in pairs)
    return found


@given(st.sampled_from([TIMESTAMP, TIMESTAMP_NTZ]), INT64 | EDGES)
def test_texts_are_the_number_again(kind: pa.DataType, number: int) -> None:
    """numpy reads what is written, in proleptic Gregorian years, as Spark does."""
    text = iso_8601(numbers(kind, number))[0].as_py()
    assert text.endswith("Z") == (kind == TIMESTAMP)
    date, time = text.removesuffix("Z").removeprefix("+").split("T")
    days = np.datetime64(date, "D").astype(np.int64).item()
    of_day = datetime.time.fromisoformat(time)
    seconds = (of_day.hour * 60 + of_day.minute) * 60 + of_day.second
    assert days * DAY + seconds * 1_000_000 + of_day.microsecond == number
    (printed,) = encode(numbers(kind, number)).to_pylist()
    assert printed == f'"{text}"'.encode()
