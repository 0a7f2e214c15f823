"""One KIP-848 member: its heartbeats, the calls to its listener, and all error codes."""

import logging
import uuid
from collections.abc import Iterator
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
from spark_kafka_source.groups import Member
from spark_kafka_source.groups.consumer import ConsumerState
from spark_kafka_source.protocol.messages.membership import TopicPartitions
from spark_kafka_source.topic_partition import TopicPartition
from tests.groups.alone_in_consumer import AloneInConsumer, T, U

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
CODES = [error for error in ERRORS.values() if error.code] + [error_code(999)]
LOSES = ("GROUP_ID_NOT_FOUND", "UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH")
FENCES = ("FENCED_INSTANCE_ID", "UNRELEASED_INSTANCE_ID")


@pytest.fixture
def alone() -> Iterator[AloneInConsumer]:
    alone = AloneInConsumer()
    yield alone
    alone.close()


def said(request: Any) -> dict[str, Any]:
    """Return the fields of a heartbeat that are not null, without the member's identity."""
    names = (
        "instance_id",
        "rack_id",
        "subscribed_topic_names",
        "subscribed_topic_regex",
        "server_assignor",
        "topic_partitions",
    )
    found = {name: getattr(request, name) for name in names if getattr(request, name) is not None}
    if request.rebalance_timeout_ms >= 0:
        found["rebalance_timeout_ms"] = request.rebalance_timeout_ms
    return found


def test_the_first_heartbeat_says_all_and_later_ones_what_is_news() -> None:
    config = {
        "group_instance_id": "i",
        "client_rack": "r",
        "group_remote_assignor": "uniform",
        "max_poll_interval_ms": 60_000,
    }
    alone = AloneInConsumer(config)
    assert alone.idles()
    alone.poll()
    request = alone.next()
    assert (request.group_id, request.member_epoch) == ("g", 0)
    assert said(request) == {
        "instance_id": "i",
        "rack_id": "r",
        "server_assignor": "uniform",
        "subscribed_topic_names": ["t"],
        "rebalance_timeout_ms": 60_000,
        "topic_partitions": [],
    }
    alone.answer(request, 1, {T: [0, 1]})
    alone.poll()
    acknowledging = alone.next()
    assert acknowledging.member_epoch == 1
    assert said(acknowledging) == {
        "instance_id": "i",
        "topic_partitions": [TopicPartitions(T, [0, 1])],
    }
    alone.answer(acknowledging)
    assert said(alone.next()) == {"instance_id": "i"}
    assert alone.clock.now_seconds == 5
    alone.close()


def test_states_and_epochs_on_the_way_to_an_assignment(alone: AloneInConsumer) -> None:
    alone.poll()
    assert alone.state() is ConsumerState.JOINING
    assert alone.member() is None
    request = alone.next()
    alone.answer(request, 7, {T: [0, 1]})
    assert alone.state() is ConsumerState.RECONCILING
    assert alone.member() == Member("g", request.member_id, 7)
    alone.poll()
    assert alone.state() is ConsumerState.ACKNOWLEDGING
    assert alone.membership.assignment == {T0, T1}
    assert alone.told.said == [("assigned", (T0, T1))]
    alone.answer(alone.next(), 7)
    assert alone.state() is ConsumerState.STABLE


def test_what_goes_is_given_up_before_what_is_new_is_taken(alone: AloneInConsumer) -> None:
    alone.settle({T: [0, 1]})
    owned = []
    alone.told.during = lambda _: owned.append(set(alone.membership.assignment))
    alone.answer(alone.next(), 1, {T: [1], U: [0]})
    alone.poll()
    assert alone.told.said[1:] == [("revoked", (T0,)), ("assigned", (U0,))]
    assert owned == [{T0, T1}, {T1, U0}]
    acknowledging = alone.next()
    owned_by_id = [TopicPartitions(T, [1]), TopicPartitions(U, [0])]
    assert acknowledging.topic_partitions == owned_by_id


def test_a_heartbeat_on_its_way_does_not_acknowledge(alone: AloneInConsumer) -> None:
    alone.settle({T: [0, 1]})
    alone.answer(alone.next(), 2, {T: [0]})
    under_way = alone.next()
    alone.poll()
    alone.answer(under_way, 2)
    assert alone.state() is ConsumerState.ACKNOWLEDGING
    assert alone.next().topic_partitions == [TopicPartitions(T, [0])]


