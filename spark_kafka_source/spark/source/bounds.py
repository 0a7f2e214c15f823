"""The start of a query and the end of a batch: their options, in the order of precedence."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import partial

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.options.declaration import Option, Settings, Use
from spark_kafka_source.options.kinds import if_given, one_of, parsed
from spark_kafka_source.spark.source.offsets import (
    OFFSETS_EXAMPLE,
    Offsets,
    parse_offsets_option,
    parse_timestamps_option,
)
from spark_kafka_source.timestamps import parse_timestamp
from spark_kafka_source.topic_partition import TopicPartition


class Extreme(Enum):
    """An end of the log, by its word. The value is its number in JSON."""

    EARLIEST = -2
    LATEST = -1


@dataclass(frozen=True, slots=True)
class Given:
    """An offset for each partition, or -1 (latest) or -2 (earliest)."""

    offsets: Offsets
    whole_topics: Mapping[str, int] = field(default_factory=dict)
    """The offset, -1 or -2, for all partitions of each of these topics."""

    def of(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Return all offsets. `partitions` are all that the query reads."""
        whole = self.whole_topics
        return {
            **{
                partition: whole[partition.topic]
                for partition in partitions
                if partition.topic in whole
            },
            **self.offsets,
        }


@dataclass(frozen=True, slots=True)
class AtTimestamp:
    """The first record at or after a time in ms since 1970: one for all, or one per partition.

    `if_none` is the bound of a partition without such a record. None makes this an error.
    """

    timestamps: Offsets | int
    if_none: Extreme | None


@dataclass(frozen=True, slots=True)
class Committed:
    """The group's committed offsets.

    `if_none` is the bound of a partition without one. None makes this an error.
    """

    if_none: Extreme | None


Bound = Extreme | Given | AtTimestamp | Committed


@dataclass(frozen=True, slots=True)
class NamedBound:
    """A bound, and the option that gave it, for error texts."""

    option: str
    bound: Bound


FROM_LATEST = NamedBound("startingOffsets", Extreme.LATEST)
"""The default start of a stream."""


_ALLOWED_OFFSETS = {
    Extreme.EARLIEST: "an offset from 0, -2 for earliest, -1 for latest",
    Extreme.LATEST: "an offset from 0, -1 for latest",
}
_STRATEGIES: Mapping[str, Extreme | None] = {"error": None, "latest": Extreme.LATEST}
_COMMITTED_STRATEGIES = {**_STRATEGIES, "earliest": Extreme.EARLIEST}


def _parse_offsets(name: str, text: str, *, least: Extreme) -> Bound:
    words = {bound.name.lower(): bound.value for bound in Extreme if bound.value >= least.value}
    if text.strip().lower() in words:
        return Extreme(words[text.strip().lower()])
    if not text.strip().startswith("{"):
        known = [*words, "committed"] if least is Extreme.EARLIEST else [*words]
        expected = f"Give {' or '.join(known)}, or JSON as in {OFFSETS_EXAMPLE}"
        raise ConfigurationError(name, "found {}", expected, text)
    allowed = _ALLOWED_OFFSETS[least]
    return Given(*parse_offsets_option(name, text, words=words, allowed=allowed))


_TIME = if_given(parsed("ms since 1970, or a date, or date and time, with a zone", parse_timestamp))
_TIMES = if_given(parsed("JSON with a time for each partition", parse_timestamps_option))

_STARTING_TIMES: tuple[Option[Offsets | int | None], ...] = (
    Option(
        "startingTimestamp",
        _TIME,
        "a new query begins in each partition at the first record of this time or later",
    ),
    Option(
        "startingOffsetsByTimestamp",
        _TIMES,
        "the same with a time for each partition, where `startingTimestamp` is not given",
    ),
)
_STARTING_OFFSETS = Option(
    "startingOffsets",
    if_given(
        parsed(
            "`earliest`, `latest`, `committed`, or JSON with an offset, -2 (earliest) or -1 "
            "(latest) for each partition, or one word for a topic",
            partial(_parse_offsets, least=Extreme.EARLIEST),
        )
    ),
    "where a new query begins if no time is given; the default is `latest` for a stream, and "
    "`earliest` for a batch",
)
_STRATEGY = Option(
    "startingOffsetsByTimestampStrategy",
    one_of("error", _STRATEGIES),
    "what to do with a partition that has no record of the starting time or later",
)
_COMMITTED_STRATEGY = Option(
    "startingOffsetsCommittedStrategy",
    one_of("error", _COMMITTED_STRATEGIES),
    "what to do with a partition for which the group of `startingOffsets=committed` has committed "
    "nothing",
)
STARTING = (*_STARTING_TIMES, _STARTING_OFFSETS, _STRATEGY, _COMMITTED_STRATEGY)
"""The options of `starting_bound`."""

_ENDING_TIMES: tuple[Option[Offsets | int | None], ...] = (
    Option(
        "endingTimestamp",
        _TIME,
        "a batch ends in each partition before the first record of this time or later, or else at "
        "the latest offset",
        Use.BATCH_READ,
    ),
    Option(
        "endingOffsetsByTimestamp",
        _TIMES,
        "the same with a time for each partition, where `endingTimestamp` is not given",
        Use.BATCH_READ,
    ),
)
_ENDING_OFFSETS = Option(
    "endingOffsets",
    if_given(
        parsed(
            "`latest`, or JSON with an offset or -1 (latest) for each partition, or `latest` for a "
            "topic",
            partial(_parse_offsets, least=Extreme.LATEST),
        )
    ),
    "where a batch ends, not included, if no time is given; the default is `latest`",
    Use.BATCH_READ,
)
ENDING = (*_ENDING_TIMES, _ENDING_OFFSETS)
"""The options of `ending_bound`."""


def starting_bound(settings: Settings) -> NamedBound | None:
    """Return the bound of the first of these options that is given; None if none is.

    `startingTimestamp`, `startingOffsetsByTimestamp`, `startingOffsets`. Raises
    `ConfigurationError` for a bad value.
    """
    bound = _at_time(_STARTING_TIMES, settings, _STRATEGY.of(settings))
    if bound:
        return bound
    if settings.text(_STARTING_OFFSETS.name).strip().lower() == "committed":
        return NamedBound(_STARTING_OFFSETS.name, Committed(_COMMITTED_STRATEGY.of(settings)))
    return _at_offsets(_STARTING_OFFSETS, settings)


def ending_bound(settings: Settings) -> NamedBound | None:
    """Return the bound of the first of these options that is given; None if none is.

    `endingTimestamp`, `endingOffsetsByTimestamp`, `endingOffsets`.
    """
    at_time = _at_time(_ENDING_TIMES, settings, Extreme.LATEST)
    return at_time or _at_offsets(_ENDING_OFFSETS, settings)


def _at_time(
    options: Iterable[Option[Offsets | int | None]], settings: Settings, if_none: Extreme | None
) -> NamedBound | None:
    for option in options:
        timestamps = option.of(settings)
        if timestamps is not None:
            return NamedBound(option.name, AtTimestamp(timestamps, if_none))
    return None


def _at_offsets(option: Option[Bound | None], settings: Settings) -> NamedBound | None:
    bound = option.of(settings)
    return None if bound is None else NamedBound(option.name, bound)
