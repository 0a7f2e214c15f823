"""Times in options: milliseconds since 1970, or a date, or a date and time (ISO 8601)."""

import re
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta

from spark_kafka_source.errors import ConfigurationError

TIMESTAMP_EXAMPLES = "'1760000000000' or '2025-10-09T08:53:20Z'"
"""Examples of a time in an option."""

A_TIMESTAMP = "a time in milliseconds since 1970, from 0, or a date, or date and time, with a zone"
"""The times that an option takes, in words."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DIGITS = "[0-9]{1,19}"
_END = 2**63
_DATE_IN_ZONE = r"([0-9]{4}-?[0-9]{2}-?[0-9]{2}) *([Z+-].*)"

LIKE_SECONDS = range(10**9, 10**10)
"""Numbers that must be seconds, from 2001 to 2286.

In milliseconds they are four months of 1970, long before Kafka.
"""


_LIKE_DATES = range(1970_01_01, 2100_12_32)


def parse_timestamp(
    option: str, given: str | int, where: str = "", *values: str | int, example: str = ""
) -> int:
    """Return milliseconds since 1970 for a number, a number as text, or a date with its zone.

    A date without a time is its first moment in that zone.

    Raises `ConfigurationError` for anything else, for a date without a zone, and for a number that
    must be seconds, or a date without hyphens. The text of the error has `where` after the value,
    with `{}` for each of `values`.
    """
    expected = f"Give {A_TIMESTAMP}, as in {example or TIMESTAMP_EXAMPLES}"
    number = _number(given)
    if number is not None:
        refuse_other_numbers(option, number, where, *values)
    elif isinstance(given, str):
        moment = moment_of(given.strip())
        if moment is not None and moment.tzinfo is None:
            found = f"found {{}}{where}, which has no zone"
            expected = "Write 'Z' behind it for UTC, or how far the zone is from UTC, as '+02:00'"
            raise ConfigurationError(option, found, expected, given, *values)
        number = None if moment is None else _since_epoch(moment)
    if number is None or not 0 <= number < _END:
        raise ConfigurationError(option, f"found {{}}{where}", expected, given, *values)
    return number


def refuse_other_numbers(option: str, number: int, where: str = "", *values: str | int) -> None:
    """Raise `ConfigurationError` for a number that must be seconds, or a date: 20261231."""
    if day := date_of(number):
        raise ConfigurationError(
            option,
            f"found {{}}{where}, which is {{}} in milliseconds. For the date write {{}}",
            "Times are in milliseconds since 1970",
            number,
            *values,
            iso_time(number),
            f"{day}Z",
        )
    if number in LIKE_SECONDS:
        raise ConfigurationError(
            option,
            f"found {{}}{where}, which is {{}} in milliseconds. In seconds it is {{}}: write {{}}",
            "Times are in milliseconds since 1970",
            number,
            *values,
            iso_time(number),
            iso_time(number * 1000),
            number * 1000,
        )


def date_of(number: int) -> date | None:
    """Return the date whose digits are the number, from 1970 to 2100, or None.

    In milliseconds these are some minutes of 1970, long before Kafka.
    """
    with suppress(ValueError):
        return date.fromisoformat(str(number)) if number in _LIKE_DATES else None
    return None


def milliseconds(moment: datetime) -> int:
    """Return milliseconds since 1970, or 0 for earlier times. A time without a zone is in UTC."""
    return max(0, _since_epoch(moment if moment.tzinfo else moment.replace(tzinfo=UTC)))


def iso_time(timestamp_ms: int) -> str:
    """Return a time in UTC, with milliseconds. Beyond the year 9999 return the number itself."""
    try:
        moment = _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return str(timestamp_ms)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z"


def _since_epoch(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _number(given: str | int) -> int | None:
    if isinstance(given, int):
        return given
    text = given.strip()  # Strips more characters than `int` ignores.
    return int(text) if re.fullmatch(_DIGITS, text) else None


def moment_of(text: str) -> datetime | None:
    """Return the moment of a date, or date and time, perhaps with a zone. None for other texts."""
    # Python knows no date with a zone: it would read the `+02:00` behind a date as two o'clock.
    text = re.sub(f"^{_DATE_IN_ZONE}$", r"\1T00\2", text)
    try:
        # Python would also read digits alone as a date.
        return None if text.isdigit() else datetime.fromisoformat(text)
    except ValueError:
        return None