def test_a_target_that_moves_on_while_it_is_reconciled(alone: AloneInConsumer) -> None:
    alone.settle({T: [0, 1]})
    alone.answer(alone.next(), 1, {T: [0]})
    under_way = alone.next()

    def move(what: str) -> None:
        if what == "revoked":
            alone.answer(under_way, 1, {T: [0, 1]})

    alone.told.during = move
    alone.poll()
    assert alone.told.said[1:] == [("revoked", (T1,)), ("assigned", ()), ("assigned", (T1,))]
    assert alone.membership.assignment == {T0, T1}
    assert alone.next().topic_partitions == [TopicPartitions(T, [0, 1])]


def test_the_same_assignment_in_a_new_epoch_is_no_news(alone: AloneInConsumer) -> None:
    alone.settle({T: [0]})
    alone.answer(alone.next(), 2, {T: [0]})
    alone.poll()
    assert len(alone.told.said) == 1
    member = alone.member()
    assert member is not None
    assert member.generation_id == 2


def test_a_topic_that_is_made_anew_is_another(alone: AloneInConsumer) -> None:
    alone.settle({T: [0]})
    alone.names[U] = "t"
    alone.answer(alone.next(), 2, {U: [0]})
    alone.poll()
    assert alone.told.said[1:] == [("revoked", (T0,)), ("assigned", (T0,))]


def test_a_topic_whose_name_is_not_known_yet_is_asked_for_again(alone: AloneInConsumer) -> None:
    del alone.names[U]
    alone.settle({T: [0], U: [0]})
    assert alone.membership.assignment == {T0}
    alone.names[U] = "u"
    request = alone.next()
    assert request.subscribed_topic_names == ["t"]
    assert request.topic_partitions == [TopicPartitions(T, [0])]
    alone.answer(request, 1, {T: [0], U: [0]})
    alone.poll()
    assert alone.membership.assignment == {T0, U0}


