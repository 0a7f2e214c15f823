"""A `KafkaConsumer` that subscribes, with and without a group: topics, rebalances, commits."""

import re
import threading
import time
from collections.abc import Callable, Collection
from typing import Any

import pytest

from spark_kafka_source.consumer.consumer_records import ConsumerRecords
from spark_kafka_source.consumer.kafka_consumer import KafkaConsumer
from spark_kafka_source.consumer.rebalance_listener import ConsumerRebalanceListener
from spark_kafka_source.consumer.waiting import WakeupError
from spark_kafka_source.errors import (
    BrokerError,
    ConfigurationError,
    KafkaTimeoutError,
    LocalError,
    error_named,
)
from spark_kafka_source.groups import CommitFailedError, OffsetAndMetadata
from spark_kafka_source.protocol.messages.groups import OffsetCommitRequest
from spark_kafka_source.protocol.messages.membership import LeaveGroupRequest
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.testing.memory import Action, MemoryBroker
from spark_kafka_source.topic_partition import TopicPartition
from tests.consumer.consumers import (
    IN_GROUP,
    PATIENCE_MS,
    T0,
    T1,
    T2,
    Listener,
    clients_threads,
    consuming,
    eventually,
    fill,
    of,
    places,
    poll_all_until,
    poll_until,
    polled,
)

pytestmark = pytest.mark.memory(nodes=2, topics={"t": 2}, coordinators={"g": 1})


def committed(broker: MemoryBroker, where: TopicPartition = T0) -> int | None:
    return broker.cluster.committed.get("g", {}).get(where)


def commits(broker: MemoryBroker) -> list[dict[int, int]]:
    """Return the offsets of each OffsetCommit request."""
    return [
        {p.partition_index: p.committed_offset for topic in each.topics for p in topic.partitions}
        for each in broker.requests(OffsetCommitRequest)
    ]


# -- topics ----------------------------------------------------------------------------------------


def test_one_member_reads_all_and_goes_on_where_it_committed(broker: MemoryBroker) -> None:
    fill(broker, T0, 1)
    with consuming(broker, **IN_GROUP) as consumer:
        consumer.subscribe(["t"])
        assert polled(consumer, 10) == of(T0, range(10))
        assert consumer.subscription() == {"t"}
        assert consumer.assignment() == {T0, T1}
        consumer.commit({T0: OffsetAndMetadata(4, 0, "note"), T1: 0})
        assert consumer.committed([T0, T1, T2])[T0].offset == 4
        assert consumer.committed([T2]) == {T2: None}
        assert consumer.group_metadata().group_id == "g"
    with consuming(broker, **IN_GROUP) as consumer:
        consumer.subscribe(["t"])
        assert polled(consumer, 6) == of(T0, range(4, 10))


def test_two_members_share_and_take_over(broker: MemoryBroker) -> None:
    fill(broker, T0, 1)
    fill(broker, T1, 1)
    mine, yours = Listener(), Listener()
    with consuming(broker, **IN_GROUP) as one:
        one.subscribe(["t"], listener=mine)
        polled(one, 20)
        one.commit()
        with consuming(broker, **IN_GROUP) as two:
            two.subscribe(["t"], listener=yours)
            poll_all_until(
                one, two, done=lambda: len(one.assignment()) == len(two.assignment()) == 1
            )
            assert one.assignment() | two.assignment() == {T0, T1}
            fill(broker, T0, 1)
            fill(broker, T1, 1)
            found = polled(one, 0) + polled(two, 0)
            deadline = time.monotonic() + PATIENCE_MS / 1000
            while len(found) < 20 and time.monotonic() < deadline:
                for each in (one, two):
                    found += places(each.poll(timeout_ms=10))
                    each.commit()
            assert sorted(found) == of(T0, range(10, 20)) + of(T1, range(10, 20))
        poll_all_until(one, done=lambda: one.assignment() == {T0, T1})
        fill(broker, T0, 1)
        assert polled(one, 10) == of(T0, range(20, 30))
    assert mine.said[:2] == [("assigned", {T0, T1}), ("revoked", {T0, T1})]
    assert yours.said[-1][0] == "revoked"


