"""Moments as users write them: milliseconds since 1970, or a date and time (ISO 8601)."""

import re
from datetime import UTC, datetime, timedelta

from spark_kafka_source.errors import ConfigurationError

TIMESTAMP_EXAMPLES = "'1760000000000' or '2025-10-09T08:53:20Z'"
"""How a moment is written in an option."""

A_TIMESTAMP = "a time in milliseconds since 1970, from 0, or a date and time with its zone"
"""What a moment may be, in words."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DIGITS = re.compile("[0-9]{1,19}")
_END = 2**63
# As seconds, from 2001 to 2286; as milliseconds, four months of 1970, when there was no Kafka.
_LIKE_SECONDS = range(10**9, 10**10)


def parse_timestamp(
    option: str, given: str | int, where: str = "", *values: str | int, example: str = ""
) -> int:
    """Milliseconds since 1970, of a number or of a text that is a number or a date.

    Raises `ConfigurationError` for what is neither, for a date without a zone, which is a moment
    only to those who know where it was written, and for a number that is seconds. The text of the
    error has `where` behind the value, with `{}` for `values`.
    """
    expected = f"Give {A_TIMESTAMP}, as in {example or TIMESTAMP_EXAMPLES}"
    number = _number(given)
    if number is not None:
        refuse_seconds(option, number, where, *values)
    elif isinstance(given, str):
        moment = _moment(given.strip())
        if moment is not None and moment.tzinfo is None:
            found = f"found {{}}{where}, which has no zone"
            expected = "Write 'Z' behind it for UTC, or how far the zone is from UTC, as '+02:00'"
            raise ConfigurationError(option, found, expected, given, *values)
        number = None if moment is None else _since_epoch(moment)
    if number is None or not 0 <= number < _END:
        raise ConfigurationError(option, f"found {{}}{where}", expected, given, *values)
    return number


def refuse_seconds(option: str, number: int, where: str = "", *values: str | int) -> None:
    """Raises `ConfigurationError` for a number of milliseconds that is one of seconds."""
    if number in _LIKE_SECONDS:
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


def milliseconds(moment: datetime) -> int:
    """Milliseconds since 1970, 0 for what was before; in UTC unless it says else."""
    return max(0, _since_epoch(moment if moment.tzinfo else moment.replace(tzinfo=UTC)))


def iso_time(timestamp_ms: int) -> str:
    """A time in UTC, with milliseconds; beyond the year 9999 the number itself."""
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
    return int(given) if _DIGITS.fullmatch(given.strip()) else None


def _moment(text: str) -> datetime | None:
    try:
        # Python takes digits alone for a date, too.
        return None if text.isdigit() else datetime.fromisoformat(text)
    except ValueError:
        return None
