"""Classic members with threads and connections, and an in-memory coordinator."""

import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import BrokerError, UnsupportedVersionError, error_named
from spark_kafka_source.groups import commit_offsets, committed_offsets, membership
from spark_kafka_source.groups.assignors import Assignment
from spark_kafka_source.groups.classic import State
from spark_kafka_source.net import ConnectionSettings, Deadline, readable, run
from spark_kafka_source.protocol.messages.find_coordinator import FindCoordinatorRequest
from spark_kafka_source.protocol.messages.membership import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from spark_kafka_source.testing.memory import KAFKA_2_1, Action, MemoryBroker
from spark_kafka_source.topic_partition import TopicPartition
from tests.groups.members import PATIENCE_MS, member, settle_all

pytestmark = pytest.mark.memory(nodes=3)

T0, T1, T2, T3 = (TopicPartition("t", partition) for partition in range(4))
ALL = (T0, T1, T2, T3)
HOUR_MS = 3_600_000
IMPATIENT = {"settings": ConnectionSettings(request_timeout_ms=200)}
BOTH = pytest.mark.parametrize("cooperative", [False, True], ids=["eager", "cooperative"])


@pytest.fixture(autouse=True)
def topics(broker: MemoryBroker) -> None:
    broker.create_topic("t", 4)
    broker.cluster.coordinators["g"] = 1


@pytest.fixture(autouse=True)
def no_thread_remains() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    left = [each for each in set(threading.enumerate()) - before if each.name.startswith("group")]
    for each in left:  # Close waits a second for it.
        each.join(PATIENCE_MS / 1000)
        assert not each.is_alive()


@BOTH
def test_members_come_and_go(broker: MemoryBroker, cooperative: bool) -> None:
    with member(broker, cooperative=cooperative) as one:
        one.settle(*ALL)
        with member(broker, cooperative=cooperative) as two:
            settle_all(one, two, partitions=4)
            with member(broker, cooperative=cooperative) as three:
                settle_all(one, two, three, partitions=4)
            settle_all(one, two, partitions=4)
        one.settle(*ALL)
    assert broker.group("g").members == {}


def test_eager_members_are_told_of_all_at_each_round(broker: MemoryBroker) -> None:
    with member(broker) as one, member(broker) as two:
        one.settle(*ALL)
        settle_all(one, two, partitions=4)
        assert one.told.said == [("assigned", ALL), ("revoked", ALL), ("assigned", (T0, T2))]
        assert two.told.said == [("assigned", (T1, T3))]


def test_cooperative_members_are_told_of_what_moves(broker: MemoryBroker) -> None:
    with member(broker, cooperative=True) as one, member(broker, cooperative=True) as two:
        one.settle(*ALL)
        settle_all(one, two, partitions=4)
        # Each round also has an empty call. Their number may vary by one.
        told = [[each for each in member.told.said if each[1]] for member in (one, two)]
        assert told[0] == [("assigned", ALL), ("revoked", (T1, T3))]
        assert told[1] == [("assigned", (T1, T3))]


def test_one_who_waits_is_woken_by_a_rebalance(broker: MemoryBroker) -> None:
    with member(broker) as one:
        one.settle(*ALL)
        run(one.membership.poll())  # This handles all wake-ups so far.
        broker.gather("g")
        while one.told.said[-1] != ("revoked", ALL):  # A late heartbeat may wake it first.
            assert readable([one.membership], Deadline.after_ms(PATIENCE_MS))
            run(one.membership.poll())


def test_a_poll_waits_for_nothing(broker: MemoryBroker) -> None:
    hold = broker.hold(FindCoordinatorRequest)
    with member(broker) as one:
        for _ in range(3):
            run(one.membership.poll())
        assert one.membership.state is State.PREPARING_REBALANCE
        hold.release()
        one.settle(*ALL)


@BOTH
def test_one_whose_session_is_over_has_lost_all_and_joins_anew(
    broker: MemoryBroker, cooperative: bool
) -> None:
    with member(broker, cooperative=cooperative) as one:
        one.settle(*ALL)
        (member_id,) = broker.group("g").members
        broker.drop_member("g", member_id)
        one.poll_until(lambda: ("lost", ALL) in one.told.said)
        one.settle(*ALL)
        assert member_id not in broker.group("g").members


