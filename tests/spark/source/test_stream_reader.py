"""Plans of a stream reader, called as Spark calls it, without a broker and without Spark."""

import json
import time
from collections.abc import Iterator

import pytest

from spark_kafka_source.fetch import OffsetRange
from spark_kafka_source.spark.conditions import DataLossError, OffsetMismatchError
from spark_kafka_source.spark.source import idle_pace
from spark_kafka_source.spark.source.admission import ReadAllAvailable, ReadMaxRows
from spark_kafka_source.spark.source.position import PositionToldLateError
from spark_kafka_source.spark.source.stream import KafkaStreamReader
from tests.spark.settings import A0, A1, A2, parsed, pauses_taken, shipped
from tests.spark.source.engine import (
    FakePlanner,
    Json,
    Log,
    initial,
    latest,
    ranges,
    reader_of,
    tell,
)

pytestmark = pytest.mark.memory(nodes=2)

EARLIEST = parsed(startingOffsets="earliest")


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """Pauses of the reader. The test does not wait for them."""
    taken = pauses_taken(monkeypatch)
    monkeypatch.setattr(idle_pace, "LEAST_PAUSE_SECONDS", 0.0)
    yield taken


@pytest.fixture
def log() -> Log:
    return Log({A0: 5, A1: 3})


def test_the_initial_offset_is_always_the_same(log: Log) -> None:
    reader = reader_of(EARLIEST, log)
    first = json.dumps(reader.initialOffset())
    latest(reader, initial(reader))
    assert json.dumps(reader.initialOffset()) == first


@pytest.mark.parametrize(
    ("starting_offsets", "expected"),
    [
        ("earliest", [OffsetRange(A0, 2, 5), OffsetRange(A1, 0, 3)]),
        ("latest", []),
        ('{"a":{"0":4,"1":-2}}', [OffsetRange(A0, 4, 5), OffsetRange(A1, 0, 3)]),
        ('{"a":{"0":-1,"1":3}}', []),
    ],
)
def test_the_first_batch_starts_where_the_option_says(
    log: Log, starting_offsets: str, expected: list[OffsetRange]
) -> None:
    log.first[A0] = 2
    reader = reader_of(parsed(startingOffsets=starting_offsets), log)
    start = initial(reader)
    assert ranges(reader, start, latest(reader, start)) == expected


def test_a_stream_starts_at_the_latest_unless_told_otherwise(log: Log) -> None:
    reader = reader_of(parsed(), log)
    start = initial(reader)
    end = latest(reader, start)
    assert ranges(reader, start, end) == []
    log.end[A0] += 2
    assert ranges(reader, end, latest(reader, end)) == [OffsetRange(A0, 5, 7)]


def test_a_replay_of_the_first_batch_reads_the_same(log: Log) -> None:
    before = reader_of(EARLIEST, log)
    start = initial(before)
    end = latest(before, start)
    planned = ranges(before, start, end)
    log.first = {A0: 4, A1: 2}
    log.end = {A0: 50, A1: 30, A2: 10}
    assert ranges(reader_of(EARLIEST, log), start, end) == planned


def test_the_start_comes_back_unchanged_where_nothing_is_new(log: Log) -> None:
    reader = reader_of(EARLIEST, log)
    end = latest(reader, initial(reader))
    assert json.dumps(latest(reader, end)) == json.dumps(end)
    assert json.dumps(latest(reader_of(EARLIEST, log), end)) == json.dumps(end)


def test_nothing_at_all_is_no_batch_without_partitions() -> None:
    reader = reader_of(EARLIEST, Log({A0: 0}))
    assert latest(reader, initial(reader))["offsets"] == {"a": {"0": 0}}


def test_the_limit_is_kept(log: Log) -> None:
    log.end = {A0: 101, A1: 11, A2: 1}
    log.first[A2] = 0
    reader = reader_of(parsed(startingOffsets="earliest", maxOffsetsPerTrigger="10"), log)
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxRows(10)
    first = latest(reader, initial(reader), limit)
    assert first["offsets"] == {"a": {"0": 8, "1": 1, "2": 1}}
    second = latest(reader, first, limit)
    assert second["offsets"] == {"a": {"0": 17, "1": 2, "2": 1}}
    everything = latest(reader, second, ReadAllAvailable())
    assert everything["offsets"] == {"a": {"0": 101, "1": 11, "2": 1}}


