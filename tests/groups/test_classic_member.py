"""One member of the classic protocol: its requests, and the calls to its listener."""

import logging
from collections.abc import Collection, Iterator

import pytest

from spark_kafka_source.errors import (
    BrokerError,
    ConfigurationError,
    ConnectionFailedError,
    LocalError,
    ProtocolError,
    UnsupportedVersionError,
    error_named,
)
from spark_kafka_source.groups import GroupConfig, Member
from spark_kafka_source.groups.assignors import (
    Assignment,
    Cluster,
    RebalanceProtocol,
    Subscription,
)
from spark_kafka_source.groups.classic import State
from spark_kafka_source.groups.leader import changed_topics, divide
from spark_kafka_source.net import Deadline, run
from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.protocol.messages.membership import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from spark_kafka_source.topic_partition import TopicPartition
from tests.groups.alone import T0, T1, Alone
from tests.groups.assignors.topics import in_racks, topics
from tests.groups.members import Deal

T2, U0 = TopicPartition("t", 2), TopicPartition("u", 0)
BOTH = pytest.mark.parametrize("cooperative", [False, True], ids=["eager", "cooperative"])


@pytest.fixture
def alone() -> Iterator[Alone]:
    alone = Alone()
    yield alone
    alone.close()


@pytest.fixture
def cooperative() -> Iterator[Alone]:
    alone = Alone(cooperative=True)
    yield alone
    alone.close()


def test_nothing_happens_before_the_first_poll(alone: Alone) -> None:
    assert alone.idles()
    assert (alone.state(), alone.membership.member) == (State.UNJOINED, None)


def test_nobody_joins_for_no_topics(alone: Alone) -> None:
    alone.membership.subscribe([])
    alone.poll()
    assert alone.idles()


def test_states_and_generation_on_the_way_to_an_assignment(alone: Alone) -> None:
    alone.poll()
    assert alone.state() is State.PREPARING_REBALANCE
    alone.join(7)
    assert (alone.state(), alone.membership.member) == (State.COMPLETING_REBALANCE, None)
    alone.sync(T1, T0)
    assert alone.state() is State.ASSIGNED
    assert alone.membership.assignment == frozenset()
    alone.poll()
    assert alone.state() is State.STABLE
    assert alone.membership.member == Member("g", "m", 7)
    assert alone.told.said == [("assigned", (T0, T1))]
    assert alone.deal.heard == [((T1, T0), 7)]


def test_what_is_asked_of_the_coordinator_says_all_that_is_set() -> None:
    config = {"group_instance_id": "i", "session_timeout_ms": 10_000, "max_poll_interval_ms": 70}
    alone = Alone(config=config | {"client_rack": "r"})
    alone.poll()
    request = alone.next(JoinGroupRequest)
    assert (request.group_id, request.group_instance_id, request.member_id) == ("g", "i", "")
    assert (request.session_timeout_ms, request.rebalance_timeout_ms) == (10_000, 70)
    assert (request.protocol_type, request.protocols[0].name) == ("consumer", "deal")
    said = Subscription.decode(request.protocols[0].metadata)
    assert said == Subscription(("t",), b"t", (), -1, "r")
    alone.join()
    sync = alone.next(SyncGroupRequest)
    assert (sync.generation_id, sync.member_id, sync.group_instance_id) == (1, "m", "i")
    assert (sync.protocol_type, sync.protocol_name) == ("consumer", "deal")
    assert Assignment.decode(sync.assignments[0].assignment).partitions == (T0, T1)
    alone.close()


def test_eager_members_give_up_all_before_they_join(alone: Alone) -> None:
    alone.settle(T0)
    alone.membership.rejoin("for the test")
    seen = []
    alone.told.during = lambda what: seen.append(
        (what, set(alone.membership.assignment), alone.membership.member)
    )
    alone.poll()
    # During `revoked` the partitions are still owned, and their offsets can be committed.
    assert seen == [("revoked", {T0}, Member("g", "m", 1))]
    assert alone.membership.assignment == frozenset()
    assert alone.next(JoinGroupRequest).reason == "for the test"
    assert alone.subscription().owned == ()
    alone.join(2)
    alone.sync(T0, T1)
    alone.poll()
    assert seen[1] == ("assigned", {T0, T1}, Member("g", "m", 2))


