"""All error codes of Kafka as answers to all requests of a classic member. None is ignored."""

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from spark_kafka_source.errors import (
    ERRORS,
    BrokerError,
    ConnectionFailedError,
    ErrorCode,
    error_code,
    error_named,
)
from spark_kafka_source.groups.classic import State
from spark_kafka_source.groups.error_reactions import ADVICE, REACTIONS
from spark_kafka_source.net import Deadline, run
from spark_kafka_source.protocol import Request
from spark_kafka_source.protocol.messages.membership import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
)
from spark_kafka_source.protocol.messages.membership import MemberResponse as Left
from tests.groups.alone import T0, Alone

CODES = [error for error in ERRORS.values() if error.code] + [error_code(999)]


@pytest.fixture(params=[False, True], ids=["eager", "cooperative"])
def alone(request: pytest.FixtureRequest) -> Iterator[Alone]:
    alone = Alone(cooperative=request.param)
    alone.settle(T0)
    alone.told.said.clear()
    yield alone
    alone.close()


def to_join(alone: Alone) -> JoinGroupRequest:
    alone.membership.rejoin("test")
    alone.poll()
    alone.told.said.clear()
    return alone.next(JoinGroupRequest)


def to_sync(alone: Alone) -> SyncGroupRequest:
    alone.membership.rejoin("test")
    alone.poll()
    alone.told.said.clear()
    alone.join(2)
    return alone.next(SyncGroupRequest)


REQUESTS: dict[type[Request[Any]], Callable[[Alone], Request[Any]]] = {
    JoinGroupRequest: to_join,
    SyncGroupRequest: to_sync,
    HeartbeatRequest: lambda alone: alone.next(HeartbeatRequest),
}
AGAIN: dict[type[Request[Any]], type[Any]] = {
    JoinGroupRequest: JoinGroupRequest,
    SyncGroupRequest: JoinGroupRequest,
    HeartbeatRequest: HeartbeatRequest,
}
# Errors that are neither raised nor simply retried, as in Kafka's AbstractCoordinator.
JOINS_AGAIN = {
    (JoinGroupRequest, "MEMBER_ID_REQUIRED"),
    (JoinGroupRequest, "REBALANCE_IN_PROGRESS"),
    (SyncGroupRequest, "REBALANCE_IN_PROGRESS"),
}
LOSES = {"UNKNOWN_MEMBER_ID": "", "ILLEGAL_GENERATION": "m"}


