"""Checks that topics are the ones read before. Each loss is an error, or one warning."""

import logging
from collections.abc import Callable
from uuid import UUID

import pytest

from spark_kafka_source.spark.conditions import DataLoss, DataLossError, OffsetMismatchError
from spark_kafka_source.spark.source.offsets import Offsets
from spark_kafka_source.spark.source.source_offset import SourceOffset
from spark_kafka_source.spark.source.topic_changes import check_pinned_end, new_starts
from tests.spark.settings import A0, A1, A2, B0, parsed
from tests.spark.source.engine import FakePlanner, Log

pytestmark = pytest.mark.memory(nodes=2)

ID, NEW_ID = UUID(int=1), UUID(int=2)
READ = SourceOffset(
    {A0: 5, A1: 3, B0: 4}, leader_epochs={A0: 1, A1: 1, B0: 1}, topic_ids={"a": ID, "b": ID}
)
FAILS, GOES_ON = DataLoss(), DataLoss(fails=False)
Change = Callable[[Log], None]


@pytest.fixture
def log() -> Log:
    """Log that ends where the query has read to."""
    log = Log(dict(READ.offsets))
    log.epochs, log.topic_ids = dict(READ.leader_epochs), dict(READ.topic_ids)
    return log


def starts(log: Log, data_loss: DataLoss = FAILS, position: SourceOffset = READ) -> Offsets:
    planner = FakePlanner(parsed(), log)
    return new_starts(position, planner.log_ends(), planner, data_loss)


# -- no loss ---------------------------------------------------------------------------------------


def test_the_same_logs_or_longer_ones_go_on(log: Log) -> None:
    assert starts(log) == {}
    log.end = {each: end + 7 for each, end in log.end.items()}
    log.first = {each: end - 1 for each, end in log.end.items()}
    assert starts(log) == {}


def test_added_partitions_begin_at_zero(log: Log) -> None:
    log.end[A2], log.first[A2] = 4, 0
    assert starts(log) == {A2: 0}


@pytest.mark.parametrize("epoch_end", [5, 9, -1])
def test_another_leader_whose_log_reaches_as_far_is_no_loss(log: Log, epoch_end: int) -> None:
    """A leader answers -1 if it does not know the epoch."""
    log.epochs[A0], log.epoch_ends[A0] = 2, epoch_end
    log.end[A0] = 9
    assert starts(log) == {}


def test_without_ids_and_epochs_nothing_is_missed_that_a_format_without_them_cannot_know(
    log: Log,
) -> None:
    log.topic_ids["a"], log.epochs[A0], log.epoch_ends[A0] = NEW_ID, 2, 0
    assert starts(log, position=SourceOffset(READ.offsets)) == {}


def test_a_broker_that_does_not_tell_ids_and_epochs_is_believed(log: Log) -> None:
    log.topic_ids, log.epochs, log.epoch_ends = {}, {}, {A0: 0}
    assert starts(log) == {}


# -- losses ----------------------------------------------------------------------------------------


def recreated_with_more(log: Log) -> None:
    log.topic_ids["a"] = NEW_ID
    log.end |= {A0: 50, A1: 50}


def recreated_with_less(log: Log) -> None:
    log.topic_ids["a"] = NEW_ID
    log.end |= {A0: 2, A1: 1}
    log.epochs |= {A0: 0, A1: 0}
    log.epoch_ends = {A0: 0, A1: 0}


def recreated_and_aged(log: Log) -> None:
    log.topic_ids["a"] = NEW_ID
    log.end |= {A0: 9, A1: 9}
    log.first |= {A0: 6, A1: 2}


def recreated_with_one_partition(log: Log) -> None:
    log.topic_ids["a"] = NEW_ID
    log.end[A0] = 2
    del log.end[A1]


def recreated_with_another_partition(log: Log) -> None:
    log.topic_ids["a"] = NEW_ID
    log.end |= {A0: 2, A1: 2, A2: 2}
    log.first[A2] = 1


def truncated_and_grown(log: Log) -> None:
    log.epochs[A0], log.epoch_ends[A0], log.end[A0] = 2, 4, 9


def truncated_to_nothing(log: Log) -> None:
    log.epochs[A0], log.epoch_ends[A0], log.end[A0] = 2, 0, 0


