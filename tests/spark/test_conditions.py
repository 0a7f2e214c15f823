"""Errors have the condition names of Spark's own connector, and name the found value."""

import pickle

import pytest

from spark_kafka_source.errors import LocalError, RemoteError, listed
from spark_kafka_source.spark.conditions import (
    ConditionError,
    DataLossError,
    added_partition_not_from_zero,
    available_now_end_lost,
    available_now_end_shrunk,
    cannot_read_range,
    does_not_match_assigned,
    log_truncated,
    partition_offset_changed,
    partitions_deleted,
    partitions_differ,
    start_after_end,
    start_offset_reset,
    topics_recreated,
)
from tests.spark.settings import A0, A1, A2, A10

CASES = [
    (
        does_not_match_assigned("startingOffsets", [A1, A0], [A0, A2, A10]),
        "[KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED] Option 'startingOffsets'",
        ["missing: a-2, a-10; unknown: a-1"],
    ),
    (
        does_not_match_assigned("endingOffsetsByTimestamp", [A0], [A0, A1], timestamps=True),
        "[KAFKA_TIMESTAMP_OFFSET_DOES_NOT_MATCH_ASSIGNED] Option 'endingOffsetsByTimestamp'",
        ["missing: a-1; unknown: none"],
    ),
    (
        partitions_differ([A0, A1], [A0]),
        "[MISMATCHED_TOPIC_PARTITIONS_BETWEEN_START_OFFSET_AND_END_OFFSET] 'startingOffsets'",
        ["only at the start: a-1; only at the end: none"],
    ),
    (
        start_after_end(A0, 5, 4, resolved=True),
        "[RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET] a-0: ",
        ["5 is greater than the end offset 4"],
    ),
    (
        start_after_end(A0, 5, 4, resolved=False),
        "[UNRESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET] a-0: ",
        ["5 is greater than the end offset 4"],
    ),
    (
        partitions_deleted([A10, A2]),
        "[KAFKA_DATA_LOSS.PARTITIONS_DELETED] a-2, a-10 ",
        ["are gone"],
    ),
    (
        partition_offset_changed(A0, 9, 3),
        "[KAFKA_DATA_LOSS.PARTITION_OFFSET_CHANGED] a-0 ",
        ["up to offset 9", "now ends at 3", "made anew"],
    ),
    (
        topics_recreated({"b", "a"}),
        "[KAFKA_DATA_LOSS.PARTITIONS_DELETED] Topics a, b ",
        ["made anew", "topic ids changed"],
    ),
    (
        log_truncated(A0, 9, 3),
        "[KAFKA_DATA_LOSS.PARTITION_OFFSET_CHANGED] a-0 ",
        ["up to offset 9", "truncated at offset 3", "unclean leader election"],
    ),
    (
        start_offset_reset("startingOffsets", A0, 1, 2, 5),
        "[KAFKA_DATA_LOSS.START_OFFSET_RESET] Option 'startingOffsets': ",
        ["offset 1 of a-0", "offsets 2 to 5"],
    ),
    (
        available_now_end_lost([A1, A0]),
        "[LOST_TOPIC_PARTITIONS_IN_END_OFFSET_WITH_TRIGGER_AVAILABLENOW] a-0, a-1 ",
        ["are gone", "Run it again"],
    ),
    (
        available_now_end_shrunk(A0, 9, 3),
        "[END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_LATEST_WITH_TRIGGER_AVAILABLENOW]",
        ["a-0 was to be read up to offset 9", "now ends at 3", "Run it again"],
    ),
    (
        added_partition_not_from_zero({A1: 7, A0: 2}),
        "[KAFKA_DATA_LOSS.ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO] ",
        ["a-0: 2, a-1: 7"],
    ),
    (cannot_read_range("why"), "[KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE] ", ["why"]),
]


@pytest.mark.parametrize(
    ("error", "beginning", "parts"), CASES, ids=[str(error.args[0]) for error, *_ in CASES]
)
def test_the_text(error: ConditionError, beginning: str, parts: list[str]) -> None:
    assert str(error).startswith(beginning)
    assert beginning.startswith(f"[{error.condition}]")
    for part in parts:
        assert part in str(error)


@pytest.mark.parametrize("error", [error for error, *_ in CASES], ids=lambda error: error.condition)
def test_who_is_at_fault_is_in_the_type(error: ConditionError) -> None:
    is_loss = error.condition.startswith("KAFKA_DATA_LOSS.")
    assert [type(error) is DataLossError, isinstance(error, RemoteError)] == [is_loss, is_loss]
    assert isinstance(error, LocalError) is not is_loss
    assert not error.retriable


@pytest.mark.parametrize("error", [error for error, *_ in CASES], ids=lambda error: error.condition)
def test_errors_cross_processes_as_they_are(error: ConditionError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (copy.condition, str(copy)) == (error.condition, str(error))


def test_a_long_list_is_cut() -> None:
    assert listed(range(3)) == "0, 1, 2"
    assert listed(range(30), limit=2) == "0, 1 and 28 more"
