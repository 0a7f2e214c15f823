"""Size and time of a micro-batch: limits, a least number with a delay, and a pinned end."""

import json
import time

import pytest

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.fetch import OffsetRange
from spark_kafka_source.spark.conditions import DataLossError, OffsetMismatchError
from spark_kafka_source.spark.source import stream
from spark_kafka_source.spark.source.admission import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
)
from spark_kafka_source.spark.source.offset_arithmetic import LogEnds
from spark_kafka_source.spark.source.offsets import Offsets
from spark_kafka_source.spark.source.options import SourceOptions
from spark_kafka_source.spark.source.stream import KafkaStreamReader
from tests.spark.settings import A0, A1, A2, parsed
from tests.spark.source.engine import Log, initial, latest, ranges, reader_of, tell

pytestmark = pytest.mark.memory(nodes=2)

LEAST_5 = {"startingOffsets": "earliest", "minOffsetsPerTrigger": "5", "maxTriggerDelay": "10s"}


class Clock:
    """Clock that a test moves, and that each pause moves."""

    def __init__(self) -> None:
        self.now_seconds = 1_000.0

    def sleep(self, seconds: float) -> None:
        self.now_seconds += seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "sleep", clock.sleep)
    monkeypatch.setattr(time, "monotonic", lambda: clock.now_seconds)
    return clock


@pytest.fixture
def log() -> Log:
    return Log({A0: 5, A1: 3})


# -- the limit that Spark gets ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({}, ReadAllAvailable()),
        ({"maxOffsetsPerTrigger": "10"}, ReadMaxRows(10)),
        ({"maxBytesPerTrigger": "10k"}, ReadMaxBytes(10 << 10)),
        ({"maxBytesPerTrigger": "10k", "maxOffsetsPerTrigger": "10"}, ReadMaxRows(10)),
        ({"minOffsetsPerTrigger": "5"}, ReadMinRows(5)),
        ({"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "10"}, ReadMaxRows(10)),
    ],
)
def test_the_limit_is_the_most_else_the_least(options: dict[str, str], limit: ReadLimit) -> None:
    assert KafkaStreamReader(parsed(**options)).getDefaultReadLimit() == limit


# -- Spark 4.0 and 4.1, which give no limit --------------------------------------------------------


def test_where_spark_gives_no_limit_the_readers_own_is_kept(log: Log) -> None:
    options = parsed(startingOffsets="earliest", maxOffsetsPerTrigger="4")
    reader = reader_of(options, log)
    first = latest(reader)
    assert first["offsets"] == {"a": {"0": 2, "1": 1}}
    again = reader_of(options, log)
    tell(again, first)
    assert latest(again)["offsets"] == {"a": {"0": 4, "1": 2}}


def test_where_spark_gives_no_limit_a_least_number_is_waited_for(log: Log, clock: Clock) -> None:
    reader = reader_of(parsed(**LEAST_5), log)
    end = latest(reader)
    ranges(reader, initial(reader), end)
    log.end[A0] += 1
    assert latest(reader) == end
    clock.now_seconds += 10
    assert ranges(reader, end, latest(reader)) == [OffsetRange(A0, 5, 6)]


@pytest.mark.parametrize("asked", [False, True])
def test_the_end_carries_what_is_left_where_spark_does_not_ask_for_it(
    log: Log, monkeypatch: pytest.MonkeyPatch, asked: bool
) -> None:
    monkeypatch.setattr(stream, "HAS_ADMISSION_CONTROL", asked)
    log.end[A1] = 1
    reader = reader_of(parsed(startingOffsets="earliest", maxOffsetsPerTrigger="3"), log)
    end = latest(reader, initial(reader), ReadMaxRows(3))
    assert end.get("logEnds") == (None if asked else {"a": {"0": 5}})
    assert end.get("firstOfRun") == (None if asked else True)
    assert not {"logEnds", "firstOfRun"} & latest(reader, end).keys(), "nothing is left"


ONE = {"maxOffsetsPerTrigger": "1"}


@pytest.fixture
def before_spark_4_2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "HAS_ADMISSION_CONTROL", False)