def truncated_and_hidden(log: Log) -> None:
    """The end of the epoch is known, but it lies above the high watermark."""
    log.epochs[A0], log.epoch_ends[A0], log.end[A0] = 2, 4, 2


def shorter(log: Log) -> None:
    log.end[A0] = 4


def deleted_partition(log: Log) -> None:
    del log.end[A1]


def deleted_topic(log: Log) -> None:
    del log.end[A0], log.end[A1], log.topic_ids["a"]


def added_late(log: Log) -> None:
    log.end[A2], log.first[A2] = 9, 7


RECREATED = "PARTITIONS_DELETED] Topics a were deleted and made anew"
DELETED = "PARTITIONS_DELETED] "
CHANGED = "PARTITION_OFFSET_CHANGED] a-0 was read up to offset 5"
CUT = f"{CHANGED}, but its log was truncated at offset "
ADDED = "ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO] "
CHANGES: list[tuple[Change, str, Offsets]] = [
    (recreated_with_more, RECREATED, {A0: 0, A1: 0}),
    (recreated_with_less, RECREATED, {A0: 0, A1: 0}),
    (recreated_and_aged, RECREATED, {A0: 6, A1: 2}),
    (recreated_with_one_partition, RECREATED, {A0: 0}),
    (recreated_with_another_partition, RECREATED, {A0: 0, A1: 0, A2: 1}),
    (truncated_and_grown, CUT + "4", {A0: 4}),
    (truncated_to_nothing, CUT + "0", {A0: 0}),
    (truncated_and_hidden, CUT + "4", {A0: 2}),
    (shorter, CHANGED + " and now ends at 4", {A0: 4}),
    (deleted_partition, DELETED + "a-1 existed", {}),
    (deleted_topic, DELETED + "a-0, a-1 existed", {}),
    (added_late, ADDED + "Added partitions do not start at offset 0 but at a-2: 7", {A2: 7}),
]


@pytest.mark.parametrize(
    ("change", "told", "expected"), CHANGES, ids=[change.__name__ for change, *_ in CHANGES]
)
def test_a_loss_fails_or_is_logged_and_gone_on_from(
    log: Log, change: Change, told: str, expected: Offsets, caplog: pytest.LogCaptureFixture
) -> None:
    change(log)
    with pytest.raises(DataLossError) as lost:
        starts(log)
    assert str(lost.value).startswith("[KAFKA_DATA_LOSS." + told)
    assert not caplog.records
    assert starts(log, GOES_ON) == expected
    assert {record.levelno for record in caplog.records} == {logging.WARNING}
    assert str(lost.value) in caplog.text


def test_each_loss_is_logged(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    recreated_with_more(log)
    del log.end[B0]
    assert starts(log, GOES_ON) == {A0: 0, A1: 0}
    assert len(caplog.records) == 2


def test_a_topic_made_anew_is_not_told_of_as_cut_too(
    log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    """The epochs of a new topic start again. They would look like a truncation."""
    recreated_with_more(log)
    log.epochs |= {A0: 2, A1: 2}
    log.epoch_ends = {A0: 3, A1: 1}
    assert starts(log, GOES_ON) == {A0: 0, A1: 0}
    assert len(caplog.records) == 1


# -- a pinned end ----------------------------------------------------------------------------------


def test_a_pinned_end_that_is_reached_is_right() -> None:
    check_pinned_end({A0: 5}, {A0: 5, A1: 2})
    check_pinned_end({A0: 5}, {A0: 9})


def test_a_pinned_end_that_is_not_reached_is_an_error_whatever_fail_on_data_loss_says() -> None:
    with pytest.raises(OffsetMismatchError, match=r"a-1 .*are gone") as lost:
        check_pinned_end({A0: 5, A1: 3}, {A0: 5})
    assert lost.value.condition == "LOST_TOPIC_PARTITIONS_IN_END_OFFSET_WITH_TRIGGER_AVAILABLENOW"
    with pytest.raises(OffsetMismatchError, match=r"a-0 .*offset 5 .*now ends at 4") as shrunk:
        check_pinned_end({A0: 5, A1: 3}, {A0: 4, A1: 3})
    assert shrunk.value.condition == (
        "END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_LATEST_WITH_TRIGGER_AVAILABLENOW"
    )
