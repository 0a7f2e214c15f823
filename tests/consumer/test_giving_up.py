"""The commit before a revocation, and other events during this commit."""

import threading
from typing import Any

import pytest

from spark_kafka_source.consumer.decoding import UnreadRecords
from spark_kafka_source.groups.assignors import Assignment
from spark_kafka_source.groups.classic import State
from spark_kafka_source.protocol.messages.groups import OffsetCommitRequest
from spark_kafka_source.protocol.messages.membership import (
    LeaveGroupRequest,
)
from spark_kafka_source.testing.memory import MemoryBroker
from spark_kafka_source.topic_partition import TopicPartition
from tests.consumer.consumers import (
    IN_GROUP,
    PATIENCE_MS,
    T0,
    T1,
    consuming,
    eventually,
    fill,
    poll_until,
    polled,
)

pytestmark = pytest.mark.memory(topics={"t": 2, "u": 1})

U0 = TopicPartition("u", 0)
BY_ITSELF = IN_GROUP | {
    "enable_auto_commit": True,
    "auto_commit_interval_ms": 3_600_000,
    "max_poll_records": 5,
}
COOPERATIVE = BY_ITSELF | {"partition_assignment_strategy": "cooperative-sticky"}


def committed(broker: MemoryBroker) -> dict[TopicPartition, int]:
    return dict(broker.cluster.committed.get("g", {}))


def test_what_was_handed_out_while_others_are_given_up_is_committed_at_the_end(
    broker: MemoryBroker,
) -> None:
    fill(broker, T0, 5)
    fill(broker, U0, 1)
    with consuming(broker, **COOPERATIVE) as consumer:
        consumer.subscribe(["t", "u"])
        polled(consumer, 15)
        held = broker.hold(OffsetCommitRequest)
        consumer.subscribe(["t"])
        poll_until(consumer, lambda: bool(broker.requests(OffsetCommitRequest)))
        polled(consumer, 20)
        position = consumer.position(T0)
        held.release()
    assert committed(broker)[T0] == position


def test_a_member_does_not_leave_before_its_commit_is_through(broker: MemoryBroker) -> None:
    """Otherwise the coordinator would refuse the commit, and others would reread the records."""
    fill(broker, T0, 3)
    with consuming(broker, **BY_ITSELF) as consumer:
        consumer.subscribe(["t"])
        polled(consumer, 15)
        held = broker.hold(OffsetCommitRequest)
        consumer.commit_async({T0: 1})
        broker.gather("g")
        poll_until(consumer, lambda: consumer._subscription._held_back is not None)
        position = consumer.position(T0)
        leaving = threading.Thread(target=consumer.unsubscribe)
        leaving.start()
        assert not broker.requests(LeaveGroupRequest)
        held.release()
        leaving.join(PATIENCE_MS / 1000)
    assert committed(broker)[T0] == position


def test_a_commit_of_a_step_that_was_not_taken_stands_for_no_other(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The subscription changes during the revocation of T1. T1 is kept, and the member rejoins."""
    assignments = [Assignment((T0, T1)), Assignment((T0, U0))]

    decode = Assignment.decode

    def decoded(data: bytes) -> Assignment:
        found = decode(data)
        return assignments.pop(0) if assignments else found

    monkeypatch.setattr(Assignment, "decode", decoded)
    fill(broker, T0, 8)
    with consuming(broker, **COOPERATIVE) as consumer:
        consumer.subscribe(["t", "u"])
        polled(consumer, 15)
        held = broker.hold(OffsetCommitRequest)
        consumer.enforce_rebalance()
        poll_until(consumer, lambda: consumer._subscription._held_back is not None)
        consumer.subscribe(["t"])
        held.release()
        membership = consumer._subscription._membership
        joined = broker.group("g").generation_id
        poll_until(
            consumer,
            lambda: (
                membership.state is State.STABLE
                and broker.group("g").generation_id > joined
                and membership.assignment == {T0, T1}
            ),
        )
        polled(consumer, 30)
        assert consumer._subscription._held_back is None
        position = consumer.position(T0)
    assert committed(broker)[T0] == position


def test_what_ctrl_c_kept_from_being_handed_out_is_not_committed(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(broker, T0, 1)
    fill(broker, T1, 1)
    taken: list[UnreadRecords] = []
    take = UnreadRecords.next_records

    def interrupted(unread: UnreadRecords, most: int) -> Any:
        taken.append(unread)
        if unread is not taken[0]:
            raise KeyboardInterrupt
        return take(unread, most)

    with consuming(broker, T0, T1, group_id="g", max_poll_records=100) as consumer:
        reading = consumer._reading

        def both_are_here() -> bool:
            reading.prepare()
            reading._reader.fetcher.take()
            return all(each.fetched for each in reading.positions)

        eventually(both_are_here)
        monkeypatch.setattr(UnreadRecords, "next_records", interrupted)
        with pytest.raises(KeyboardInterrupt):
            consumer.poll(timeout_ms=0)
        monkeypatch.undo()
        assert {consumer.position(each) for each in (T0, T1)} == {0}
        assert len(polled(consumer, 20)) == 20
