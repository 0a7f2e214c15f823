"""Batch reads, as in the peer's relation suites: ranges by offset and time, refused options."""

import uuid
from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.sql import DataFrame

from spark_kafka_source.testing import LocalKafka
from tests.parity.refusals import BAD_SUBSCRIPTIONS, refused
from tests.parity.scenario import Source
from tests.spark.source.test_transactions import Transactions
from tools.traffic import Events, Writer, values

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.peer]

FIRST_MS, SECOND_MS, THIRD_MS = (1_700_000_000_000 + 1_000 * each for each in range(3))
NEVER_MS = 2**63 - 1
PARTITIONS = 3


@pytest.fixture
def filled(events: Events) -> Events:
    """Topic with 0 to 9, 10 to 19 and 20 in three partitions."""
    events.create(PARTITIONS)
    for partition, numbers in enumerate([range(10), range(10, 20), [20]]):
        events.write(numbers, partition)
    return events


@pytest.fixture(scope="module")
def timed(kafka: LocalKafka) -> Events:
    """Topic with 0 to 29, in turn over three partitions, ten of each time. Tests only read it."""
    events = Events(kafka, f"timed-{uuid.uuid4().hex[:8]}")
    events.create(PARTITIONS)
    with Writer(kafka.bootstrap_servers) as writer:
        for number in range(30):
            writer.queue(
                events.name,
                str(number).encode(),
                partition=number % PARTITIONS,
                timestamp_ms=[FIRST_MS, SECOND_MS, THIRD_MS][number // 10],
            )
    return events


def numbers(frame: DataFrame) -> list[int]:
    """Return the values as sorted numbers."""
    return sorted(map(int, values(frame)))


# -- offsets -------------------------------------------------------------------------------------


def test_everything_by_default(source: Source, filled: Events) -> None:
    assert numbers(source.batch(filled.options(startingOffsets=None))) == [*range(21)]


def test_earliest_to_latest(source: Source, filled: Events) -> None:
    found = filled.options(startingOffsets="earliest", endingOffsets="latest")
    frame = source.batch(found)
    assert numbers(frame) == [*range(21)]
    filled.write(range(21, 30), partition=2)
    # Spark plans a Python data source once for each `load`.
    assert numbers(frame) == [*range(21 if source.is_ours else 30)]
    assert numbers(source.batch(found)) == [*range(30)]


def test_offsets_of_partitions(source: Source, filled: Events) -> None:
    found = filled.options(
        startingOffsets=filled.offsets(-2, -2, 0), endingOffsets=filled.offsets(-1, -1, 1)
    )
    assert numbers(source.batch(found)) == [*range(21)]
    filled.write(range(31, 40), partition=2)
    assert numbers(source.batch(found)) == [*range(21)]
    filled.write(range(21, 31), partition=1)
    assert numbers(source.batch(found)) == [*range(31)]


def test_a_pattern_that_is_only_a_part_of_a_name(source: Source, events: Events) -> None:
    events.fill(1)
    events.another("longer").fill(2)
    found = events.options(subscribe=None, subscribePattern=events.name)
    assert len(values(source.batch(found))) == 3


def test_headers(source: Source, events: Events) -> None:
    expected: dict[bytes, list[tuple[str, bytes]] | None] = {
        b"1": None,
        b"2": [("a", b"b"), ("c", b"d")],
        b"3": [("e", b"f"), ("e", b"g")],
    }
    events.create(PARTITIONS)
    with Writer(events.kafka.bootstrap_servers) as writer:
        for partition, (value, headers) in enumerate(expected.items()):
            writer.queue(events.name, value, partition=partition, headers=headers or ())
    rows = source.batch(events.options(includeHeaders=True)).collect()
    assert {bytes(row.value): row.headers for row in rows} == expected


def test_a_frame_used_twice(source: Source, events: Events) -> None:
    events.create()
    events.write(range(11))
    frame = source.batch(events.options())
    assert numbers(frame.union(frame)) == sorted([*range(11)] * 2)


def test_records_aged_out_between_runs(source: Source, events: Events) -> None:
    events.create()
    events.write(range(10))
    found = events.options(startingOffsets="earliest", endingOffsets="latest")
    frame = source.batch(found)
    assert numbers(frame) == [*range(10)]
    events.trim({0: -1})
    events.write(range(10, 20))
    # Spark plans a Python data source once for each `load`. The planned records are gone now.
    if source.is_ours:
        assert "KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE" in refused(frame.collect)
    else:
        assert numbers(frame) == [*range(10, 20)]
    assert numbers(source.batch(found)) == [*range(10, 20)]


def test_min_partitions(source: Source, filled: Events) -> None:
    found = filled.options(minPartitions=6)
    frame = source.batch(found)
    assert frame.rdd.getNumPartitions() >= 6
    assert numbers(frame) == [*range(21)]
    filled.write(range(21, 31))
    assert numbers(source.batch(found)) == [*range(31)]


# -- timestamps ----------------------------------------------------------------------------------

Given = Mapping[str, int | tuple[int, ...]]
"""Options. A tuple has a number for each partition."""

TIMES: dict[str, tuple[Given, list[int]]] = {
    "start and end": (
        {
            "startingOffsetsByTimestamp": (SECOND_MS,) * PARTITIONS,
            "endingOffsetsByTimestamp": (THIRD_MS,) * PARTITIONS,
        },
        [*range(10, 20)],
    ),
    "start, the end by offsets": (
        {
            "startingOffsetsByTimestamp": (FIRST_MS,) * PARTITIONS,
            "endingOffsets": (-1, -1, 1),
        },
        [number for number in range(30) if number % PARTITIONS != 2 or number == 2],
    ),
    "end, the start by offsets": (
        {
            "startingOffsets": (-2, -2, 0),
            "endingOffsetsByTimestamp": (THIRD_MS,) * PARTITIONS,
        },
        [*range(20)],
    ),
    "only the start": (
        {"startingOffsetsByTimestamp": (SECOND_MS,) * PARTITIONS},
        [*range(10, 30)],
    ),
    "only the end": (
        {"endingOffsetsByTimestamp": (THIRD_MS,) * PARTITIONS},
        [*range(20)],
    ),
    "one for all partitions": (
        {"startingTimestamp": SECOND_MS, "endingTimestamp": THIRD_MS},
        [*range(10, 20)],
    ),
    "an end after the last record": (
        {"endingOffsetsByTimestamp": (SECOND_MS, SECOND_MS, NEVER_MS)},
        [number for number in range(30) if number < 10 or number % PARTITIONS == 2],
    ),
    "one for all goes first": (
        {
            "startingTimestamp": THIRD_MS,
            "startingOffsetsByTimestamp": (SECOND_MS,) * PARTITIONS,
            "startingOffsets": (0,) * PARTITIONS,
        },
        [*range(20, 30)],
    ),
    "by partition goes before offsets": (
        {
            "startingOffsetsByTimestamp": (SECOND_MS,) * PARTITIONS,
            "startingOffsets": (0,) * PARTITIONS,
        },
        [*range(10, 30)],
    ),
}


def by_partition(events: Events, given: Given) -> dict[str, Any]:
    """Return the options of a source that reads `events`. Tuples become JSON."""
    found = {
        name: events.offsets(*each) if isinstance(each, tuple) else each
        for name, each in given.items()
    }
    return events.options(startingOffsets=None) | found


@pytest.mark.parametrize("times", TIMES)
def test_start_and_end_by_timestamp(source: Source, timed: Events, times: str) -> None:
    given, expected = TIMES[times]
    assert numbers(source.batch(by_partition(timed, given))) == expected


def test_a_start_after_the_last_record_is_refused(source: Source, timed: Events) -> None:
    given: Given = {
        "startingOffsetsByTimestamp": (SECOND_MS, SECOND_MS, NEVER_MS),
        "fetchOffset.retryIntervalMs": 10,
    }
    text = refused(lambda: source.batch(by_partition(timed, given)).collect())
    assert f"{timed.name}-2" in text
    assert str(NEVER_MS) in text


# -- transactions --------------------------------------------------------------------------------


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_transactions_at_both_isolation_levels(
    source: Source, events: Events, isolation: str
) -> None:
    events.create()
    committed = isolation == "read_committed"

    def read() -> list[int]:
        found = events.options(**{"kafka.isolation.level": isolation})
        return numbers(source.batch(found))

    writer = Transactions(events, "only")
    writer.open("1", "2", "3")
    assert read() == ([] if committed else [1, 2, 3])
    writer.commit_opened()
    assert read() == [1, 2, 3]
    writer.abort("4", "5")
    assert read() == ([1, 2, 3] if committed else [1, 2, 3, 4, 5])
    writer.commit("6", "7")
    assert read() == ([1, 2, 3, 6, 7] if committed else [1, 2, 3, 4, 5, 6, 7])


# -- refused options -----------------------------------------------------------------------------


# The option in our error, and words of the peer's error. The peer's error names no option.
BAD_OPTIONS: dict[str, tuple[dict[str, str | None], str, str]] = {
    "start at latest": (
        {"startingOffsets": "latest"},
        "startingOffsets",
        "can't be latest for batch",
    ),
    "start at latest in a partition": (
        {"startingOffsets": '{"$T":{"0":-1,"1":-1,"2":-1}}'},
        "startingOffsets",
        "can't be latest for batch",
    ),
    "end at earliest": (
        {"endingOffsets": "earliest"},
        "endingOffsets",
        "can't be earliest for batch",
    ),
    "end at earliest in a partition": (
        {"endingOffsets": '{"$T":{"0":-2,"1":-2,"2":-2}}'},
        "endingOffsets",
        "can't be earliest for batch",
    ),
    **BAD_SUBSCRIPTIONS,
}


@pytest.mark.parametrize("bad", BAD_OPTIONS)
def test_bad_options_are_refused(source: Source, timed: Events, bad: str) -> None:
    given, option, words = BAD_OPTIONS[bad]
    found = {name: each and each.replace("$T", timed.name) for name, each in given.items()}
    options = timed.options(startingOffsets=None) | found
    text = refused(lambda: source.batch(options).collect())
    assert (f"Option '{option}'" if source.is_ours else words) in text


MISMATCHES: dict[str, tuple[Given, str]] = {
    "other partitions": (
        {"startingOffsets": (1, 1, 1), "endingOffsets": (0, 0)},
        "MISMATCHED_TOPIC_PARTITIONS_BETWEEN_START_OFFSET_AND_END_OFFSET",
    ),
    "the end before the start": (
        {"startingOffsets": (1, 1, 1), "endingOffsets": (0, 0, 0)},
        "UNRESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET",
    ),
    "the end before the start, by timestamp": (
        {"startingOffsets": (7, 7, 7), "endingOffsetsByTimestamp": (SECOND_MS,) * PARTITIONS},
        "RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET",
    ),
    "latest before the start": (
        {"startingOffsets": (11, 11, 11)},
        "RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET",
    ),
}


@pytest.mark.parametrize("mismatch", MISMATCHES)
def test_start_and_end_that_do_not_fit_are_refused(
    source: Source, timed: Events, mismatch: str
) -> None:
    given, condition = MISMATCHES[mismatch]
    text = refused(lambda: source.batch(by_partition(timed, given)).collect())
    assert f"[{condition}]" in text