def test_eager_members_are_told_of_no_partitions_too(alone: Alone) -> None:
    alone.settle()
    alone.membership.rejoin("test")
    alone.poll()
    assert alone.told.said == [("assigned", ()), ("revoked", ())]


def test_cooperative_members_keep_what_they_have(cooperative: Alone) -> None:
    cooperative.settle(T0, T1)
    cooperative.membership.rejoin("test")
    cooperative.poll()
    said = cooperative.subscription()
    assert (said.owned, said.generation_id) == ((T0, T1), 1)
    assert cooperative.membership.assignment == {T0, T1}
    assert cooperative.told.said == [("assigned", (T0, T1))]


def test_cooperative_members_give_up_what_is_taken_and_join_again_at_once(
    cooperative: Alone,
) -> None:
    cooperative.settle(T0, T1)
    cooperative.membership.rejoin("test")
    cooperative.poll()
    cooperative.join(2)
    cooperative.sync(T1)
    cooperative.told.said.clear()
    cooperative.poll()
    assert cooperative.told.said == [("revoked", (T0,)), ("assigned", ())]
    assert cooperative.subscription().owned == (T1,)


def test_cooperative_members_give_up_topics_that_they_do_not_subscribe_to_any_more(
    cooperative: Alone,
) -> None:
    cooperative.settle(T0)
    cooperative.membership.subscribe(["u"])
    cooperative.poll()
    assert cooperative.told.said[1:] == [("revoked", (T0,))]
    said = cooperative.subscription()
    assert (said.topics, said.owned) == (("u",), ())


@BOTH
def test_a_new_subscription_joins_again(cooperative: bool) -> None:
    alone = Alone(cooperative=cooperative)
    alone.settle(T0)
    alone.membership.subscribe(["t", "u"])
    alone.poll()
    assert alone.subscription().topics == ("t", "u")
    assert alone.next(JoinGroupRequest).reason == "the subscription has changed"
    alone.close()


def test_an_assignment_for_an_older_subscription_is_not_taken(alone: Alone) -> None:
    alone.poll()
    alone.join()
    alone.membership.subscribe(["u"])
    alone.sync(T0)
    alone.poll()
    assert alone.told.said == [("revoked", ())]
    assert alone.subscription().topics == ("u",)


@BOTH
@pytest.mark.parametrize("name", ["UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"])
def test_what_is_lost_is_told_once_and_before_joining_anew(cooperative: bool, name: str) -> None:
    alone = Alone(cooperative=cooperative)
    alone.settle(T0)
    alone.refuse(alone.next(HeartbeatRequest), error_named(name))
    assert alone.membership.assignment == {T0}
    alone.poll()
    alone.poll()
    assert alone.told.said[1:] == [("lost", (T0,))]
    assert alone.subscription().generation_id == -1
    alone.close()


def test_what_is_lost_while_the_listener_is_told_of_other_partitions(cooperative: Alone) -> None:
    """A heartbeat's answer comes meanwhile. JoinGroup must not claim the kept partitions then."""
    cooperative.membership.subscribe(["t", "u"])
    cooperative.settle(T0, U0)
    cooperative.membership.subscribe(["t"])
    beat = cooperative.next(HeartbeatRequest)

    def lose(what: str) -> None:
        if what == "revoked":
            cooperative.refuse(beat, error_named("UNKNOWN_MEMBER_ID"))

    cooperative.told.during = lose
    cooperative.poll()
    assert cooperative.told.said[1:] == [("revoked", (U0,)), ("lost", (T0,))]
    assert cooperative.membership.assignment == frozenset()
    assert cooperative.subscription().owned == ()