@pytest.mark.parametrize("group", [{}, IN_GROUP])
def test_a_pattern_that_matches_nothing_and_then_something(
    broker: MemoryBroker, group: dict[str, Any]
) -> None:
    with consuming(broker, metadata_max_age_ms=30, **group) as consumer:
        consumer.subscribe(pattern="new.*")
        assert len(consumer.poll(timeout_ms=60)) == 0
        assert consumer.subscription() == consumer.assignment() == set()
        broker.create_topic("newest")
        there = TopicPartition("newest", 0)
        fill(broker, there, 1)
        assert polled(consumer, 10) == of(there, range(10))
        assert consumer.subscription() == {"newest"}
        del broker.cluster.topics["newest"]
        poll_until(consumer, lambda: not consumer.assignment())
        consumer.poll(timeout_ms=30)


def test_internal_topics_are_not_matched_unless_told(broker: MemoryBroker) -> None:
    broker.create_topic("__consumer_offsets")
    for hidden, expected in (("true", {"t"}), ("false", {"t", "__consumer_offsets"})):
        with consuming(broker, exclude_internal_topics=hidden) as consumer:
            consumer.subscribe(pattern=re.compile("t|__.*"))
            poll_until(consumer, lambda: bool(consumer.subscription()))
            assert consumer.subscription() == expected


def test_a_subscription_without_a_group_reads_all_partitions(broker: MemoryBroker) -> None:
    fill(broker, T1, 1)
    with consuming(broker) as consumer:
        consumer.subscribe("t")
        assert polled(consumer, 10) == of(T1, range(10))
        assert consumer.assignment() == {T0, T1}


def test_a_topic_that_is_made_after_it_was_subscribed_to_is_found_soon(
    broker: MemoryBroker,
) -> None:
    with consuming(broker) as consumer:
        consumer.subscribe(["u"])
        consumer.poll(timeout_ms=50)
        broker.create_topic("u")
        there = TopicPartition("u", 0)
        fill(broker, there, 1)
        assert polled(consumer, 10) == of(there, range(10))


def test_a_broker_that_does_not_know_a_topic_for_a_while_costs_no_position(
    broker: MemoryBroker,
) -> None:
    fill(broker, T0, 1)
    with consuming(broker, metadata_max_age_ms=20, auto_offset_reset="latest") as consumer:
        consumer.subscribe(["t"])
        poll_until(consumer, lambda: consumer.assignment() == {T0, T1})
        assert consumer.position(T0) == 10
        gone = broker.cluster.topics.pop("t")
        for _ in range(5):
            consumer.poll(timeout_ms=20)
        broker.cluster.topics["t"] = gone
        fill(broker, T0, 1)
        assert polled(consumer, 10) == of(T0, range(10, 20))


def test_to_subscribe_again_and_to_unsubscribe(broker: MemoryBroker) -> None:
    broker.create_topic("u")
    there = TopicPartition("u", 0)
    fill(broker, there, 1)
    listener = Listener()
    with consuming(broker, **IN_GROUP) as consumer:
        consumer.subscribe(["t"], listener=listener)
        poll_until(consumer, lambda: consumer.assignment() == {T0, T1})
        consumer.subscribe(["u"], listener=listener)
        assert polled(consumer, 10) == of(there, range(10))
        assert consumer.assignment() == {there}
        consumer.unsubscribe()
        assert not consumer.assignment()
        assert listener.said[-1] == ("revoked", {there})
        assert len(broker.requests(LeaveGroupRequest)) == 1
        consumer.assign([T0])
        consumer.unsubscribe()
        consumer.subscribe(["u"])
        assert polled(consumer, 10) == of(there, range(10))


def test_a_topic_that_is_deleted_while_it_is_subscribed_to(broker: MemoryBroker) -> None:
    broker.create_topic("u")
    there = TopicPartition("u", 0)
    with consuming(broker, metadata_max_age_ms=30, **IN_GROUP) as consumer:
        consumer.subscribe(["t", "u"])
        poll_until(consumer, lambda: there in consumer.assignment())
        del broker.cluster.topics["u"]
        fill(broker, T0, 1)
        assert polled(consumer, 10) == of(T0, range(10))
        poll_until(consumer, lambda: consumer.assignment() == {T0, T1})


def test_what_cannot_be_subscribed_to(broker: MemoryBroker) -> None:
    with consuming(broker) as consumer:
        for wrong in ({}, {"topics": ["t"], "pattern": "t"}):
            with pytest.raises(LocalError, match="either topics or a pattern"):
                consumer.subscribe(**wrong)
        with pytest.raises(LocalError, match="no regular expression"):
            consumer.subscribe(pattern="(")
        assert consumer.subscription() == set()
        consumer.subscribe(["t"])
        with pytest.raises(LocalError, match="unsubscribe"):
            consumer.assign([T0])
        refused = error_named("TOPIC_AUTHORIZATION_FAILED")
        broker.control(MetadataRequest, refused, times=2)  # To create the topic, and to read it.
        with pytest.raises(BrokerError, match=r"Metadata of t: TOPIC_AUTHORIZATION_FAILED"):
            consumer.poll(timeout_ms=PATIENCE_MS)


