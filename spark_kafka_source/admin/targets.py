"""Where offsets are reset to, as Kafka's tool has it: an end, a time, so many on or back, a number.

https://kafka.apache.org/documentation/#basic_ops_consumer_group
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, get_args

from spark_kafka_source.consumer import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from spark_kafka_source.consumer.offset_reset import parse_reset
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.timestamps import iso_time, milliseconds, refuse_seconds
from spark_kafka_source.topic_partition import TopicPartition

Named = Literal["earliest", "latest", "current"]


@dataclass(frozen=True, slots=True)
class Shift:
    """So many offsets on from the committed one, or with less than 0 back."""

    by: int


Target = Named | str | datetime | timedelta | Shift | int | Mapping[TopicPartition, int]
"""Where to: `earliest`, `latest`, or `current` (what is committed, else the end); the first record
at or after a time, or a span ago, also as ISO 8601 text, in UTC unless it says else; a `Shift`; an
offset for all partitions; or one for each."""

_EXPECTED = (
    "Give 'earliest', 'latest', 'current', a time such as '2026-05-04T13:00:00', a span such as "
    "'PT1H30M', an offset, or offsets by partition"
)
_MOST_DIGITS = 18


def timestamp_of(to: Target) -> int | None:
    """What to ask ListOffsets for: ms since the epoch, or its number for an end; else None.

    Raises `ConfigurationError` for a text that is none of the above.
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
        return milliseconds(datetime.fromisoformat(text))
    except (ConfigurationError, ValueError, OverflowError):
        raise ConfigurationError("to", "found {}", _EXPECTED, text) from None


def _no_date(digits: str) -> ConfigurationError:
    """For a number in the place of a date: Python would read a date of 1712 into some."""
    if len(digits) > _MOST_DIGITS:
        return ConfigurationError("to", "found {}", _EXPECTED, digits)
    refuse_seconds("to", int(digits))
    found = "found {}, which in milliseconds is {}"
    return ConfigurationError("to", found, _EXPECTED, digits, iso_time(int(digits)))