def test_what_a_member_commits_within_revoked_is_there_for_the_next(broker: MemoryBroker) -> None:
    with KafkaClient(broker.config()) as client, member(broker) as one, member(broker) as two:

        def commit(what: str) -> None:
            if what == "revoked":
                offsets = dict.fromkeys(one.membership.assignment, 7)
                client.run(
                    commit_offsets(client, "g", offsets, member_of=lambda: one.membership.member)
                )

        one.told.during = commit
        one.settle(*ALL)
        settle_all(one, two, partitions=4)
        assert client.run(committed_offsets(client, "g", [T1])) == {T1: 7}
        with pytest.raises(BrokerError, match="UNKNOWN_MEMBER_ID"):
            client.run(commit_offsets(client, "g", {T1: 8}))


def test_a_coordinator_that_moves_is_found(broker: MemoryBroker) -> None:
    with member(broker) as one:
        one.settle(*ALL)
        broker.cluster.coordinators["g"] = 2
        broker.forget()
        broker.wait_for(FindCoordinatorRequest)
        broker.wait_for(HeartbeatRequest, 2)
        assert one.told.said == [("assigned", ALL)]


@pytest.mark.parametrize("how", ["hang up", "silence", "restart"])
def test_a_connection_that_ends_costs_nothing(broker: MemoryBroker, how: str) -> None:
    with member(broker, client=IMPATIENT) as one:
        one.settle(*ALL)
        broker.forget()
        accepted = broker.accepted(1)
        if how == "hang up":
            broker.hang_up(1)
        elif how == "silence":
            broker.control(HeartbeatRequest, Action.SILENCE)
        else:
            broker.stop(1)
            broker.start(1)
        one.poll_until(lambda: broker.accepted(1) > accepted)
        heartbeats = len(broker.requests(HeartbeatRequest))
        broker.wait_for(HeartbeatRequest, heartbeats + 2)
        run(one.membership.poll())
        assert one.told.said == [("assigned", ALL)]


@pytest.mark.parametrize("request_type", [JoinGroupRequest, SyncGroupRequest])
def test_a_connection_that_breaks_while_the_group_gathers(
    broker: MemoryBroker, request_type: type[JoinGroupRequest | SyncGroupRequest]
) -> None:
    broker.control(request_type, Action.CLOSE, times=3)
    with member(broker) as one:
        one.settle(*ALL)
        assert one.told.said == [("assigned", ALL)]


def test_static_members_come_back_to_what_they_had(broker: MemoryBroker) -> None:
    with member(broker) as one:
        with member(broker, group_instance_id="i") as two:
            settle_all(one, two, partitions=4)
            owned = two.membership.assignment
        generation_id = broker.group("g").generation_id
        with member(broker, group_instance_id="i") as two:
            two.settle(*owned)
            run(one.membership.poll())
            assert broker.group("g").generation_id == generation_id
            assert not broker.requests(LeaveGroupRequest)


def test_a_static_leader_comes_back_without_a_rebalance(broker: MemoryBroker) -> None:
    with member(broker, group_instance_id="i") as one:
        one.settle(*ALL)
    with member(broker, group_instance_id="i") as one:
        one.settle(*ALL)
        assert broker.group("g").generation_id == 1
        assert broker.requests(SyncGroupRequest)[-1].assignments == []


def test_one_whose_instance_id_another_took_is_fenced_for_good(broker: MemoryBroker) -> None:
    with member(broker, group_instance_id="i") as one:
        one.settle(*ALL)
        with member(broker, group_instance_id="i") as two:
            two.settle(*ALL)
            for _ in range(2):
                with pytest.raises(BrokerError, match=r"FENCED.*kafka\.group\.instance\.id"):
                    one.poll_until(lambda: False)
            two.settle(*ALL)
    assert one.told.said == [("assigned", ALL), ("lost", ALL)]


def test_one_who_does_not_poll_is_replaced(broker: MemoryBroker) -> None:
    with member(broker, max_poll_interval_ms=600) as slow, member(broker) as other:
        settle_all(slow, other, partitions=4)
        other.settle(*ALL)
        owned = tuple(sorted(slow.membership.assignment))
        settle_all(slow, other, partitions=4)
        assert ("lost", owned) in slow.told.said


def test_leaving_in_the_midst_of_joining_does_not_wait_for_the_others(
    broker: MemoryBroker,
) -> None:
    with member(broker) as one:
        one.settle(*ALL)
        with member(broker) as two:
            # `one` does not poll, so the rebalance never completes.
            run(two.membership.poll())
            broker.wait_for(JoinGroupRequest, 4)
        assert len(broker.group("g").members) == 1


