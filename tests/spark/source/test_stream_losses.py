"""A stream when its topics change, and with checkpoints of other writers."""

import json
import time
from uuid import UUID

import pytest

from spark_kafka_source.errors import ConfigurationError, UnsupportedVersionError
from spark_kafka_source.fetch import OffsetRange
from spark_kafka_source.spark.conditions import DataLossError
from spark_kafka_source.spark.source import idle_pace
from spark_kafka_source.spark.source.source_offset import CheckpointError
from tests.spark.settings import A0, A1, A2, B0, parsed
from tests.spark.source.engine import Json, Log, initial, latest, ranges, reader_of, tell

pytestmark = pytest.mark.memory(nodes=2)

FAILS = parsed(startingOffsets="earliest")
GOES_ON = parsed(startingOffsets="earliest", failOnDataLoss="false")
ID, NEW_ID = UUID(int=1), UUID(int=2)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setattr(idle_pace, "LEAST_PAUSE_SECONDS", 0.0)


@pytest.fixture
def log() -> Log:
    log = Log({A0: 5, A1: 3})
    log.topic_ids, log.epochs = {"a": ID}, {A0: 1, A1: 1}
    return log


@pytest.fixture
def read(log: Log) -> Json:
    """Position of a query that has read all of the log."""
    reader = reader_of(FAILS, log)
    return latest(reader, initial(reader))


# -- losses ----------------------------------------------------------------------------------------


def test_ids_and_epochs_are_kept_in_the_checkpoint_and_in_the_tasks(log: Log, read: Json) -> None:
    assert read["topicIds"] == {"a": str(ID)}
    assert read["leaderEpochs"] == {"a": {"0": 1, "1": 1}}
    assert ranges(reader_of(FAILS, log), initial(reader_of(FAILS, log)), read) == [
        OffsetRange(A0, 0, 5, ID),
        OffsetRange(A1, 0, 3, ID),
    ]


def test_a_topic_made_anew_is_read_from_its_start_or_fails(log: Log, read: Json) -> None:
    log.topic_ids["a"] = NEW_ID
    log.end, log.first[A0] = {A0: 9, A1: 2}, 4
    with pytest.raises(DataLossError, match=r"PARTITIONS_DELETED.*made anew"):
        latest(reader_of(FAILS, log), read)
    end = latest(reader_of(GOES_ON, log), read)
    expected = [OffsetRange(A0, 4, 9, NEW_ID), OffsetRange(A1, 0, 2, NEW_ID)]
    assert ranges(reader_of(GOES_ON, log), read, end) == expected
    assert latest(reader_of(FAILS, log), end) == end


def test_a_log_that_was_cut_goes_on_where_it_was_cut_or_fails(log: Log, read: Json) -> None:
    log.epochs[A0], log.epoch_ends[A0], log.end[A0] = 2, 4, 9
    with pytest.raises(DataLossError, match=r"PARTITION_OFFSET_CHANGED.*truncated at offset 4"):
        latest(reader_of(FAILS, log), read)
    end = latest(reader_of(GOES_ON, log), read)
    assert ranges(reader_of(GOES_ON, log), read, end) == [OffsetRange(A0, 4, 9, ID)]
    assert end["leaderEpochs"]["a"]["0"] == 2
    assert latest(reader_of(FAILS, log), end) == end


def test_a_log_that_became_shorter_is_read_on_from_its_end(log: Log, read: Json) -> None:
    log.end[A0] = 4
    shorter = latest(reader_of(GOES_ON, log), read)
    assert ranges(reader_of(GOES_ON, log), read, shorter) == []
    log.end[A0] = 6
    end = latest(reader_of(GOES_ON, log), shorter)
    assert ranges(reader_of(GOES_ON, log), shorter, end) == [OffsetRange(A0, 4, 6, ID)]


def test_a_replay_after_a_loss_reads_the_same(log: Log, read: Json) -> None:
    log.topic_ids["a"], log.end = NEW_ID, {A0: 9, A1: 2}
    end = latest(reader_of(GOES_ON, log), read)
    planned = ranges(reader_of(GOES_ON, log), read, end)
    log.topic_ids["a"], log.end, log.first = UUID(int=3), {A0: 1}, {A0: 1}
    assert ranges(reader_of(GOES_ON, log), read, end) == planned


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_a_topic_made_anew_is_read_within_the_limit(log: Log, read: Json, limit: int) -> None:
    options = parsed(failOnDataLoss="false", maxOffsetsPerTrigger=str(limit))
    log.topic_ids["a"], log.end = NEW_ID, {A0: 9, A1: 2}
    reader, found = reader_of(options, log), []
    start = read
    while (end := latest(reader, start, reader.getDefaultReadLimit())) != start:
        found += ranges(reader, start, end)
        start = end
    for partition, count in ((A0, 9), (A1, 2)):
        mine = [each for each in found if each.topic_partition == partition]
        assert [each.start for each in mine] == [0, *(each.end for each in mine[:-1])]
        assert mine[-1].end == count