# -- listeners -------------------------------------------------------------------------------------


def test_a_listener_may_seek_in_what_is_assigned(broker: MemoryBroker) -> None:
    fill(broker, T0, 1)
    with consuming(broker, **IN_GROUP) as consumer:

        def seek(what: str, partitions: Collection[TopicPartition]) -> None:
            if what == "assigned":
                for each in partitions:
                    consumer.seek(each, 7 if each == T0 else 0)

        consumer.subscribe(["t"], listener=Listener(seek))
        assert polled(consumer, 3) == of(T0, range(7, 10))


def test_a_listener_may_commit_what_is_revoked(broker: MemoryBroker) -> None:
    fill(broker, T0, 1)
    with consuming(broker, **IN_GROUP) as consumer:

        def commit(what: str, _: Collection[TopicPartition]) -> None:
            if what == "revoked" and consumer.assignment():
                consumer.commit()

        consumer.subscribe(["t"], listener=Listener(commit))
        polled(consumer, 10)
        broker.gather("g")
        poll_until(consumer, lambda: committed(broker) == 10)
        fill(broker, T0, 1)
        assert polled(consumer, 10) == of(T0, range(10, 20))
        assert consumer.assignment() == {T0, T1}
    assert committed(broker) == 20


@pytest.mark.parametrize("iterates", [False, True], ids=["poll", "iteration"])
def test_a_listener_may_not_poll(broker: MemoryBroker, *, iterates: bool) -> None:
    fill(broker, T0, 1)
    with consuming(broker, **IN_GROUP) as consumer:

        def poll(what: str, _: Collection[TopicPartition]) -> None:
            if what == "assigned":
                next(iter(consumer)) if iterates else consumer.poll()

        consumer.subscribe(["t"], listener=Listener(poll))
        with pytest.raises(LocalError, match=r"^poll\(\) was called in a callback"):
            consumer.poll(60_000)
        assert polled(consumer, 10) == of(T0, range(10))


@pytest.mark.parametrize("moment", ["assigned", "revoked"])
def test_what_a_listener_raises_comes_out_of_poll_once_and_all_goes_on(
    broker: MemoryBroker, moment: str
) -> None:
    fill(broker, T0, 1)
    raised = 0

    def fail(what: str, partitions: Collection[TopicPartition]) -> None:
        nonlocal raised
        if what == moment and partitions and not raised:
            raised += 1
            raise RuntimeError("of the listener")

    with consuming(broker, **IN_GROUP) as consumer:
        consumer.subscribe(["t"], listener=Listener(fail))
        errors = 0
        found: list[Any] = []

        def poll() -> None:
            nonlocal errors
            try:
                found.extend(places(consumer.poll(timeout_ms=10)))
            except RuntimeError:
                errors += 1

        def polled_until(done: Callable[[], bool]) -> None:
            deadline = time.monotonic() + PATIENCE_MS / 1000
            while not done():
                assert time.monotonic() < deadline, (errors, found)
                poll()

        polled_until(lambda: bool(consumer.assignment()))
        first = generation(consumer)
        broker.gather("g")
        polled_until(lambda: generation(consumer) > first)
        polled_until(lambda: errors > 0 and len(found) >= 10)
        for _ in range(10):
            poll()
        assert errors == 1
        assert found[:10] == of(T0, range(10))


def test_a_listener_that_knows_nothing_of_losses_is_told_of_a_revocation() -> None:
    class Short(ConsumerRebalanceListener):
        told: list[TopicPartition]

        def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
            self.told = list(partitions)

    listener = Short()
    listener.on_partitions_assigned([T0])
    listener.on_partitions_lost([T0])
    assert listener.told == [T0]


def test_a_member_that_was_dropped_loses_its_partitions_and_gets_them_again(
    broker: MemoryBroker,
) -> None:
    fill(broker, T0, 1)
    listener = Listener()
    with consuming(broker, **IN_GROUP | {"enable_auto_commit": True}) as consumer:
        consumer.subscribe(["t"], listener=listener)
        polled(consumer, 10)
        broker.drop_member("g", consumer.group_metadata().member_id)
        again: list[tuple[TopicPartition, int]] = []

        def hear(records: ConsumerRecords) -> None:
            again.extend(places(records))

        # The poll that reports the loss may return the first records of the new assignment.
        poll_until(consumer, lambda: ("lost", {T0, T1}) in listener.said, hear)
        assert committed(broker) is None, "what is lost cannot be committed"
        poll_until(consumer, lambda: len(again) >= 10, hear)
        assert again == of(T0, range(10))


