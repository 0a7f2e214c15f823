"""Start of a new stream. The stream then continues after restarts, writes and new partitions.

Five partitions have rows of two moments. The fifth partition has only rows of the first moment,
unless a test adds some.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest

from tests.parity.refusals import refused
from tests.parity.scenario import Follow, Source
from tools.traffic import Events

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.peer]

FIRST_MS = time.time_ns() // 1_000_000 - 5_000
SECOND_MS = FIRST_MS + 1_000
AT_FIRST = [[-20], [-10], [0, 1], [10, 11], [20, 21, 22]]
AT_SECOND = [[-21, -22], [-11, -12], [2], [12]]
ALSO_AT_SECOND = [23, 24]


@dataclass(frozen=True, slots=True)
class Position:
    """The options of a start, and the rows that a stream then reads."""

    options: Callable[[Events], dict[str, Any]]
    expected: list[int]


def at_timestamps(events: Events, *timestamps_ms: int) -> dict[str, Any]:
    return {"startingOffsetsByTimestamp": events.offsets(*timestamps_ms)}


def at_one_timestamp(_: Events) -> dict[str, Any]:
    return {"startingTimestamp": SECOND_MS}


POSITIONS = {
    "latest": Position(lambda _: {"startingOffsets": "latest"}, []),
    "earliest": Position(
        lambda _: {"startingOffsets": "earliest"},
        [-22, -21, -20, -12, -11, -10, 0, 1, 2, 10, 11, 12, 20, 21, 22, 23, 24],
    ),
    "specific offsets": Position(
        lambda events: {"startingOffsets": events.offsets(-2, -1, 0, 1, 2)},
        [-22, -21, -20, 0, 1, 2, 11, 12, 22, 23, 24],
    ),
    "timestamps": Position(
        lambda events: at_timestamps(events, *[SECOND_MS] * 4, FIRST_MS),
        [-22, -21, -12, -11, 2, 12, 20, 21, 22, 23, 24],
    ),
    "one timestamp": Position(at_one_timestamp, [-22, -21, -12, -11, 2, 12, 23, 24]),
}


@pytest.fixture
def written(events: Events) -> Events:
    """Topic with the rows of both moments."""
    events.create(5)
    for rows_by_partition, timestamp_ms in ((AT_FIRST, FIRST_MS), (AT_SECOND, SECOND_MS)):
        for partition, rows in enumerate(rows_by_partition):
            events.write(rows, partition, timestamp_ms=timestamp_ms)
    return events


FULL = pytest.mark.parity_full
STRATEGIES = ("assign", "subscribe", "subscribePattern")
IN_CI = {
    ("assign", "latest", True),
    ("subscribe", "earliest", False),
    ("subscribePattern", "specific offsets", True),
    ("assign", "timestamps", False),
    ("subscribePattern", "one timestamp", True),
}


STARTS = [
    pytest.param(
        *each,
        id=f"{each[0]} {each[1]} failOnDataLoss={str(each[2]).lower()}",
        marks=() if each in IN_CI else FULL,
    )
    for each in product(STRATEGIES, POSITIONS, (True, False))
]
"""All combinations. CI has each position and each strategy."""


@pytest.mark.parametrize(("strategy", "position", "fails_on_data_loss"), STARTS)
def test_a_new_stream_starts_where_it_is_told_and_goes_on(
    source: Source,
    written: Events,
    follow: Follow,
    *,
    strategy: str,
    position: str,
    fails_on_data_loss: bool,
) -> None:
    written.write(ALSO_AT_SECOND, 4, timestamp_ms=SECOND_MS)
    options = (
        written.options(startingOffsets=None, failOnDataLoss=fails_on_data_loss)
        | written.named_by(strategy)
        | POSITIONS[position].options(written)
    )
    expected = POSITIONS[position].expected
    stream = follow(source.stream(options))
    assert stream.numbers() == expected
    stream.stop()
    stream.start()
    assert stream.numbers() == expected
    stream.stop()
    written.write([30, 31])
    written.write([32], 4)
    stream.start()
    assert stream.numbers() == [*expected, 30, 31, 32]
    if strategy != "assign":
        written.grow(10)
        written.write([40, 41], 9)
    written.write([42, 43], 1)
    added = [42, 43] if strategy == "assign" else [40, 41, 42, 43]
    assert stream.numbers() == [*expected, 30, 31, 32, *added]


@pytest.mark.parametrize("position", ["timestamps", pytest.param("one timestamp", marks=FULL)])
@pytest.mark.parametrize("strategy", [pytest.param("subscribe", marks=FULL), "subscribePattern"])
def test_a_start_at_a_timestamp_without_rows(
    source: Source, written: Events, follow: Follow, strategy: str, position: str
) -> None:
    found = {
        "timestamps": at_timestamps(written, *[SECOND_MS] * 5),
        "one timestamp": at_one_timestamp(written),
    }
    options = (
        written.options(startingOffsets=None)
        | written.named_by(strategy)
        | found[position]
        | {"fetchOffset.retryIntervalMs": 10}
    )
    for given in (None, "error"):
        options["startingOffsetsByTimestampStrategy"] = given
        failing = follow(source.stream(options))
        assert f"{written.name}-4" in refused(failing.read)
    options["startingOffsetsByTimestampStrategy"] = "latest"
    stream = follow(source.stream(options))
    assert stream.numbers() == [-22, -21, -12, -11, 2, 12]
    written.write([23, 24, 25], 4, timestamp_ms=SECOND_MS)
    assert stream.numbers() == [-22, -21, -12, -11, 2, 12, 23, 24, 25]
