"""Targets of an offset reset, as in Kafka's tool: an end, a time, a shift, or an offset.

https://kafka.apache.org/documentation/#basic_ops_consumer_group
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, get_args

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.fetch import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from spark_kafka_source.fetch.offset_reset import parse_reset
from spark_kafka_source.timestamps import (
    LIKE_SECONDS,
    date_of,
    iso_time,
    milliseconds,
    moment_of,
)
from spark_kafka_source.topic_partition import TopicPartition

Named = Literal["earliest", "latest", "current"]


@dataclass(frozen=True, slots=True)
class Shift:
    """A number of offsets forward from the committed one, or backward if negative."""

    by: int


Target = Named | str | datetime | timedelta | Shift | int | Mapping[TopicPartition, int]
"""Where to set offsets.

Targets: `earliest`, `latest`, or `current` (the committed offset, or the end if there is none); the
first record at or after a time, or a span before now, also as ISO 8601 text, in UTC unless it has a
zone; a `Shift`; one offset for all partitions; or one for each.
"""

_EXPECTED = (
    "Give 'earliest', 'latest', 'current', a time such as '2026-05-04T13:00:00', a span such as "
    "'PT1H30M', an offset, or offsets by partition"
)
_MOST_DIGITS = 18


def timestamp_of(to: Target) -> int | None:
    """Return the timestamp for ListOffsets: ms since 1970, or its number for an end.

    None otherwise. Raises `ConfigurationError` for a text that is none of the above.
    """
    if isinstance(to, str):
        return _timestamp_of_text(to.strip())
    if isinstance(to, timedelta):
        return max(0, int((time.time() - to.total_seconds()) * 1000))
    return milliseconds(to) if isinstance(to, datetime) else None


def _timestamp_of_text(text: str) -> int | None:
    if text.lower() in get_args(Named):
        named = {"earliest": EARLIEST_TIMESTAMP, "latest": LATEST_TIMESTAMP}
        return named.get(text.lower())
    if text.isdecimal():
        raise _no_date(text)
    try:
        if text[:1] in ("P", "p"):
            return parse_reset(f"by_duration:{text}").timestamp_now()
        moment = moment_of(text)
    except (ConfigurationError, ValueError, OverflowError):
        moment = None
    if moment is None:
        raise ConfigurationError("to", "found {}", _EXPECTED, text)
    return milliseconds(moment)


def _no_date(digits: str) -> ConfigurationError:
    """Return the error for a number in place of a date. Python would read 1712 as a date."""
    unit, number = "milliseconds", int(digits[:_MOST_DIGITS])
    if number in LIKE_SECONDS:
        unit, number = "seconds", number * 1000
    day = date_of(number)
    date = f"{day}Z" if day else iso_time(number)
    if len(digits) > _MOST_DIGITS or date.isdecimal():  # No date is so far away.
        return ConfigurationError("to", "found {}", _EXPECTED, digits)
    found = f"found {{}}. For this {'date' if day else f'time in {unit}'} write {{}}"
    return ConfigurationError("to", found, _EXPECTED, digits, date)