@pytest.mark.usefixtures("before_spark_4_2")
@pytest.mark.parametrize(
    ("options", "looks", "is_told"),
    [
        (ONE, 1, True),
        (ONE, 2, False),  # It was a run with Trigger.ProcessingTime.
        ({"maxOffsetsPerTrigger": "9"}, 1, False),
        ({}, 1, False),
        (ONE | {"limitsWithAvailableNow": "accept"}, 1, False),
    ],
)
def test_a_start_warns_only_of_a_run_that_has_ended_early(
    log: Log, caplog: pytest.LogCaptureFixture, options: dict[str, str], looks: int, is_told: bool
) -> None:
    """Spark 4.0 and 4.1 do not tell the trigger, and give no limit."""
    given = parsed(startingOffsets="earliest", **options)
    last_run = reader_of(given, log)
    ends = [latest(last_run) for _ in range(looks)]
    assert not caplog.messages
    tell(reader_of(given, log), ends[-1])
    assert len(caplog.messages) == is_told
    if is_told:
        assert "not read all of a-0, a-1; this one goes on. On Spark 4." in caplog.text
        assert "'maxOffsetsPerTrigger' limits" in caplog.text
        assert "'limitsWithAvailableNow' to 'accept'" in caplog.text


def test_another_word_for_limits_with_available_now_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"'limitsWithAvailableNow': .*warn.*accept"):
        parsed(limitsWithAvailableNow="refuse")