def test_added_partitions_are_read_from_zero(log: Log) -> None:
    reader = reader_of(parsed(), log)
    end = latest(reader, initial(reader))
    log.end[A2], log.first[A2] = 4, 0
    grown = latest(reader, end)
    assert ranges(reader, end, grown) == [OffsetRange(A2, 0, 4)]
    log.first[A2] = 2  # Retention may do this between a crash and the replay.
    assert ranges(reader_of(parsed(), log), end, grown) == [OffsetRange(A2, 0, 4)]
    log.end[A2] = 6
    assert ranges(reader, grown, latest(reader, grown)) == [OffsetRange(A2, 4, 6)]


def test_an_added_partition_that_lost_its_start_is_data_loss(log: Log) -> None:
    reader = reader_of(EARLIEST, log)
    end = latest(reader, initial(reader))
    log.end[A2], log.first[A2] = 9, 7
    with pytest.raises(DataLossError) as lost:
        latest(reader, end)
    assert lost.value.condition.endswith("ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO")
    assert "a-2: 7" in str(lost.value)


def test_deleted_partitions_are_data_loss(log: Log) -> None:
    reader = reader_of(EARLIEST, log)
    end = latest(reader, initial(reader))
    del log.end[A1]
    with pytest.raises(DataLossError, match=r"PARTITIONS_DELETED.*a-1") as lost:
        latest(reader, end)
    assert "a-0" not in str(lost.value)


def test_a_log_that_became_shorter_is_data_loss(log: Log) -> None:
    reader = reader_of(EARLIEST, log)
    end = latest(reader, initial(reader))
    log.end[A0] = 4
    with pytest.raises(
        DataLossError, match=r"PARTITION_OFFSET_CHANGED.*offset 5 and now ends at 4"
    ):
        latest(reader, end)


@pytest.mark.parametrize("offsets", ['{"a":{"0":0}}', '{"a":{"0":0,"1":0,"2":0}}'])
def test_starting_offsets_name_all_partitions_and_no_other(log: Log, offsets: str) -> None:
    reader = reader_of(parsed(startingOffsets=offsets), log)
    with pytest.raises(OffsetMismatchError, match="START_OFFSET_DOES_NOT_MATCH_ASSIGNED"):
        latest(reader, initial(reader))


@pytest.mark.parametrize("offset", [1, 6])
def test_a_starting_offset_outside_the_log_is_refused(log: Log, offset: int) -> None:
    log.first[A0] = 2
    options = parsed(startingOffsets=f'{{"a":{{"0":{offset},"1":0}}}}')
    reader = reader_of(options, log)
    with pytest.raises(
        DataLossError, match=rf"START_OFFSET_RESET.*offset {offset} of a-0 .*offsets 2 to 5"
    ):
        latest(reader, initial(reader))


# -- Trigger.AvailableNow ------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [ReadAllAvailable(), ReadMaxRows(3)])
def test_available_now_ends_at_what_was_there_when_it_began(
    log: Log, limit: ReadAllAvailable | ReadMaxRows, pauses: list[float]
) -> None:
    reader = reader_of(EARLIEST, log)
    reader.prepareForTriggerAvailableNow()
    end, ends = initial(reader), list[Json]()
    for _ in range(5):
        end = latest(reader, end, limit)
        ends.append(end)
        log.end = {A0: log.end[A0] + 1, A1: log.end[A1] + 9}
    assert ends[-1] == ends[-2]
    assert ends[-1]["offsets"] == {"a": {"0": 5, "1": 3}}
    assert not pauses


def test_available_now_from_the_latest_ends_at_once(log: Log) -> None:
    reader = reader_of(parsed(startingOffsets="latest"), log)
    reader.prepareForTriggerAvailableNow()
    start = initial(reader)
    log.end[A0] = 50
    end = latest(reader, start)
    assert ranges(reader, start, end) == []
    assert latest(reader, end) == end