def test_a_generation_that_is_lost_before_it_is_taken_over_was_never_owned(alone: Alone) -> None:
    alone.poll()
    alone.join()
    alone.sync(T0)
    alone.clock.now_seconds += 3
    alone.refuse(alone.next(HeartbeatRequest), error_named("UNKNOWN_MEMBER_ID"))
    alone.poll()
    assert alone.told.said == []
    assert alone.state() is State.PREPARING_REBALANCE


@pytest.mark.parametrize("what", ["revoked", "assigned", "lost"])
def test_what_a_listener_raises_comes_out_once_the_member_is_in_order(
    alone: Alone, what: str
) -> None:
    def fail(now: str) -> None:
        if now == what:
            raise ZeroDivisionError

    alone.told.during = fail
    if what == "assigned":
        alone.poll()
        alone.join()
        alone.sync(T0)
        with pytest.raises(ZeroDivisionError):
            alone.poll()
        assert alone.state() is State.STABLE
        assert alone.membership.assignment == {T0}
        return
    alone.settle(T0)
    if what == "lost":
        alone.refuse(alone.next(HeartbeatRequest), error_named("UNKNOWN_MEMBER_ID"))
    alone.membership.rejoin("test")
    with pytest.raises(ZeroDivisionError):
        alone.poll()
    assert alone.membership.assignment == frozenset()
    assert alone.state() is State.PREPARING_REBALANCE
    alone.poll()
    alone.join(2)


def interrupted(alone: Alone) -> None:
    with pytest.raises(KeyboardInterrupt):
        alone.poll()


@BOTH
def test_a_ctrl_c_in_assigned_is_told_again(cooperative: bool) -> None:
    alone = Alone(cooperative=cooperative)
    alone.told.interrupt_at("assigned")
    alone.poll()
    alone.join()
    alone.sync(T0)
    interrupted(alone)
    assert alone.state() is State.ASSIGNED
    assert alone.membership.assignment == frozenset()
    alone.poll()
    assert alone.state() is State.STABLE
    assert alone.membership.assignment == {T0}
    assert alone.told.said == [("assigned", (T0,))] * 2
    alone.close()


@pytest.mark.parametrize("is_lost", [False, True])
def test_what_was_revoked_before_a_ctrl_c_in_assigned_is_gone(
    cooperative: Alone, is_lost: bool
) -> None:
    cooperative.settle(T0, T1)
    cooperative.membership.rejoin("test")
    cooperative.poll()
    cooperative.join(2)
    cooperative.sync(T1, T2)
    cooperative.told.said.clear()
    cooperative.told.interrupt_at("assigned")
    interrupted(cooperative)
    assert cooperative.told.said == [("revoked", (T0,)), ("assigned", (T2,))]
    assert cooperative.membership.assignment == {T1}
    if is_lost:
        cooperative.refuse(cooperative.next(HeartbeatRequest), error_named("UNKNOWN_MEMBER_ID"))
    cooperative.poll()
    assert cooperative.told.said[2:] == [("lost", (T1,)) if is_lost else ("assigned", (T2,))]


@pytest.mark.parametrize("what", ["revoked", "lost"])
@BOTH
def test_a_ctrl_c_in_a_loss_is_told_again(cooperative: bool, what: str) -> None:
    alone = Alone(cooperative=cooperative)
    alone.settle(T0, T1)
    alone.told.said.clear()
    alone.told.interrupt_at(what)
    if what == "lost":
        alone.refuse(alone.next(HeartbeatRequest), error_named("UNKNOWN_MEMBER_ID"))
    else:
        alone.membership.rejoin("test")
        if cooperative:
            alone.poll()
            alone.join(2)
            alone.sync(T1)
    interrupted(alone)
    assert alone.membership.assignment == {T0, T1}
    alone.poll()
    gone = (T0,) if cooperative and what == "revoked" else (T0, T1)
    assert alone.told.said[:2] == [(what, gone)] * 2
    assert alone.membership.assignment == {T0, T1} - set(gone)
    assert alone.next(JoinGroupRequest)
    alone.close()


