"""The reaction to each error of a leader's answer about a batch."""

import pytest

from spark_kafka_source.errors import ERRORS, ErrorCode, Remedy, error_code, error_named
from spark_kafka_source.producer.produce_answers import Reaction, reaction


@pytest.mark.parametrize(
    ("name", "is_first", "may_renumber", "expected"),
    [
        ("NONE", True, True, Reaction.DELIVERED),
        ("DUPLICATE_SEQUENCE_NUMBER", True, False, Reaction.DELIVERED),
        ("OUT_OF_ORDER_SEQUENCE_NUMBER", True, True, Reaction.RENUMBER),
        ("OUT_OF_ORDER_SEQUENCE_NUMBER", True, False, Reaction.FAIL),
        ("OUT_OF_ORDER_SEQUENCE_NUMBER", False, True, Reaction.FOLLOW),
        ("OUT_OF_ORDER_SEQUENCE_NUMBER", False, False, Reaction.FOLLOW),
        ("UNKNOWN_PRODUCER_ID", False, True, Reaction.RENUMBER),
        ("UNKNOWN_PRODUCER_ID", True, False, Reaction.FAIL),
        ("INVALID_PRODUCER_EPOCH", True, True, Reaction.RENUMBER),
        ("INVALID_PRODUCER_EPOCH", True, False, Reaction.FAIL),
        ("INVALID_PRODUCER_ID_MAPPING", True, True, Reaction.RENUMBER),
        ("MESSAGE_TOO_LARGE", True, True, Reaction.SPLIT),
        ("RECORD_LIST_TOO_LARGE", True, True, Reaction.SPLIT),
        ("INVALID_RECORD", True, True, Reaction.LEAVE_OUT),
        ("INVALID_TIMESTAMP", True, True, Reaction.LEAVE_OUT),
        ("NOT_LEADER_OR_FOLLOWER", False, False, Reaction.RETRY),
        ("NOT_ENOUGH_REPLICAS_AFTER_APPEND", True, True, Reaction.RETRY),
        ("CORRUPT_MESSAGE", True, True, Reaction.RETRY),
        ("TOPIC_AUTHORIZATION_FAILED", True, True, Reaction.FAIL),
        ("POLICY_VIOLATION", True, True, Reaction.FAIL),
        ("UNKNOWN_SERVER_ERROR", True, True, Reaction.FAIL),
    ],
)
def test_reactions(name: str, is_first: bool, may_renumber: bool, expected: Reaction) -> None:
    found = reaction(error_named(name), is_first=is_first, may_renumber=may_renumber)
    assert found is expected


@pytest.mark.parametrize("each", list(ERRORS.values()), ids=str)
def test_what_can_heal_is_tried_again_and_nothing_else_is_by_chance(each: ErrorCode) -> None:
    for is_first in (True, False):
        found = reaction(each, is_first=is_first, may_renumber=True)
        assert (found is Reaction.RETRY) == (each.remedy is not Remedy.NONE)


def test_a_code_that_nobody_knows_yet_fails() -> None:
    unknown = error_code(9_999)
    assert reaction(unknown, is_first=True, may_renumber=True) is Reaction.FAIL
