"""The start without a valid offset: `auto.offset.reset`, with KIP-1106's `by_duration`."""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

from spark_kafka_source.errors import ConfigurationError, LocalError
from spark_kafka_source.fetch.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from spark_kafka_source.topic_partition import TopicPartition

_OPTION = "kafka.auto.offset.reset"
_BY_DURATION = "by_duration:"
# The syntax of java.time.Duration, without signs: days, then hours, minutes and seconds.
_DURATION = (
    r"(?ai)P(?=.)(?:(\d{1,9})D)?"
    r"(?:T(?=.)(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,12}(?:\.\d{1,9})?)S)?)?"
)
_SECONDS = (86_400, 3_600, 60, 1)


class NoOffsetError(LocalError):
    """No committed offset, or one that is gone, while `auto.offset.reset` is `none`."""

    def __init__(self, topic_partitions: Sequence[TopicPartition]) -> None:
        super().__init__(tuple(topic_partitions))
        self.topic_partitions = tuple(topic_partitions)

    def _text(self) -> str:
        return (
            f"No offset to begin with for {', '.join(map(str, self.topic_partitions))}, and "
            f"'{_OPTION}' is 'none': seek there, or commit an offset"
        )


@dataclass(frozen=True, slots=True)
class ResetPolicy:
    """A start at a ListOffsets timestamp, or at the time `duration_ms` ago."""

    timestamp: int | None = None
    duration_ms: int | None = None

    @property
    def is_none(self) -> bool:
        """Whether there is no start, and the reader raises instead."""
        return self.timestamp is None and self.duration_ms is None

    def timestamp_now(self) -> int:
        """Return the timestamp for ListOffsets: epoch milliseconds, or one of its constants."""
        if self.duration_ms is not None:
            return max(0, int(time.time() * 1000) - self.duration_ms)
        return LATEST_TIMESTAMP if self.timestamp is None else self.timestamp


EARLIEST, LATEST, NONE = (
    ResetPolicy(EARLIEST_TIMESTAMP),
    ResetPolicy(LATEST_TIMESTAMP),
    ResetPolicy(),
)
_NAMED = {"earliest": EARLIEST, "latest": LATEST, "none": NONE}


def parse_reset(text: str) -> ResetPolicy:
    """Parse a policy: its name, or `by_duration:` and an ISO 8601 duration such as `PT1H`.

    Raises `ConfigurationError`.
    """
    text = text.strip()
    if text.lower() in _NAMED:
        return _NAMED[text.lower()]
    if text.lower().startswith(_BY_DURATION):
        match = re.fullmatch(_DURATION, text[len(_BY_DURATION) :])
        if match is not None:
            parts = zip(match.groups(), _SECONDS, strict=True)
            seconds = sum(float(number) * unit for number, unit in parts if number)
            return ResetPolicy(duration_ms=int(seconds * 1000))
    raise ConfigurationError(
        _OPTION,
        f"found {text!r}",
        "Give 'earliest', 'latest', 'none', or 'by_duration:' and a duration such as 'PT1H30M'",
    )