def test_heartbeats_come_at_their_interval(alone: Alone) -> None:
    alone.settle(T0)
    for _ in range(3):
        began = alone.clock.now_seconds
        alone.beat()
        assert alone.clock.now_seconds - began == pytest.approx(3)


def test_a_member_lives_while_its_assignment_waits_for_a_poll(alone: Alone) -> None:
    alone.poll()
    alone.join()
    alone.sync(T0)
    alone.beat()
    alone.refuse(alone.next(HeartbeatRequest), error_named("REBALANCE_IN_PROGRESS"))
    alone.poll()
    # The partitions are taken over, and revoked at once for the next generation.
    assert alone.told.said == [("assigned", (T0,)), ("revoked", (T0,))]


def test_a_rebalance_that_is_joined_already_is_no_news(alone: Alone) -> None:
    alone.settle(T0)
    beat = alone.next(HeartbeatRequest)
    alone.membership.rejoin("test")
    alone.poll()
    alone.refuse(beat, error_named("REBALANCE_IN_PROGRESS"))
    alone.join(2)
    alone.sync(T0)
    alone.poll()
    assert alone.state() is State.STABLE


def test_one_who_does_not_poll_leaves_and_has_lost_all(
    alone: Alone, caplog: pytest.LogCaptureFixture
) -> None:
    alone.settle(T0)
    alone.clock.now_seconds += 299
    alone.beat()
    with caplog.at_level(logging.WARNING):
        alone.clock.now_seconds += 2
        leaving = alone.next(LeaveGroupRequest)
    assert leaving.members[0].reason == "the consumer did not poll in time"
    assert "kafka.max.poll.interval.ms" in caplog.text
    alone.answer(leaving, LeaveGroupResponse())
    assert alone.idles()
    assert alone.membership.member is None
    alone.poll()
    assert alone.told.said[1:] == [("lost", (T0,))]
    assert alone.next(JoinGroupRequest).member_id == ""


def test_one_who_polls_stays(alone: Alone) -> None:
    alone.settle(T0)
    for _ in range(3):
        alone.clock.now_seconds += 299
        alone.poll()
        alone.beat()
    assert alone.state() is State.STABLE


def test_a_static_member_that_does_not_poll_is_silent_until_it_does() -> None:
    alone = Alone(config={"group_instance_id": "i"})
    alone.settle(T0)
    alone.clock.now_seconds += 301
    assert isinstance(alone.next_due(), float)
    assert alone.idles()
    alone.poll()
    assert alone.told.said[1:] == [("lost", (T0,))]
    alone.close()


def test_leaving_gives_up_all_and_says_why(alone: Alone) -> None:
    alone.settle(T0)
    leaving = alone.leave()
    assert alone.told.said[1:] == [("revoked", (T0,))]
    assert [(each.member_id, each.reason) for each in leaving.members] == [("m", "test")]
    assert not alone.has_left()
    alone.answer(leaving, LeaveGroupResponse())
    assert alone.has_left()
    alone.poll()
    assert alone.idles()
    alone.membership.subscribe(["t"])
    alone.settle(T1)
    assert alone.told.said[2:] == [("assigned", (T1,))]


def test_leaving_an_old_broker(alone: Alone) -> None:
    alone.settle(T0)
    alone.coordinator.answer(alone.leave(), UnsupportedVersionError("old"))
    assert alone.next(LeaveGroupRequest) == LeaveGroupRequest("g", "m")


def test_one_who_leaves_in_the_midst_of_a_rebalance_has_lost_what_it_kept(
    cooperative: Alone,
) -> None:
    cooperative.settle(T0)
    cooperative.membership.rejoin("test")
    cooperative.poll()
    joining = cooperative.next(JoinGroupRequest)
    cooperative.leave()
    assert cooperative.told.said[1:] == [("lost", (T0,))]
    assert not cooperative.coordinator.awaits(joining)