def test_a_look_for_names_that_fails_keeps_no_heartbeat_waiting(
    alone: AloneInConsumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent(*_: object) -> dict[uuid.UUID, str]:
        alone.clock.now_seconds += 10
        raise ConnectionFailedError("silent")

    alone.settle({T: [0]})
    with monkeypatch.context() as patch:
        patch.setattr(alone.membership, "_names_of", silent)
        for _ in range(2):
            alone.answer(alone.next(), 1, {T: [0], U: [0]})
            failed_at_seconds = alone.clock.now_seconds
            request = alone.next()
            assert alone.clock.now_seconds - failed_at_seconds < 2, "only a pause, no interval"
    assert request.subscribed_topic_names == ["t"]
    alone.answer(request, 1, {T: [0], U: [0]})
    alone.poll()
    assert alone.membership.assignment == {T0, U0}


def test_a_subscription_that_changes_is_told_at_once(alone: AloneInConsumer) -> None:
    alone.settle({T: [0]})
    alone.membership.subscribe(["u"], "t.*")
    request = alone.next()
    assert said(request) == {"subscribed_topic_names": ["u"], "subscribed_topic_regex": "t.*"}
    alone.answer(request)
    alone.membership.subscribe(["u"])
    assert said(alone.next()) == {"subscribed_topic_regex": ""}


@pytest.mark.parametrize("owning", [False, True])
@pytest.mark.parametrize("error", CODES, ids=str)
def test_every_code_is_reacted_to_or_raised(error: ErrorCode, owning: bool) -> None:
    alone = AloneInConsumer()
    if owning:
        alone.settle({T: [0]})
    else:
        alone.poll()
    request = alone.next()
    alone.refuse(request, error)
    # A joining member gets this error for a group of the classic protocol.
    is_classic = error.name == "GROUP_ID_NOT_FOUND" and not owning
    if error.name in LOSES and not is_classic:
        assert alone.member() is None
        assert alone.idles()
        alone.poll()
        assert alone.told.said[1:] == ([("lost", (T0,))] if owning else [])
        again = alone.next()
        assert (again.member_epoch, again.topic_partitions) == (0, [])
        assert again.member_id == request.member_id
    elif error.retriable or error.name == "STALE_MEMBER_EPOCH":
        again = alone.next()
        assert again.member_epoch == request.member_epoch
        assert again.subscribed_topic_names == ["t"]
        assert again.topic_partitions == ([TopicPartitions(T, [0])] if owning else [])
        alone.poll()
    else:
        assert alone.idles()
        for _ in range(2 if error.name in FENCES else 1):
            with pytest.raises(BrokerError, match=r"group 'g'.*because") as caught:
                alone.poll()
            assert caught.value.error == error
        if error.name not in FENCES:
            alone.poll()
        assert alone.idles() == (error.name in FENCES)
    alone.close()


def test_after_an_answer_that_failed_to_come_all_is_said_again(alone: AloneInConsumer) -> None:
    alone.settle({T: [0]})
    alone.coordinator.answer(alone.next(), ConnectionFailedError("gone"))
    assert set(said(alone.next())) == {
        "subscribed_topic_names",
        "rebalance_timeout_ms",
        "topic_partitions",
    }


@pytest.mark.parametrize(("instance_id", "epoch"), [("", -1), ("i", -2)])
def test_leaving(instance_id: str, epoch: int) -> None:
    alone = AloneInConsumer({"group_instance_id": instance_id})
    alone.settle({T: [0]})
    alone.leave()
    assert alone.told.said[1:] == [("revoked", (T0,))]
    leaving = alone.next()
    assert (leaving.member_epoch, leaving.instance_id) == (epoch, instance_id or None)
    assert not alone.has_left()
    alone.answer(leaving, epoch)
    assert alone.has_left()
    alone.poll()
    assert alone.idles()
    alone.membership.subscribe(["t"])
    alone.settle({T: [1]}, 5)
    assert alone.told.said[2:] == [("assigned", (T1,))]
    alone.close()


@pytest.mark.parametrize("error", CODES, ids=str)
def test_every_code_of_leaving_is_tried_again_or_told(
    error: ErrorCode, caplog: pytest.LogCaptureFixture
) -> None:
    alone = AloneInConsumer()
    alone.settle({T: [0]})
    alone.leave()
    leaving = alone.next()
    with caplog.at_level(logging.WARNING):
        alone.refuse(leaving, error)
    if error.retriable or error.name == "STALE_MEMBER_EPOCH":
        assert alone.next() is leaving
    else:
        assert alone.has_left()
        assert (str(error) in caplog.text) == (error.name not in LOSES)
    alone.close()


def test_one_who_does_not_poll_leaves_and_has_lost_all(
    alone: AloneInConsumer, caplog: pytest.LogCaptureFixture
) -> None:
    alone.settle({T: [0]})
    alone.clock.now_seconds += 301
    leaving = alone.next()
    assert leaving.member_epoch == -1
    assert "kafka.max.poll.interval.ms" in caplog.text
    alone.answer(leaving, -1)
    assert alone.member() is None
    alone.poll()
    assert alone.told.said[1:] == [("lost", (T0,))]
    assert alone.next().member_epoch == 0


@pytest.mark.parametrize("what", ["revoked", "assigned", "lost"])
def test_what_a_listener_raises_comes_out_once_the_member_is_in_order(
    alone: AloneInConsumer, what: str
) -> None:
    alone.settle({T: [0]})

    def fail(now: str) -> None:
        if now == what:
            raise ZeroDivisionError

    alone.told.during = fail
    if what == "lost":
        alone.refuse(alone.next(), error_named("UNKNOWN_MEMBER_ID"))
    else:
        alone.answer(alone.next(), 2, {T: [1]})
    with pytest.raises(ZeroDivisionError):
        alone.poll()
    assert alone.membership.assignment == (set() if what == "lost" else {T1})
    after = ConsumerState.JOINING if what == "lost" else ConsumerState.ACKNOWLEDGING
    assert alone.state() is after
    alone.poll()


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_ctrl_c_in_assigned_is_told_again(alone: AloneInConsumer, is_lost: bool) -> None:
    alone.settle({T: [0, 1]})
    alone.answer(alone.next(), 2, {T: [1], U: [0]})
    alone.told.said.clear()
    alone.told.interrupt_at("assigned")
    with pytest.raises(KeyboardInterrupt):
        alone.poll()
    assert alone.told.said == [("revoked", (T0,)), ("assigned", (U0,))]
    assert alone.membership.assignment == {T1}
    if is_lost:
        alone.refuse(alone.next(), error_named("UNKNOWN_MEMBER_ID"))
    alone.poll()
    assert alone.told.said[2:] == [("lost", (T1,)) if is_lost else ("assigned", (U0,))]
    assert alone.membership.assignment == (set() if is_lost else {T1, U0})


@pytest.mark.parametrize("what", ["revoked", "lost"])
def test_a_ctrl_c_in_a_loss_is_told_again(alone: AloneInConsumer, what: str) -> None:
    alone.settle({T: [0, 1]})
    alone.told.said.clear()
    alone.told.interrupt_at(what)
    if what == "lost":
        alone.refuse(alone.next(), error_named("UNKNOWN_MEMBER_ID"))
    else:
        alone.answer(alone.next(), 2, {T: [1]})
    with pytest.raises(KeyboardInterrupt):
        alone.poll()
    assert alone.membership.assignment == {T0, T1}
    alone.poll()
    gone = (T0,) if what == "revoked" else (T0, T1)
    assert alone.told.said[:2] == [(what, gone)] * 2
    assert alone.membership.assignment == {T0, T1} - set(gone)


def test_what_is_lost_while_it_is_given_up_is_not_taken(alone: AloneInConsumer) -> None:
    alone.settle({T: [0, 1]})
    alone.answer(alone.next(), 2, {T: [1], U: [0]})
    under_way = alone.next()

    def lose(what: str) -> None:
        if what == "revoked":
            alone.refuse(under_way, error_named("FENCED_MEMBER_EPOCH"))

    alone.told.during = lose
    alone.poll()
    assert alone.told.said[1:] == [("revoked", (T0,)), ("lost", (T1,))]
    assert alone.next().member_epoch == 0


def test_a_coordinator_is_not_asked_all_the_time_whatever_it_says(alone: AloneInConsumer) -> None:
    alone.interval_ms = 0
    alone.settle({T: [0]})
    alone.answer(alone.next())
    due = alone.coordinator.next_due()
    assert isinstance(due, float)
    assert due > 0


def to_unsubscribed(_: AloneInConsumer) -> None:
    """Do nothing: a member begins so."""


def to_joining(alone: AloneInConsumer) -> None:
    alone.poll()


def to_reconciling(alone: AloneInConsumer) -> None:
    alone.poll()
    alone.answer(alone.next(), 1, {T: [0]})


def to_acknowledging(alone: AloneInConsumer) -> None:
    to_reconciling(alone)
    alone.poll()


def to_stable(alone: AloneInConsumer) -> None:
    alone.settle({T: [0]})


def to_fenced(alone: AloneInConsumer) -> None:
    alone.settle({T: [0]})
    alone.refuse(alone.next(), error_named("UNKNOWN_MEMBER_ID"))


def to_fatal(alone: AloneInConsumer) -> None:
    alone.settle({T: [0]})
    alone.refuse(alone.next(), error_named("FENCED_INSTANCE_ID"))


WAYS = {
    ConsumerState.UNSUBSCRIBED: to_unsubscribed,
    ConsumerState.JOINING: to_joining,
    ConsumerState.RECONCILING: to_reconciling,
    ConsumerState.ACKNOWLEDGING: to_acknowledging,
    ConsumerState.STABLE: to_stable,
    ConsumerState.FENCED: to_fenced,
    ConsumerState.FATAL: to_fatal,
}


@pytest.mark.parametrize("state", ConsumerState)
def test_a_member_can_leave_from_each_state_and_join_again(
    alone: AloneInConsumer, state: ConsumerState
) -> None:
    WAYS[state](alone)
    assert alone.state() is state
    alone.leave()
    assert (alone.state(), alone.member()) == (ConsumerState.UNSUBSCRIBED, None)
    is_known = state not in (ConsumerState.UNSUBSCRIBED, ConsumerState.FENCED, ConsumerState.FATAL)
    assert alone.has_left() != is_known
    if is_known:
        alone.answer(alone.next(), -1)
    alone.membership.subscribe(["t"])
    alone.settle({T: [1]}, 5)


def test_nothing_at_all_is_an_assignment_too(alone: AloneInConsumer) -> None:
    alone.settle({})
    assert alone.told.said == [("assigned", ())]