# -- commits ---------------------------------------------------------------------------------------


def test_commits_are_made_in_the_order_they_were_asked_for(broker: MemoryBroker) -> None:
    """A slow coordinator and waits for commits do not change the order."""
    told: list[Any] = []
    with consuming(broker, T0, group_id="g", enable_auto_commit=False) as consumer:
        held = broker.hold(OffsetCommitRequest)
        for offset in range(1, 6):
            consumer.commit_async({T0: offset}, lambda offsets, e: told.append((offsets[T0], e)))
        threading.Timer(0.05, held.release).start()
        consumer.commit({T0: 6})
        assert [each[0] for each in commits(broker)] == [1, 2, 3, 4, 5, 6]
        assert [(at.offset, error) for at, error in told] == [(n, None) for n in range(1, 6)]
    assert committed(broker) == 6


def test_a_commit_that_is_tried_again_is_not_overtaken(broker: MemoryBroker) -> None:
    broker.control(OffsetCommitRequest, error_named("COORDINATOR_LOAD_IN_PROGRESS"), times=3)
    with consuming(broker, T0, group_id="g", enable_auto_commit=False) as consumer:
        consumer.commit_async({T0: 1})
        consumer.commit({T0: 2})
        assert [each[0] for each in commits(broker)] == [1, 1, 1, 1, 2]
        assert committed(broker) == 2


def test_callbacks_are_run_in_the_thread_that_polls(broker: MemoryBroker) -> None:
    told: list[Any] = []

    def note(offsets: Any, error: Any) -> None:
        told.append((threading.get_ident(), offsets, error))
        if len(told) == 1:
            consumer.commit_async({T0: 2}, note)
            consumer.commit({T0: 3})

    with consuming(broker, T0, group_id="g", enable_auto_commit=False) as consumer:
        consumer.commit_async({T0: OffsetAndMetadata(1, 0, "text")}, note)
        began = time.monotonic()
        poll_until(consumer, lambda: len(told) == 2)
        assert time.monotonic() - began < PATIENCE_MS / 2000
        assert {each[0] for each in told} == {threading.get_ident()}
        assert told[0][1:] == ({T0: OffsetAndMetadata(1, 0, "text")}, None)
        assert committed(broker) == 3


def test_a_commit_that_fails_says_why(broker: MemoryBroker) -> None:
    refused = error_named("GROUP_AUTHORIZATION_FAILED")
    told: list[Any] = []
    with consuming(broker, T0, group_id="g", enable_auto_commit=False) as consumer:
        broker.control(OffsetCommitRequest, refused, times=2)
        with pytest.raises(BrokerError, match="GROUP_AUTHORIZATION_FAILED"):
            consumer.commit({T0: 1})
        consumer.commit_async({T0: 1}, lambda _, error: told.append(error))
        poll_until(consumer, lambda: bool(told))
        assert told[0].error == refused
        with pytest.raises(LocalError, match="offset -1 of t-0"):
            consumer.commit({T0: -1})
        broker.control(OffsetCommitRequest, Action.SILENCE, times=None)
        with pytest.raises(KafkaTimeoutError, match="'g'"):
            consumer.commit({T0: 1}, timeout_ms=50)


@pytest.mark.parametrize(
    "name", ["UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS"]
)
def test_a_commit_of_who_is_no_member_any_more(broker: MemoryBroker, name: str) -> None:
    with consuming(broker, **IN_GROUP) as consumer:
        consumer.subscribe(["t"])
        with pytest.raises(CommitFailedError):
            consumer.commit({T0: 1})
        poll_until(consumer, lambda: bool(consumer.assignment()))
        broker.control(OffsetCommitRequest, error_named(name))
        with pytest.raises(CommitFailedError, match=name):
            consumer.commit({T0: 1})
        consumer.commit({T0: 1})


