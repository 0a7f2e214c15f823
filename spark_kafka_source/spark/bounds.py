"""Where a query starts and a batch ends: the options for it, in the order in which they count."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.spark.offsets import (
    OFFSETS_EXAMPLE,
    Offsets,
    parse_offsets_option,
    parse_timestamps_option,
)
from spark_kafka_source.timestamps import parse_timestamp


class Extreme(Enum):
    """An end of the log, as a word and as the number that stands for it in JSON."""

    EARLIEST = -2
    LATEST = -1


@dataclass(frozen=True, slots=True)
class Given:
    """An offset for each partition, or -1 or -2."""

    offsets: Offsets


@dataclass(frozen=True, slots=True)
class AtTimestamp:
    """The first record at or after a time, in ms since 1970, one for all or for each partition.

    `if_none` is what holds where no record is so late; None makes that an error.
    """

    timestamps: Offsets | int
    if_none: Extreme | None


@dataclass(frozen=True, slots=True)
class Committed:
    """The group's committed offsets; `if_none` is for partitions without one, None an error."""

    if_none: Extreme | None


Bound = Extreme | Given | AtTimestamp | Committed

_ALLOWED_OFFSETS = {
    Extreme.EARLIEST: "an offset from 0, -2 for earliest, -1 for latest",
    Extreme.LATEST: "an offset from 0, -1 for latest",
}
_STRATEGIES: Mapping[str, Extreme | None] = {"error": None, "latest": Extreme.LATEST}
_COMMITTED_STRATEGIES: Mapping[str, Extreme | None] = {
    **_STRATEGIES,
    "earliest": Extreme.EARLIEST,
}


@dataclass(frozen=True, slots=True)
class NamedBound:
    """A bound and the option that gave it, for errors to name."""

    option: str
    bound: Bound


FROM_LATEST = NamedBound("startingOffsets", Extreme.LATEST)
"""Where a stream begins that is not told to begin elsewhere."""


def starting_bound(options: Mapping[str, str]) -> NamedBound | None:
    """`startingTimestamp`, else `startingOffsetsByTimestamp`, else `startingOffsets`, else None.

    `options` have lower-case names. Raises `ConfigurationError` for what cannot be used.
    """
    strategy = "startingOffsetsByTimestampStrategy"
    if_none = _choice(options, strategy, "error", _STRATEGIES)
    found = _timestamps(options, "startingTimestamp", "startingOffsetsByTimestamp", if_none)
    if found:
        return found
    name = "startingOffsets"
    if options.get(name.lower(), "").strip().lower() == "committed":
        strategy = "startingOffsetsCommittedStrategy"
        return NamedBound(
            name, Committed(_choice(options, strategy, "error", _COMMITTED_STRATEGIES))
        )
    return _offsets(options, name, least=Extreme.EARLIEST)


def ending_bound(options: Mapping[str, str]) -> NamedBound | None:
    """`endingTimestamp`, else `endingOffsetsByTimestamp`, else `endingOffsets`, else None."""
    found = _timestamps(options, "endingTimestamp", "endingOffsetsByTimestamp", Extreme.LATEST)
    return found or _offsets(options, "endingOffsets", least=Extreme.LATEST)


def _timestamps(
    options: Mapping[str, str], for_all: str, for_each: str, if_none: Extreme | None
) -> NamedBound | None:
    text = options.get(for_all.lower())
    if text is not None:
        return NamedBound(for_all, AtTimestamp(parse_timestamp(for_all, text), if_none))
    text = options.get(for_each.lower())
    if text is None:
        return None
    return NamedBound(for_each, AtTimestamp(parse_timestamps_option(for_each, text), if_none))


def _offsets(options: Mapping[str, str], name: str, *, least: Extreme) -> NamedBound | None:
    text = options.get(name.lower())
    if text is None:
        return None
    words = {bound.name.lower(): bound for bound in Extreme if bound.value >= least.value}
    if text.strip().lower() in words:
        return NamedBound(name, words[text.strip().lower()])
    if not text.strip().startswith("{"):
        known = [*words, "committed"] if least is Extreme.EARLIEST else [*words]
        expected = f"Give {' or '.join(known)}, or JSON as in {OFFSETS_EXAMPLE}"
        raise ConfigurationError(name, "found {}", expected, text)
    allowed = _ALLOWED_OFFSETS[least]
    offsets = parse_offsets_option(name, text, least=least.value, allowed=allowed)
    return NamedBound(name, Given(offsets))


def _choice(
    options: Mapping[str, str], name: str, default: str, known: Mapping[str, Extreme | None]
) -> Extreme | None:
    text = options.get(name.lower(), default).strip().lower()
    if text not in known:
        raise ConfigurationError(name, "found {}", f"Give {' or '.join(known)}", text)
    return known[text]