def test_a_static_member_leaves_without_a_word() -> None:
    alone = Alone(config={"group_instance_id": "i"})
    alone.settle(T0)
    run(alone.membership.leave(Deadline.after_ms(1_000), "test"))
    assert alone.told.said[1:] == [("revoked", (T0,))]
    assert alone.has_left()
    assert alone.idles()
    alone.close()


def test_a_farewell_is_tried_until_its_deadline(
    alone: Alone, caplog: pytest.LogCaptureFixture
) -> None:
    alone.settle(T0)
    run(alone.membership.leave(Deadline.after_ms(0), "test"))
    alone.coordinator.answer(alone.next(LeaveGroupRequest), ConnectionFailedError("gone"))
    assert alone.has_left()
    assert "was not told that a member left: gone" in caplog.text


def test_the_leader_watches_the_partitions_of_all_topics(alone: Alone) -> None:
    alone.settle(T0)
    alone.clock.now_seconds += 61
    alone.beat()
    alone.next_due()
    alone.poll()
    assert alone.state() is State.STABLE
    alone.cluster = topics(t=3)
    alone.clock.now_seconds += 61
    alone.beat()
    alone.next_due()
    alone.poll()
    assert alone.next(JoinGroupRequest).reason == "the partitions of t have changed"


def test_heartbeats_go_on_between_looks_that_take_long(alone: Alone) -> None:
    """A missing topic is looked for again and again, and each look takes the whole interval."""
    alone.membership.subscribe(["t", "u"])
    looks = []
    topics_of = alone.membership._topics_of

    async def slowly(topics: Collection[str], until: Deadline) -> Cluster:
        looks.append(topics)
        alone.clock.now_seconds += 3
        return await topics_of(topics, until)

    alone.settle(T0)
    alone.membership._topics_of = slowly
    for _ in range(3):
        count = len(looks)
        alone.beat()
        assert len(looks) <= count + 1
    assert looks


def test_one_who_follows_watches_nothing(alone: Alone) -> None:
    alone.poll()
    response = JoinGroupResponse(0, 0, 1, "consumer", "deal", "leader", False, "m")
    alone.answer(alone.next(JoinGroupRequest), response)
    assert alone.next(SyncGroupRequest).assignments == []
    alone.sync(T0)
    alone.poll()
    alone.cluster = {}
    alone.clock.now_seconds += 61
    alone.next_due()
    alone.poll()
    assert alone.state() is State.STABLE


def test_a_leader_that_need_not_assign_does_not_but_watches(alone: Alone) -> None:
    alone.poll()
    request = alone.next(JoinGroupRequest)
    members = [JoinGroupResponseMember("m", None, request.protocols[0].metadata)]
    alone.answer(request, JoinGroupResponse(0, 0, 1, "consumer", "deal", "m", True, "m", members))
    assert alone.next(SyncGroupRequest).assignments == []
    alone.sync(T0)
    alone.poll()
    alone.cluster = {}
    alone.clock.now_seconds += 61
    alone.beat()
    alone.next_due()
    alone.poll()
    assert alone.state() is State.PREPARING_REBALANCE


def test_an_assignor_that_fails_is_told_of_in_the_next_poll(alone: Alone) -> None:
    alone.deal.failure = ZeroDivisionError()
    alone.poll()
    alone.join()
    assert alone.idles()
    with pytest.raises(ZeroDivisionError):
        alone.poll()
    alone.deal.failure = None
    alone.settle(T0, generation_id=2)
    assert alone.membership.assignment == {T0}