@pytest.mark.parametrize("request_type", REQUESTS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("error", CODES, ids=str)
def test_every_code_is_reacted_to_or_raised(
    alone: Alone, request_type: type[Request[Any]], error: ErrorCode
) -> None:
    request = REQUESTS[request_type](alone)
    owned = alone.membership.assignment
    alone.refuse(request, error)
    if (request_type, error.name) in JOINS_AGAIN:
        assert isinstance(alone.next(JoinGroupRequest), JoinGroupRequest)
    elif (request_type, error.name) == (HeartbeatRequest, "REBALANCE_IN_PROGRESS"):
        alone.poll()
        assert alone.next(JoinGroupRequest).member_id == "m"
    elif error.name in LOSES:
        assert alone.membership.member is None
        alone.poll()
        assert alone.told.said == ([("lost", tuple(owned))] if owned else [])
        assert alone.next(JoinGroupRequest).member_id == LOSES[error.name]
    elif error.retriable:
        assert alone.next(AGAIN[request_type]).member_id == "m"
        alone.poll()
    else:
        assert_raised(alone, error, every_time=error.name == "FENCED_INSTANCE_ID")


def assert_raised(alone: Alone, error: ErrorCode, *, every_time: bool) -> None:
    assert alone.idles()
    with pytest.raises(BrokerError, match="group 'g'") as caught:
        alone.poll()
    assert caught.value.error == error
    if every_time:
        with pytest.raises(BrokerError):
            alone.poll()
        assert alone.idles()
    else:
        alone.poll()
        assert not alone.idles()


@pytest.mark.parametrize("error", CODES, ids=str)
def test_every_code_of_leaving_is_tried_again_or_told(
    error: ErrorCode, caplog: pytest.LogCaptureFixture
) -> None:
    for of_one in (False, True):
        answer = LeaveGroupResponse(error_code=error.code)
        if of_one:
            answer = LeaveGroupResponse(members=[Left("m", None, error.code)])
        assert_told_or_tried_again(answer, error, caplog)


def assert_told_or_tried_again(
    answer: LeaveGroupResponse, error: ErrorCode, caplog: pytest.LogCaptureFixture
) -> None:
    alone = Alone()
    alone.settle(T0)
    request = alone.leave()
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        alone.answer(request, answer)
    if error.retriable:
        assert alone.next(LeaveGroupRequest) == request
    else:
        assert alone.idles()
        assert alone.has_left()
        gone = error.name in ("UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID", "GROUP_ID_NOT_FOUND")
        assert (str(error) in caplog.text) == (not gone)
    alone.close()


def test_the_tables_name_errors_that_there_are() -> None:
    for names in [*REACTIONS.values(), ADVICE]:
        for name in names:
            assert error_named(name)


def test_an_error_that_a_user_can_do_something_about_says_what(alone: Alone) -> None:
    alone.refuse(to_join(alone), error_named("INCONSISTENT_GROUP_PROTOCOL"))
    with pytest.raises(BrokerError, match=r"kafka\.partition\.assignment\.strategy"):
        alone.poll()


@pytest.mark.parametrize("request_type", REQUESTS, ids=lambda each: each.__name__)
def test_a_connection_that_breaks_is_made_anew(
    alone: Alone, request_type: type[Request[Any]]
) -> None:
    request = REQUESTS[request_type](alone)
    alone.coordinator.answer(request, ConnectionFailedError("gone"))
    assert alone.next(AGAIN[request_type]).member_id == "m"


def test_pauses_between_tries_grow_but_not_before_the_first_that_is_free(alone: Alone) -> None:
    request: JoinGroupRequest = to_join(alone)
    began = alone.clock.now_seconds
    alone.refuse(request, error_named("REBALANCE_IN_PROGRESS"))
    request = alone.next(JoinGroupRequest)
    assert alone.clock.now_seconds == began
    alone.refuse(request, error_named("REBALANCE_IN_PROGRESS"))
    alone.next(JoinGroupRequest)
    assert alone.clock.now_seconds > began


def test_a_coordinator_that_asks_for_ids_without_end_is_not_asked_all_the_time() -> None:
    alone = Alone()
    alone.poll()
    for number in range(5):
        required = error_named("MEMBER_ID_REQUIRED").code
        request = alone.next(JoinGroupRequest)
        alone.answer(request, JoinGroupResponse(error_code=required, member_id=f"m{number}"))
        assert alone.next(JoinGroupRequest).member_id == f"m{number}"
    assert alone.clock.now_seconds > 3
    alone.close()


def test_what_comes_after_a_static_member_left_is_nobodys_concern() -> None:
    """A static member sends no LeaveGroup, which would replace the earlier request."""
    alone = Alone(config={"group_instance_id": "i"})
    alone.settle(T0)
    beat = alone.next(HeartbeatRequest)
    run(alone.membership.leave(Deadline.after_ms(60_000), "test"))
    assert not alone.coordinator.awaits(beat)
    alone.refuse(beat, error_named("GROUP_AUTHORIZATION_FAILED"))
    alone.membership.subscribe(["t"])
    alone.poll()
    alone.close()


def test_what_comes_too_late_changes_nothing(alone: Alone) -> None:
    beat = alone.next(HeartbeatRequest)
    leaving = alone.leave()
    alone.refuse(beat, error_named("FENCED_INSTANCE_ID"))
    assert alone.next(LeaveGroupRequest) is leaving
    alone.poll()


def to_unjoined(_: Alone) -> None:
    """Do nothing: a member begins so."""


def to_preparing(alone: Alone) -> None:
    alone.poll()
    alone.next(JoinGroupRequest)


def to_completing(alone: Alone) -> None:
    alone.poll()
    alone.join()


def to_fenced(alone: Alone) -> None:
    alone.settle(T0)
    alone.refuse(alone.next(HeartbeatRequest), error_named("FENCED_INSTANCE_ID"))


def to_assigned(alone: Alone) -> None:
    to_completing(alone)
    alone.sync(T0)


def to_stable(alone: Alone) -> None:
    alone.settle(T0)


WAYS = {
    State.UNJOINED: to_unjoined,
    State.PREPARING_REBALANCE: to_preparing,
    State.COMPLETING_REBALANCE: to_completing,
    State.FENCED: to_fenced,
    State.ASSIGNED: to_assigned,
    State.STABLE: to_stable,
}


@pytest.mark.parametrize("state", State)
def test_a_member_can_leave_from_each_state_and_join_again(state: State) -> None:
    alone = Alone()
    WAYS[state](alone)
    assert alone.state() is state
    run(alone.membership.leave(Deadline.after_ms(60_000), "test"))
    assert (alone.state(), alone.membership.member) == (State.UNJOINED, None)
    is_known = state in (State.COMPLETING_REBALANCE, State.ASSIGNED, State.STABLE)
    assert alone.has_left() != is_known
    if is_known:
        alone.answer(alone.next(LeaveGroupRequest), LeaveGroupResponse())
    alone.membership.subscribe(["t"])
    alone.settle(T0)
    alone.close()