def test_available_now_goes_on_where_the_last_run_ended(log: Log) -> None:
    before = reader_of(EARLIEST, log)
    before.prepareForTriggerAvailableNow()
    start = latest(before, initial(before))
    log.end[A0] = 8
    reader = reader_of(EARLIEST, log)
    reader.prepareForTriggerAvailableNow()
    assert ranges(reader, start, latest(reader, start)) == [OffsetRange(A0, 5, 8)]


# -- Spark 4.0 and 4.1: calls without arguments --------------------------------------------------


def test_without_arguments_batches_follow_each_other(log: Log) -> None:
    reader = reader_of(EARLIEST, log)
    end = latest(reader)
    assert ranges(reader, initial(reader), end) == [OffsetRange(A0, 0, 5), OffsetRange(A1, 0, 3)]
    assert json.dumps(latest(reader)) == json.dumps(end)
    log.end[A1] = 4
    assert ranges(reader, end, latest(reader)) == [OffsetRange(A1, 3, 4)]


def test_without_arguments_the_start_is_looked_up_once(log: Log) -> None:
    """The first micro-batch keeps its start, so that a replay has the same rows."""
    reader = reader_of(parsed(startingOffsets='{"a":{"0":1,"1":0}}'), log)
    end = latest(reader)
    log.first[A0], log.end[A0] = 3, 6
    start = initial(reader)
    assert ranges(reader, start, end) == [OffsetRange(A0, 1, 5), OffsetRange(A1, 0, 3)]
    assert ranges(reader, end, latest(reader)) == [OffsetRange(A0, 5, 6)]
    replayed = reader_of(parsed(startingOffsets="latest"), log)
    tell(replayed, end)
    assert ranges(replayed, start, end) == [OffsetRange(A0, 1, 5), OffsetRange(A1, 0, 3)]


@pytest.mark.parametrize("finished", [True, False])
def test_without_arguments_a_restart_goes_on(log: Log, finished: bool) -> None:
    before = reader_of(EARLIEST, log)
    first = latest(before)
    ranges(before, initial(before), first)
    log.end[A0] = 6
    planned = latest(before)
    log.end[A0], log.end[A2], log.first[A2] = 9, 2, 0
    reader = reader_of(EARLIEST, log)
    tell(reader, planned)
    if not finished:
        assert ranges(reader, first, planned) == [OffsetRange(A0, 5, 6)]
    end = latest(reader)
    assert ranges(reader, planned, end) == [OffsetRange(A0, 6, 9), OffsetRange(A2, 0, 2)]
    assert json.dumps(latest(reader)) == json.dumps(end)


def test_a_micro_batch_without_tasks_is_gone_on_from_all_the_same(log: Log) -> None:
    """Spark asks for no tasks if the query's condition is always false."""
    reader = reader_of(parsed(startingOffsets="earliest", maxOffsetsPerTrigger="4"), log)
    first = latest(reader)
    second = latest(reader)
    assert ranges(reader, first, second) == [OffsetRange(A0, 2, 4), OffsetRange(A1, 1, 2)]


def test_an_end_that_is_only_reported_does_not_count(log: Log) -> None:
    """Spark's wrapper of Trigger.AvailableNow pins an end, and then asks again for its report."""
    options = parsed(startingOffsets="earliest", maxOffsetsPerTrigger="4", kafka_group_id="g")
    reader = reader_of(options, log)
    pinned = latest(reader)
    latest(reader)
    assert ranges(reader, initial(reader), pinned) == [OffsetRange(A0, 0, 2), OffsetRange(A1, 0, 1)]
    assert log.committed == {}
    latest(reader)
    assert log.committed == {A0: 2, A1: 1}


def test_without_arguments_only_what_is_finished_is_committed(log: Log) -> None:
    options = parsed(startingOffsets="earliest", kafka_group_id="g")
    before = reader_of(options, log)
    first = latest(before)
    ranges(before, initial(before), first)
    assert log.committed == {}
    latest(before)
    assert log.committed == {A0: 5, A1: 3}
    log.end[A0] = 6
    planned = latest(before)
    for finished in (False, True):
        reader = reader_of(options, log)
        tell(reader, planned)
        if not finished:
            ranges(reader, first, planned)
            assert log.committed == {A0: 5, A1: 3}
        latest(reader)
        assert log.committed == {A0: 6, A1: 3}
        log.committed = {}