def test_a_cooperative_assignor_may_not_give_what_another_owns(cooperative: Alone) -> None:
    cooperative.poll()
    request = cooperative.next(JoinGroupRequest)
    owner = Subscription(("t",), owned=(T0, T1)).encode()
    members = [
        JoinGroupResponseMember("a", None, request.protocols[0].metadata),
        JoinGroupResponseMember("m", None, owner),
    ]
    response = JoinGroupResponse(0, 0, 1, "consumer", "deal", "m", False, "m", members)
    cooperative.deal.assign = lambda *_: {  # type: ignore[method-assign]
        "a": Assignment((T0,)),
        "m": Assignment((T1,)),
    }
    cooperative.answer(request, response)
    with pytest.raises(LocalError, match="still owns: t-0;"):
        cooperative.poll()


@pytest.mark.parametrize("name", ["cooperative-sticky", "other"])
def test_kafkas_own_assignor_says_itself_which_claims_count(name: str) -> None:
    """A member that missed a generation claims partitions that now belong to others."""
    claims = [("old", (T0, T1)), ("new", ())]
    members = [
        JoinGroupResponseMember(member_id, None, Subscription(("t",), owned=owned).encode())
        for member_id, owned in claims
    ]
    response = JoinGroupResponse(leader="new", member_id="new", members=members)
    deal = Deal(RebalanceProtocol.COOPERATIVE, name)
    moved = {"old": Assignment((T0,)), "new": Assignment((T1,))}

    async def topics_of(*_: object) -> Cluster:
        return topics(t=2)

    deal.assign = lambda *_: moved  # type: ignore[method-assign]
    if name == "other":
        with pytest.raises(LocalError, match="still owns: t-1;"):
            run(divide(response, deal, topics_of, is_cooperative=True))
    else:
        _, assignments = run(divide(response, deal, topics_of, is_cooperative=True))
        assert {each.member_id for each in assignments} == {"old", "new"}


def test_racks_that_change_are_news_only_where_racks_matter() -> None:
    before, now = in_racks(t="a"), in_racks(t="b")
    assert changed_topics(before, now, by_rack=True) == ["t"]
    assert changed_topics(before, now, by_rack=False) == []
    assert changed_topics(before, {}, by_rack=False) == ["t"]


@pytest.mark.parametrize(
    ("protocol_type", "protocol_name"), [("connect", "deal"), ("consumer", "other")]
)
def test_a_group_of_another_kind_is_refused(
    alone: Alone, protocol_type: str, protocol_name: str
) -> None:
    alone.poll()
    response = JoinGroupResponse(0, 0, 1, protocol_type, protocol_name, "x", False, "m")
    alone.answer(alone.next(JoinGroupRequest), response)
    with pytest.raises(BrokerError, match="INCONSISTENT_GROUP_PROTOCOL"):
        alone.poll()


@pytest.mark.parametrize("data", [b"\0", b"\0\0\xff\xff\xff\xff", b"\0\0\0\0\0\x01"])
def test_hostile_bytes_of_others_are_typed_errors(alone: Alone, data: bytes) -> None:
    alone.poll()
    members = [JoinGroupResponseMember("m", None, data)]
    request = alone.next(JoinGroupRequest)
    alone.answer(request, JoinGroupResponse(0, 0, 1, "consumer", "deal", "m", False, "m", members))
    with pytest.raises(ProtocolError):
        alone.poll()
    alone.poll()
    alone.join()
    answer = SyncGroupResponse(0, 0, "consumer", "deal", data)
    alone.answer(alone.next(SyncGroupRequest), answer)
    with pytest.raises(ProtocolError):
        alone.poll()


def test_settings_have_kafkas_names_and_go_together() -> None:
    config = Settings(
        {"kafka.group.id": "g", "kafka.group.instance.id": "i", "kafka.session.timeout.ms": "6000"}
    ).read(GroupConfig)
    assert (config.group_id, config.group_instance_id) == ("g", "i")
    assert (config.session_timeout_ms, config.max_poll_interval_ms) == (6_000, 300_000)
    with pytest.raises(ConfigurationError, match=r"kafka\.group\.id"):
        GroupConfig()
    with pytest.raises(ConfigurationError, match=r"kafka\.heartbeat\.interval\.ms"):
        GroupConfig(group_id="g", heartbeat_interval_ms=45_000)