def test_a_commit_that_waited_through_a_rebalance_is_refused(broker: MemoryBroker) -> None:
    """Otherwise it would undo the commit of the partition's new owner."""
    told: list[Any] = []
    with consuming(broker, **IN_GROUP) as consumer:
        consumer.subscribe(["t"])
        poll_until(consumer, lambda: bool(consumer.assignment()))
        first = consumer.group_metadata().generation_id
        load = error_named("COORDINATOR_LOAD_IN_PROGRESS")
        broker.control(OffsetCommitRequest, load, times=None)
        consumer.commit_async({T0: 1}, lambda _, error: told.append(error))
        broker.gather("g")
        poll_until(consumer, lambda: generation(consumer) > first)
        broker.forget()
        poll_until(consumer, lambda: bool(told))
        assert isinstance(told[0], CommitFailedError)
        assert committed(broker) is None


def generation(consumer: KafkaConsumer) -> int:
    member = consumer.group_metadata()
    return -1 if member is None else member.generation_id


# -- auto-commit -----------------------------------------------------------------------------------


def test_by_itself_it_commits_only_what_earlier_polls_handed_out(broker: MemoryBroker) -> None:
    fill(broker, T0, 3)
    with consuming(
        broker, T0, group_id="g", auto_commit_interval_ms=1, max_poll_records=5
    ) as consumer:
        for _ in range(4):
            polled(consumer, 5)
            at = consumer.position(T0)
            assert (committed(broker) or 0) <= at - 5
    assert committed(broker) == 20


def test_by_itself_it_commits_by_interval(broker: MemoryBroker) -> None:
    fill(broker, T0, 1)
    with consuming(broker, T0, group_id="g", auto_commit_interval_ms=50) as consumer:
        polled(consumer, 10)
        poll_until(consumer, lambda: committed(broker) == 10)


def test_by_itself_it_commits_in_time_while_it_waits(broker: MemoryBroker) -> None:
    fill(broker, T0, 1)
    with consuming(
        broker, T0, group_id="g", auto_commit_interval_ms=50, fetch_max_wait_ms=2 * PATIENCE_MS
    ) as consumer:
        polled(consumer, 10)

        def wake_once_it_has_committed() -> None:
            eventually(lambda: committed(broker) == 10)
            consumer.wakeup()

        thread = threading.Thread(target=wake_once_it_has_committed)
        thread.start()
        with pytest.raises(WakeupError):
            consumer.poll(timeout_ms=2 * PATIENCE_MS)
        thread.join()
        assert committed(broker) == 10


def test_by_itself_it_commits_at_a_rebalance_and_at_close(broker: MemoryBroker) -> None:
    fill(broker, T0, 1)
    with consuming(broker, **IN_GROUP | {"enable_auto_commit": True}) as consumer:
        consumer.subscribe(["t"])
        polled(consumer, 10)
        broker.gather("g")
        poll_until(consumer, lambda: committed(broker) == 10)
        fill(broker, T0, 1)
        polled(consumer, 10)
    assert committed(broker) == 20
    fill(broker, T0, 1)
    with consuming(broker, T0, group_id="g") as consumer:
        polled(consumer, 10)
        consumer.assign([T1])
        poll_until(consumer, lambda: committed(broker) == 30)
        consumer.assign([T0])
        fill(broker, T0, 1)
        polled(consumer, 10)
        consumer.unsubscribe()
    assert committed(broker) == 40


def test_by_itself_it_commits_nothing_where_it_must_not(broker: MemoryBroker) -> None:
    fill(broker, T0, 1)
    with consuming(broker, **IN_GROUP) as consumer:
        consumer.subscribe(["t"])
        polled(consumer, 10)
    with consuming(broker, T0) as consumer:
        polled(consumer, 10)
    assert not commits(broker)


def test_close_is_bounded_while_the_coordinator_hangs(broker: MemoryBroker) -> None:
    fill(broker, T0, 1)
    listener, before = Listener(), threading.enumerate()
    with consuming(broker, **IN_GROUP | {"enable_auto_commit": True}) as consumer:
        consumer.subscribe(["t"], listener=listener)
        polled(consumer, 10)
        assert "group g" in clients_threads(before)
        for request_type in (OffsetCommitRequest, LeaveGroupRequest):
            broker.control(request_type, Action.SILENCE, times=None)
        began = time.monotonic()
        consumer.close(timeout_ms=300)
        assert time.monotonic() - began < PATIENCE_MS / 2000
        assert listener.said[-1] == ("revoked", {T0, T1})
        eventually(lambda: not clients_threads(before))


def test_group_arguments_are_checked_at_once(broker: MemoryBroker) -> None:
    with pytest.raises(ConfigurationError, match="'partition_assignment_strategy'"):
        KafkaConsumer(bootstrap_servers="x:1", group_id="g", partition_assignment_strategy="fair")