def test_an_older_checkpoint_goes_back_unchanged_without_arguments(log: Log) -> None:
    older = {"version": 1, "offsets": {"a": {"0": 5, "1": 3}}, "starts": {"a": {"0": 2}}}
    reader = reader_of(EARLIEST, log)
    tell(reader, older)
    assert json.dumps(latest(reader)) == json.dumps(older)


def test_a_query_whose_topics_come_later_begins_when_they_are_there() -> None:
    """Spark 4.0 makes a micro-batch of the initial offset alone."""
    log = Log({})
    reader = reader_of(EARLIEST, log)
    start = latest(reader)
    assert start == initial(reader)
    tell(reader, start)
    log.end[A0], log.first[A0] = 2, 0
    assert ranges(reader, start, latest(reader)) == [OffsetRange(A0, 0, 2)]


def test_a_position_that_is_told_too_late_is_an_error(log: Log) -> None:
    """Spark's wrapper of Trigger.AvailableNow asks for an end before all else.

    It was planned by `startingOffsets`, and Spark would take it for that of the restart.
    """
    before = reader_of(EARLIEST, log)
    told = latest(before)
    reader = reader_of(EARLIEST, log)
    log.end[A0] = 9
    latest(reader)
    with pytest.raises(PositionToldLateError, match=r'"0": 5.* Set .spark\.sql\.'):
        tell(reader, told)


# -- progress ------------------------------------------------------------------------------------


def test_only_what_is_finished_is_committed(log: Log) -> None:
    reader = reader_of(parsed(startingOffsets="earliest", kafka_group_id="g"), log)
    start = initial(reader)
    first = latest(reader, start)
    ranges(reader, start, first)
    assert log.committed == {}
    log.end[A0] = 9
    second = latest(reader, first)
    assert log.committed == {A0: 5, A1: 3}
    reader.commit(first)
    assert log.committed == {A0: 5, A1: 3}
    reader.commit(second)
    assert log.committed == {A0: 9, A1: 3}


def test_without_a_group_nothing_is_committed(log: Log) -> None:
    reader = reader_of(EARLIEST, log)
    reader.commit(latest(reader, initial(reader)))
    assert log.committed == {}


def test_the_latest_offsets_are_reported(log: Log) -> None:
    reader = reader_of(EARLIEST, log)
    assert reader.reportLatestOffset() is None
    latest(reader, initial(reader), ReadMaxRows(2))
    reported = reader.reportLatestOffset()
    assert reported is not None
    assert reported["offsets"] == {"a": {"0": 5, "1": 3}}


def test_an_idle_source_is_not_asked_all_the_time(
    log: Log, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader pauses before it asks the brokers, so Spark gets their latest answer."""
    monkeypatch.setattr(idle_pace, "LEAST_PAUSE_SECONDS", 0.2)
    reader = reader_of(EARLIEST, log)
    end = latest(reader, initial(reader))
    latest(reader, end)
    assert not pauses
    monkeypatch.setattr(time, "sleep", lambda seconds: log.end.update({A1: 5}))
    assert latest(reader, end)["offsets"]["a"] == {"0": 5, "1": 5}


# -- life ----------------------------------------------------------------------------------------


def test_a_reader_crosses_processes_before_it_is_used() -> None:
    reader = KafkaStreamReader(parsed(startingOffsets='{"a":{"0":1}}', kafka_group_id="g"))
    copy = shipped(reader)
    assert json.dumps(copy.initialOffset()) == json.dumps(reader.initialOffset())


def test_stop_closes_what_was_opened(log: Log) -> None:
    reader = reader_of(EARLIEST, log)
    reader.stop()
    planner = reader.__dict__["_planner"]
    assert isinstance(planner, FakePlanner)
    assert planner.closed


def test_stop_opens_nothing() -> None:
    reader = KafkaStreamReader(EARLIEST)
    reader.stop()
    assert "_planner" not in reader.__dict__
