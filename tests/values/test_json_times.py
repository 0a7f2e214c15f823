"""Columns of times with more digits than microseconds have."""

import pyarrow as pa
import pytest

from spark_kafka_source.values.json.times import local_timestamps, micros, timestamps

DIGITS = "2001-02-03T04:05:06.1234567"


@pytest.mark.parametrize(("zone", "parse"), [("Z", timestamps), ("", local_timestamps)])
@pytest.mark.parametrize("other", ["1678-01-01T00:00:00", "2261-12-31T23:59:59.9999999", None])
def test_further_digits_are_dropped(zone: str, parse: object, other: str | None) -> None:
    assert callable(parse)
    texts = [None if each is None else each + zone for each in (DIGITS, other)]
    found = parse(pa.array(texts, pa.string())).cast(pa.int64()).to_pylist()
    assert found == [None if each is None else micros(each, zoned=True) for each in texts]


@pytest.mark.parametrize(("zone", "parse"), [("Z", timestamps), ("", local_timestamps)])
@pytest.mark.parametrize("other", ["1677-12-31T00:00:00", "2262-01-01T00:00:00", "nonsense"])
def test_a_year_beyond_nanoseconds_is_refused_and_never_wrapped(
    zone: str, parse: object, other: str
) -> None:
    assert callable(parse)
    with pytest.raises(pa.ArrowInvalid):
        parse(pa.array([DIGITS + zone, other + zone]))