def test_a_topic_that_is_gone_is_done_without_and_comes_back_as_another(log: Log) -> None:
    log.end[B0], log.first[B0], log.topic_ids["b"] = 7, 0, ID
    reader = reader_of(GOES_ON, log)
    before = latest(reader, initial(reader))
    del log.end[B0], log.topic_ids["b"]
    log.end[A0] = 6
    without = latest(reader, before)
    assert ranges(reader, before, without) == [OffsetRange(A0, 5, 6, ID)]
    log.end[B0], log.topic_ids["b"] = 2, NEW_ID
    end = latest(reader, without)
    assert ranges(reader, without, end) == [OffsetRange(B0, 0, 2, NEW_ID)]


def test_a_topic_that_was_hidden_for_a_while_goes_on_where_it_was(
    log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    """Denied access hides a topic. It is the same topic later, and no record is read twice."""
    log.end[B0], log.first[B0], log.topic_ids["b"] = 7, 0, ID
    reader = reader_of(GOES_ON, log)
    before = latest(reader, initial(reader))
    hidden = log.end.pop(B0), log.topic_ids.pop("b")
    without = latest(reader, before)
    assert "b" not in without["offsets"]
    assert latest(reader, without) == without
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    log.end[B0], log.topic_ids["b"] = hidden
    log.end[B0] += 2
    end = latest(reader, without)
    assert ranges(reader, without, end) == [OffsetRange(B0, 7, 9, ID)]
    del log.end[B0], log.topic_ids["b"]
    latest(reader, end)
    assert len(caplog.records) == 2


def test_without_topic_ids_nobody_knows_whether_it_is_the_same_topic(log: Log) -> None:
    log.topic_ids = {}
    log.end[B0], log.first[B0] = 3, 0
    reader = reader_of(GOES_ON, log)
    before = latest(reader, initial(reader))
    del log.end[B0]
    without = latest(reader, before)
    log.end[B0] = 5
    end = latest(reader, without)
    assert ranges(reader, without, end) == [OffsetRange(B0, 0, 5)]


def test_a_limited_stream_does_not_crawl_through_what_is_gone(
    log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    log.end = {A0: 1_000, A1: 3}
    limited = parsed(startingOffsets="earliest", failOnDataLoss="false", maxOffsetsPerTrigger="10")
    reader = reader_of(limited, log)
    limit = reader.getDefaultReadLimit()
    first = latest(reader, initial(reader), limit)
    log.first[A0] = 900
    second = latest(reader, first, limit)
    (of_a0,) = (each for each in ranges(reader, first, second) if each.topic_partition == A0)
    assert (of_a0.start, of_a0.size) == (900, 9)
    assert "a-0: offsets 9 to 900 were deleted" in caplog.text


def test_all_topics_hidden_are_waited_for(log: Log, read: Json) -> None:
    log.end, log.topic_ids, log.epochs = {}, {}, {}
    reader = reader_of(GOES_ON, log)
    assert latest(reader, read) == read


def test_nothing_is_journalled_before_there_is_a_partition(log: Log) -> None:
    """For example, a pattern matches no topic yet."""
    end, log.end = log.end, {}
    reader = reader_of(FAILS, log)
    start = initial(reader)
    assert latest(reader, start) == start
    log.end = end
    found = latest(reader, start)
    assert ranges(reader, start, found) == [OffsetRange(A0, 0, 5, ID), OffsetRange(A1, 0, 3, ID)]


def test_tasks_know_the_leader_epoch_that_their_end_was_found_in(log: Log, read: Json) -> None:
    reader = reader_of(FAILS, log)
    tasks = reader.partitions(initial(reader), read)
    assert [each.ranges[0].leader_epoch for each in tasks] == [1, 1]  # type: ignore[attr-defined]  # ours


def test_a_restart_that_is_told_its_position_first_finds_the_same_losses(
    log: Log, read: Json
) -> None:
    """Spark before 4.2 asks for the next end without the start."""
    log.topic_ids["a"], log.end = NEW_ID, {A0: 9, A1: 2}
    failing = reader_of(FAILS, log)
    tell(failing, read)
    with pytest.raises(DataLossError, match=r"PARTITIONS_DELETED.*made anew"):
        latest(failing)
    going_on = reader_of(GOES_ON, log)
    tell(going_on, read)
    expected = [OffsetRange(A0, 0, 9, NEW_ID), OffsetRange(A1, 0, 2, NEW_ID)]
    assert ranges(going_on, read, latest(going_on)) == expected


# -- everything gone -------------------------------------------------------------------------------


def test_all_partitions_gone_is_an_error_that_says_so(log: Log, read: Json) -> None:
    log.end = {}
    with pytest.raises(DataLossError, match=r"PARTITIONS_DELETED\] a-0, a-1 "):
        latest(reader_of(FAILS, log), read)


def test_all_partitions_gone_is_no_batch_and_never_leaves_an_empty_offset(
    log: Log, read: Json
) -> None:
    ends, log.end = log.end, {}
    reader = reader_of(GOES_ON, log)
    for _ in range(3):
        assert json.dumps(latest(reader, read)) == json.dumps(read)
    assert reader.reportLatestOffset() is None
    log.end = ends | {A0: 6}
    end = latest(reader, read)
    assert ranges(reader, read, end) == [OffsetRange(A0, 5, 6, ID)]


def test_all_partitions_gone_and_made_anew_are_read_from_the_start(log: Log, read: Json) -> None:
    log.end = {}
    reader = reader_of(GOES_ON, log)
    latest(reader, read)
    log.end, log.topic_ids = {A0: 1}, {"a": NEW_ID}
    end = latest(reader, read)
    assert ranges(reader, read, end) == [OffsetRange(A0, 0, 1, NEW_ID)]


# -- checkpoints of older formats, and of Spark's own connector ------------------------------------

OLDER = [
    {"version": 1, "offsets": {"a": {"0": 5, "1": 3}}, "starts": {"a": {"0": 2}}},
    {"a": {"0": 5, "1": 3}},
    {"a": {"1": 3, "0": 5}},
]


@pytest.mark.parametrize("start", OLDER, ids=json.dumps)
def test_an_older_format_comes_back_unchanged_where_nothing_is_new(log: Log, start: Json) -> None:
    """Spark compares texts. Another text of the same offset causes a micro-batch without rows."""
    assert json.dumps(latest(reader_of(FAILS, log), start)) == json.dumps(start)


@pytest.mark.parametrize("start", OLDER, ids=json.dumps)
def test_an_older_format_is_gone_on_from_in_the_newest(log: Log, start: Json) -> None:
    log.end = {A0: 6, A1: 3, A2: 1}
    log.first[A2] = 0
    reader = reader_of(FAILS, log)
    end = latest(reader, start)
    assert ranges(reader, start, end) == [OffsetRange(A0, 5, 6, ID), OffsetRange(A2, 0, 1, ID)]
    assert (end["version"], end["topicIds"]) == (2, {"a": str(ID)})


def test_a_batch_that_sparks_own_connector_planned_is_read(log: Log) -> None:
    reader = reader_of(FAILS, log)
    start, end = {"a": {"0": 2, "1": 3}}, {"a": {"0": 4, "1": 3}}
    assert ranges(reader, start, end) == [OffsetRange(A0, 2, 4)]


@pytest.mark.parametrize(
    ("starting_offsets", "expected"),
    [("latest", []), ('{"a":{"0":2,"1":-1}}', [OffsetRange(A0, 2, 4)])],
)
def test_a_first_batch_that_sparks_own_connector_planned_begins_where_options_say(
    log: Log, starting_offsets: str, expected: list[OffsetRange]
) -> None:
    """Spark's own connector keeps the start in its own file. Spark does not show this file."""
    reader = reader_of(parsed(startingOffsets=starting_offsets), log)
    assert ranges(reader, initial(reader), {"a": {"0": 4, "1": 3}}) == expected


def test_a_newer_format_is_refused_by_name(log: Log) -> None:
    with pytest.raises(UnsupportedVersionError, match=r"format version 3; .* reads 1 to 2"):
        latest(reader_of(FAILS, log), {"version": 3, "offsets": {}})


def test_garbage_is_refused(log: Log) -> None:
    with pytest.raises(CheckpointError, match=r"cannot be read"):
        latest(reader_of(FAILS, log), {"a": {"0": "x"}})


# -- start of a stream -----------------------------------------------------------------------------


def test_an_offset_that_its_log_does_not_have_is_clamped_without_fail_on_data_loss(
    log: Log,
) -> None:
    log.first[A0] = 2
    options = parsed(startingOffsets='{"a":{"0":1,"1":9}}', failOnDataLoss="false")
    reader = reader_of(options, log)
    start = initial(reader)
    assert ranges(reader, start, latest(reader, start)) == [OffsetRange(A0, 2, 5, ID)]


def test_a_group_s_offsets_need_its_name() -> None:
    with pytest.raises(ConfigurationError, match="'committed' needs a group"):
        parsed(startingOffsets="committed")
