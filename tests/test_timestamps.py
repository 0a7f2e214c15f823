"""Users' timestamps: milliseconds, or dates with a zone. Seconds are not accepted."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.timestamps import iso_time, parse_timestamp, refuse_other_numbers

ONE_PM = 1_777_899_600_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (str(ONE_PM), ONE_PM),
        (ONE_PM, ONE_PM),
        (f" {ONE_PM} ", ONE_PM),
        ("2026-05-04T13:00:00Z", ONE_PM),
        (" 2026-05-04T13:00Z ", ONE_PM),
        ("2026-05-04 15:00:00+02:00", ONE_PM),
        ("2026-05-04T06:30:00-06:30", ONE_PM),
        ("2026-05-04T13:00:00.0015Z", ONE_PM + 1),
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-20T16:13:20Z", 1_700_000_000),
        ("0", 0),
        ("20261399", 20_261_399),
        ("19700100", 19_700_100),
        ("21010101", 21_010_101),
        ("2026-05-04Z", ONE_PM - 13 * 3_600_000),
        ("2026-05-04+02:00", ONE_PM - 15 * 3_600_000),
        ("999999999", 10**9 - 1),
        ("10000000000", 10**10),
        (str(2**63 - 1), 2**63 - 1),
    ],
)
def test_moments(text: str | int, expected: int) -> None:
    assert parse_timestamp("option", text) == expected


@pytest.mark.parametrize("text", ["2026-05-04T13:00:00", "2026-05-04", "2026-05-04 13:00:00.5"])
def test_a_date_without_a_zone_is_refused_with_how_to_say_it(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"which has no zone\. Write 'Z'") as refused:
        parse_timestamp("startingTimestamp", text)
    assert refused.value.option == "startingTimestamp"
    assert repr(text) in str(refused.value)


@pytest.mark.parametrize(
    "text",
    ["", "now", "-1", "1.5", "1e3", "2026-13-01Z", "2026-05-04+02:00Z", "1969-12-31T23:59Z", -1],
)
def test_what_is_no_moment(text: str | int) -> None:
    with pytest.raises(ConfigurationError, match="'1760000000000' or '2025-10-09T08:53:20Z'"):
        parse_timestamp("option", text)


@pytest.mark.parametrize("seconds", ["1700000000", 1_700_000_000])
def test_seconds_are_refused_with_the_date_that_they_mean(seconds: str | int) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_timestamp("startingTimestamp", seconds)
    assert str(refused.value) == (
        "Option 'startingTimestamp': found 1700000000, which is '1970-01-20T16:13:20.000Z' in "
        "milliseconds. In seconds it is '2023-11-14T22:13:20.000Z': write 1700000000000. Times are "
        "in milliseconds since 1970"
    )
    assert "1700000000" not in str(refused.value.without_values())
    assert "2023" not in str(refused.value.without_values())


@given(st.dates(date(1970, 1, 1), date(2100, 12, 31)))
def test_the_digits_of_a_date_are_refused_with_how_to_write_it(day: date) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_timestamp("startingTimestamp", f"{day:%Y%m%d}")
    assert f"found {day:%Y%m%d}, which is '1970-01-01T0" in str(refused.value)
    assert f"For the date write '{day}Z'. Times are in" in str(refused.value)


def test_where_it_stood_is_said() -> None:
    with pytest.raises(ConfigurationError, match="found 1700000000 for 't', which is"):
        refuse_other_numbers("option", 1_700_000_000, " for {}", "t")


ZONES = st.sampled_from(["Z", " Z", "+02:00", "-0930", "+02", " -23:59", "+00:00"])


@given(st.dates(date(1970, 1, 3), date(9998, 1, 1)), ZONES)
def test_any_date_in_a_zone_is_its_first_moment(day: date, zone: str) -> None:
    expected = parse_timestamp("option", f"{day}T00:00:00{zone}")
    assert parse_timestamp("option", f"{day}{zone}") == expected
    assert parse_timestamp("option", f"{day:%Y%m%d}{zone}") == expected
    assert iso_time(parse_timestamp("option", f"{day}Z")) == f"{day}T00:00:00.000Z"


@given(st.datetimes(datetime(1970, 1, 2), datetime(9998, 1, 1)), st.integers(-23 * 60, 23 * 60))
def test_any_date_with_a_zone_is_its_moment(moment: datetime, minutes: int) -> None:
    aware = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    expected = (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) // 1000
    if expected >= 0:
        assert parse_timestamp("option", aware.isoformat()) == expected
        assert parse_timestamp("option", iso_time(expected)) == expected


@example("0\x1f")  # `strip` removes more characters than `int` ignores.
@given(st.text() | st.from_regex(r"[0-9TZ:+. -]{1,30}"))
def test_any_text_is_a_moment_or_refused(text: str) -> None:
    try:
        assert 0 <= parse_timestamp("option", text) < 2**63
    except ConfigurationError as refused:
        assert refused.option == "option"