def test_one_who_left_while_it_looked_for_its_coordinator_does_not_ask_it(
    broker: MemoryBroker,
) -> None:
    broker.cluster.coordinators["g"] = 0
    held = broker.hold(FindCoordinatorRequest)
    with member(broker) as one:
        run(one.membership.poll())
        broker.wait_for(FindCoordinatorRequest)
        run(one.membership.leave(Deadline.after_ms(PATIENCE_MS)))
        held.release()
        one.membership.subscribe(["t"])
        one.settle(*ALL)
        # The first one brings the member id.
        assert len(broker.requests(JoinGroupRequest)) == 2


def test_closing_without_any_broker_is_bounded(broker: MemoryBroker) -> None:
    with member(broker) as one:
        one.settle(*ALL)
        broker.stop(0)
        broker.stop(1)
        broker.stop(2)
        run(one.membership.close(Deadline.after_ms(100)))
        assert one.told.said[-1] == ("revoked", ALL)


@pytest.mark.parametrize("what", ["lives on after its last word", "never ends"])
def test_closing_a_member_whose_thread_lives_on(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """A thread is alive for a while after its last word. One that never ends costs a second."""
    divides, go_on = threading.Event(), threading.Event()

    def assign(*_: object) -> Mapping[str, Assignment]:
        divides.set()
        go_on.wait()
        return {}

    most_ms = 1 if what == "never ends" else HOUR_MS
    monkeypatch.setattr(membership, "_THREAD_END_TIMEOUT_MS", most_ms)
    with member(broker) as one:
        if what == "never ends":
            monkeypatch.setattr(one.deal, "assign", assign)
            one.poll_until(divides.is_set)
        else:
            one.settle(*ALL)
            monkeypatch.setattr(one.membership._thread, "is_alive", lambda: True)
        closing = threading.Thread(
            target=run, args=[one.membership.close(Deadline.after_ms(most_ms))], daemon=True
        )
        closing.start()
        closing.join(PATIENCE_MS / 1000)
        has_closed = not closing.is_alive()
        go_on.set()
        assert has_closed
        assert one.membership._thread is not None
        one.membership._thread.join()


def test_a_thread_that_could_not_start_is_started_by_the_next_poll(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with member(broker) as one:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", none_left)
            with pytest.raises(RuntimeError, match="start new thread"):
                run(one.membership.poll())
        one.settle(*ALL)


@pytest.mark.parametrize("what", ["revoked", "lost"])
def test_a_ctrl_c_in_the_listener_of_one_who_closes_does_not_keep_it_in_the_group(
    broker: MemoryBroker, what: str
) -> None:
    with member(broker, cooperative=True) as one:
        one.settle(*ALL)
        if what == "lost":
            held = broker.hold(JoinGroupRequest)
            one.membership.rejoin("test")
            run(one.membership.poll())
        one.told.interrupt_at(what)
        with pytest.raises(KeyboardInterrupt):
            run(one.membership.close(Deadline.after_ms(PATIENCE_MS)))
        assert len(broker.requests(LeaveGroupRequest)) == 1
        if what == "lost":
            held.release()
        assert one.membership.assignment == frozenset()


def test_an_error_without_remedy_is_raised_in_poll(broker: MemoryBroker) -> None:
    broker.control(FindCoordinatorRequest, error_named("GROUP_AUTHORIZATION_FAILED"))
    with member(broker) as one:
        with pytest.raises(BrokerError, match="GROUP_AUTHORIZATION_FAILED"):
            one.poll_until(lambda: False)
        one.settle(*ALL)


def test_the_oldest_brokers_do_the_same() -> None:
    with MemoryBroker(versions=KAFKA_2_1) as broker:
        broker.create_topic("t", 4)
        with member(broker) as one, member(broker) as two:
            settle_all(one, two, partitions=4)
        assert broker.group("g").members == {}
        with (
            member(broker, group_instance_id="i") as three,
            pytest.raises(UnsupportedVersionError, match="group_instance_id"),
        ):
            three.poll_until(lambda: False)


def test_partitions_that_are_added_are_divided(broker: MemoryBroker) -> None:
    with member(broker, client={"metadata_max_age_ms": 50}) as one:
        one.settle(*ALL)
        broker.create_topic("t", 5, topic_id=broker.cluster.topics["t"].topic_id)
        one.settle(*ALL, TopicPartition("t", 4))


def test_the_thread_sleeps_between_heartbeats(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with member(broker) as one:
        one.settle(*ALL)
        asked = []
        due = one.membership._due_work

        def counted() -> Any:
            asked.append(1)
            return due()

        broker.forget()
        monkeypatch.setattr(one.membership, "_due_work", counted)
        broker.wait_for(HeartbeatRequest, 5)
        assert len(asked) <= 3 * len(broker.requests(HeartbeatRequest))