def test_a_limit_that_spark_gives_is_not_warned_of(
    log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    reader = reader_of(parsed(startingOffsets="earliest", maxOffsetsPerTrigger="3"), log)
    latest(reader, initial(reader), reader.getDefaultReadLimit())
    assert not caplog.messages


# -- a least number of offsets, or a delay ---------------------------------------------------------


class Query:
    """A query with triggers one after another, each with the reader's own limit."""

    def __init__(self, options: SourceOptions, log: Log) -> None:
        self.reader = reader_of(options, log)
        self.end = initial(self.reader)

    def trigger(self, limit: ReadLimit | None = None) -> list[OffsetRange] | None:
        """Return the ranges of the next micro-batch; None if there is no micro-batch."""
        start = self.end
        limit = limit or self.reader.getDefaultReadLimit()
        self.end = latest(self.reader, start, limit)
        if json.dumps(self.end) == json.dumps(start):
            return None
        return ranges(self.reader, start, self.end)


def test_the_first_trigger_always_fires_then_fewer_than_the_least_wait(
    log: Log, clock: Clock
) -> None:
    log.end = {A0: 1, A1: 0}
    query = Query(parsed(**LEAST_5), log)
    assert query.trigger() == [OffsetRange(A0, 0, 1)]
    log.end[A0] = 5
    assert query.trigger() is None
    log.end[A1] = 1
    assert query.trigger() == [OffsetRange(A0, 1, 5), OffsetRange(A1, 0, 1)]


def test_a_delay_that_is_over_fires_with_what_there_is(log: Log, clock: Clock) -> None:
    query = Query(parsed(**LEAST_5), log)
    query.trigger()
    log.end[A0] += 1
    clock.now_seconds += 9
    assert query.trigger() is None
    clock.now_seconds += 1
    assert query.trigger() == [OffsetRange(A0, 5, 6)]
    log.end[A0] += 1
    assert query.trigger() is None


def test_where_nothing_waits_no_delay_fires(log: Log, clock: Clock) -> None:
    query = Query(parsed(**LEAST_5), log)
    query.trigger()
    clock.now_seconds += 3_600
    assert query.trigger() is None


def test_the_delay_is_a_quarter_of_an_hour_by_default(log: Log, clock: Clock) -> None:
    query = Query(parsed(startingOffsets="earliest", minOffsetsPerTrigger="5"), log)
    query.trigger()
    log.end[A0] += 1
    clock.now_seconds += 15 * 60 - 1
    assert query.trigger() is None
    clock.now_seconds += 1
    assert query.trigger() == [OffsetRange(A0, 5, 6)]


def test_the_first_trigger_after_a_restart_fires(log: Log) -> None:
    before = Query(parsed(**LEAST_5), log)
    before.trigger()
    log.end[A0] += 1
    restarted = Query(parsed(**LEAST_5), log)
    restarted.end = before.end
    assert restarted.trigger() == [OffsetRange(A0, 5, 6)]


def test_at_least_and_at_most_together(log: Log) -> None:
    query = Query(parsed(**LEAST_5, maxOffsetsPerTrigger="6"), log)
    assert query.trigger() == [OffsetRange(A0, 0, 3), OffsetRange(A1, 0, 2)]
    assert query.trigger() is None
    log.end[A0] = 50
    assert query.trigger() == [OffsetRange(A0, 3, 8), OffsetRange(A1, 2, 3)]


@pytest.mark.parametrize("available_now", [False, True])
def test_a_run_that_is_to_read_all_there_is_does_not_wait(log: Log, available_now: bool) -> None:
    """Trigger.Once asks for all available offsets. Trigger.AvailableNow keeps the limits."""
    before = Query(parsed(**LEAST_5), log)
    before.trigger()
    query = Query(parsed(**LEAST_5), log)
    query.end = before.end
    if available_now:
        query.reader.prepareForTriggerAvailableNow()
    limit = None if available_now else ReadAllAvailable()
    for end in (6, 7) if not available_now else (6,):
        log.end[A0] = end
        assert query.trigger(limit) == [OffsetRange(A0, end - 1, end)]
    assert query.trigger(limit) is None


def test_a_pinned_run_does_not_wait_with_its_last_batch_either(log: Log) -> None:
    query = Query(parsed(**LEAST_5, maxOffsetsPerTrigger="6"), log)
    query.reader.prepareForTriggerAvailableNow()
    assert query.trigger() == [OffsetRange(A0, 0, 3), OffsetRange(A1, 0, 2)]
    assert query.trigger() == [OffsetRange(A0, 3, 5), OffsetRange(A1, 2, 3)]
    assert query.trigger() is None


def test_an_added_partition_does_not_wait(log: Log) -> None:
    """The checkpoint must have the partition's start before retention deletes that start."""
    query = Query(parsed(**LEAST_5), log)
    query.trigger()
    log.end[A2], log.first[A2] = 1, 0
    assert query.trigger() == [OffsetRange(A2, 0, 1)]


def test_the_options_split_what_a_trigger_reads(log: Log) -> None:
    query = Query(parsed(startingOffsets="earliest", minPartitions="4"), log)
    planned = query.trigger()
    assert planned is not None
    assert [str(each) for each in planned] == [
        "a-0 [0, 1)", "a-0 [1, 3)", "a-0 [3, 5)", "a-1 [0, 1)", "a-1 [1, 3)",
    ]  # fmt: skip


# -- a pinned end ----------------------------------------------------------------------------------


def pinned(log: Log, **options: str) -> Query:
    """Return a run with Trigger.AvailableNow after its first micro-batch."""
    query = Query(parsed(startingOffsets="earliest", maxOffsetsPerTrigger="4", **options), log)
    query.reader.prepareForTriggerAvailableNow()
    assert query.trigger() == [OffsetRange(A0, 0, 2), OffsetRange(A1, 0, 1)]
    return query


def test_a_pinned_run_ends_where_it_was_pinned(log: Log) -> None:
    query = pinned(log)
    log.end |= {A0: 90, A1: 90, A2: 90}
    log.first[A2] = 0
    while query.trigger():
        pass
    assert query.end["offsets"] == {"a": {"0": 5, "1": 3}}


@pytest.mark.parametrize("fails", ["true", "false"])
def test_a_partition_that_a_pinned_run_was_to_read_and_that_is_gone_is_an_error(
    log: Log, fails: str
) -> None:
    query = pinned(log, failOnDataLoss=fails)
    del log.end[A1]
    with pytest.raises(OffsetMismatchError, match=r"^\[LOST_TOPIC_PARTITIONS_IN_END_.*a-1"):
        query.trigger()


@pytest.mark.parametrize("fails", ["true", "false"])
def test_a_log_that_does_not_reach_the_pinned_end_any_more_is_an_error(
    log: Log, fails: str
) -> None:
    query = pinned(log, failOnDataLoss=fails)
    log.end[A0] = 4
    with pytest.raises(OffsetMismatchError, match=r"^\[END_OFFSET_HAS_GREATER_.*a-0 .*5 .* 4"):
        query.trigger()


def test_the_next_run_pins_anew(log: Log) -> None:
    query = pinned(log)
    while query.trigger():
        pass
    log.end[A0] = 6
    another = Query(parsed(), log)
    another.reader.prepareForTriggerAvailableNow()
    another.end = query.end
    assert another.trigger() == [OffsetRange(A0, 5, 6)]
    assert another.trigger() is None


def test_a_pinned_run_asks_about_the_ends_that_it_was_pinned_to(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pinned ends are ahead of the position. They too may fall back for a moment."""
    query = pinned(log)
    planner = query.reader._planner
    log_ends = planner.log_ends
    asked: list[Offsets] = []

    def ask(read: Offsets) -> LogEnds:
        asked.append(read)
        return log_ends(read)

    monkeypatch.setattr(planner, "log_ends", ask)
    query.trigger()
    assert asked == [{A0: 5, A1: 3}]


def test_what_was_lost_before_a_pinned_run_began_is_data_loss(log: Log) -> None:
    before = Query(parsed(startingOffsets="earliest"), log)
    before.trigger()
    log.end[A0] = 4
    query = Query(parsed(), log)
    query.reader.prepareForTriggerAvailableNow()
    query.end = before.end
    with pytest.raises(DataLossError, match="PARTITION_OFFSET_CHANGED"):
        query.trigger()
