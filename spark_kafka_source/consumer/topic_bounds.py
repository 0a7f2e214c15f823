"""The arguments `start` and `to` of a read of topics, and the offsets that they mean."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeAlias

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.consumer.arguments import is_one, whole
from spark_kafka_source.errors import ConfigurationError, in_short, listed
from spark_kafka_source.fetch.losses import OffsetOutOfRangeError
from spark_kafka_source.fetch.offsets import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    NO_OFFSET,
    OffsetAndEpoch,
    earliest_offsets,
    latest_offsets,
    list_offsets,
)
from spark_kafka_source.records import IsolationLevel
from spark_kafka_source.timestamps import milliseconds, parse_timestamp
from spark_kafka_source.topic_partition import TopicPartition

Moment: TypeAlias = Literal["earliest", "latest"] | str | datetime | timedelta
"""A place in every partition: an end of the log, a time, or a time so long ago."""

Bound: TypeAlias = Moment | Mapping[TopicPartition, int | Moment] | Mapping[int, int | Moment]
"""A moment, or an offset or a moment for each partition."""

Ends: TypeAlias = Mapping[TopicPartition, OffsetAndEpoch]

_WORDS = {"earliest": EARLIEST_TIMESTAMP, "latest": LATEST_TIMESTAMP}
_OFFSET_END = 2**63
_MOST_SHOWN = 5
_KINDS = (
    "'earliest', 'latest', a datetime with its zone, a timedelta back from now, or a dict with one "
    "of these or an offset for each partition"
)


@dataclass(frozen=True, slots=True)
class _Time:
    """The first record of this time or later. The ends of the log have times below 0."""

    timestamp_ms: int


_Place: TypeAlias = int | _Time
"""An offset, or the time of a record."""


class GivenBound:
    """The argument `start` or `to`, checked without a broker. Raises `ConfigurationError`."""

    def __init__(self, name: str, given: Any, now: datetime) -> None:
        self._name = name
        self._of_all: _Place | None = None
        self._of_each: dict[TopicPartition | int, _Place] = {}
        if not isinstance(given, Mapping):
            self._of_all = _place(name, given, now)
            return
        for where, moment in given.items():
            self._of_each[_partition(name, where)] = _place(name, moment, now, where)

    @property
    def has_time(self) -> bool:
        """Whether some partition is bounded by the time of its records."""
        places = [*self._of_each.values(), self._of_all]
        return any(isinstance(place, _Time) and place.timestamp_ms >= 0 for place in places)

    def find(
        self, client: KafkaClient, latest: Ends, isolation_level: IsolationLevel
    ) -> dict[TopicPartition, int]:
        """Return the offset of each partition of `latest`, which has the ends of all.

        A partition without a record of the time or later has its end. Raises `ConfigurationError`
        for a dict of other partitions, `OffsetOutOfRangeError` for an offset beyond an end, and the
        errors of `list_offsets`.
        """
        places = self._places(latest)
        times = {
            partition: place.timestamp_ms
            for partition, place in places.items()
            if isinstance(place, _Time) and place.timestamp_ms != LATEST_TIMESTAMP
        }
        ends = {partition: end.offset for partition, end in latest.items()}
        for partition, at in client.run(list_offsets(client, times, isolation_level)).items():
            # The log may have grown since the look at its end.
            if at.offset != NO_OFFSET:
                ends[partition] = min(at.offset, ends[partition])
        offsets = {partition: at for partition, at in places.items() if isinstance(at, int)}
        beyond = [partition for partition, offset in offsets.items() if offset > ends[partition]]
        if beyond:
            where = beyond[0]
            raise _beyond(client, where, offsets[where], ends[where], isolation_level)
        return ends | offsets

    def _places(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, _Place]:
        if self._of_all is not None:
            return dict.fromkeys(partitions, self._of_all)
        named = self._named(partitions)
        unknown, missing = named.keys() - set(partitions), set(partitions) - named.keys()
        if unknown:
            found = f"names {min(unknown)}, which is not read"
            raise ConfigurationError(
                self._name, found, f"There are {listed(sorted(partitions), _MOST_SHOWN)}"
            )
        if missing:
            found = f"has nothing for {listed(sorted(missing), _MOST_SHOWN)}"
            raise ConfigurationError(self._name, found, "Give one for each partition that is read")
        return named

    def _named(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, _Place]:
        """Return the places by partition. A number is a partition of the only topic."""
        topics = {partition.topic for partition in partitions}
        named: dict[TopicPartition, _Place] = {}
        for given, place in self._of_each.items():
            if isinstance(given, int) and len(topics) != 1:
                expected = "Several topics are read: name partitions as TopicPartition('events', 0)"
                raise ConfigurationError(self._name, "has numbers of partitions", expected)
            partition = TopicPartition(min(topics), given) if isinstance(given, int) else given
            if partition in named:
                found = f"names {partition} twice, by its number and by its topic"
                raise ConfigurationError(self._name, found, "Give one for each partition")
            named[partition] = place
        return named


def _beyond(
    client: KafkaClient, where: TopicPartition, offset: int, seen: int, level: IsolationLevel
) -> OffsetOutOfRangeError:
    """Return the error of an offset beyond what can be read. A transaction may hide more."""
    (earliest,) = client.run(earliest_offsets(client, [where])).values()
    if level is IsolationLevel.READ_UNCOMMITTED:
        return OffsetOutOfRangeError(where, offset, earliest, seen)
    end = client.run(latest_offsets(client, [where]))[where].offset
    if offset > end:
        return OffsetOutOfRangeError(where, offset, earliest, end)
    return OffsetOutOfRangeError(where, offset, earliest, seen, held_up=end)


def _partition(name: str, given: Any) -> TopicPartition | int:
    number = _whole(given[1] if is_one(given) else given)
    if number is None:
        expected = "Name partitions as TopicPartition('events', 0), or of one topic as 0"
        raise ConfigurationError(name, "names {} for a partition", expected, in_short(given))
    return TopicPartition(given[0], number) if is_one(given) else number


def _place(name: str, given: Any, now: datetime, where: Any = None) -> _Place:
    of = "" if where is None else f" for {where}"
    if isinstance(given, str):
        word = given.strip().lower()
        return _Time(_WORDS[word] if word in _WORDS else _moment(name, given, of))
    if isinstance(given, timedelta):
        if given < timedelta(0):
            found = f"found {{}}{of}, which is to come"
            raise ConfigurationError(name, found, "A timedelta goes back from now", str(given))
        return _Time(milliseconds(max(now - given, datetime.fromtimestamp(0, UTC))))
    if isinstance(given, datetime):
        if given.utcoffset() is None:
            found = f"found {{}}{of}, which has no zone"
            expected = "Give it one, as in datetime(2026, 5, 4, 13, tzinfo=UTC)"
            raise ConfigurationError(name, found, expected, str(given))
        return _Time(milliseconds(given))
    offset = None if where is None else _whole(given)
    if offset is None:
        raise ConfigurationError(name, f"found {{}}{of}", f"Give {_KINDS}", in_short(given))
    return offset


def _moment(name: str, given: str, of: str) -> int:
    try:
        return parse_timestamp(name, given)
    except ConfigurationError as error:
        found = f"found {{}}{of}"
        # The reason may be a missing zone, which is worth to be told.
        expected = error.expected if "zone" in error.found else f"Give {_KINDS}"
        raise ConfigurationError(name, found, expected, given) from None


def _whole(given: object) -> int | None:
    number = whole(given)
    return number if number is not None and 0 <= number < _OFFSET_END else None
