"""A poll does not wait for a silent broker: it returns the records of healthy brokers."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from spark_kafka_source.client import asked
from spark_kafka_source.client import client as client_module
from spark_kafka_source.consumer.kafka_consumer import KafkaConsumer
from spark_kafka_source.consumer.waiting import WakeupError
from spark_kafka_source.errors import BrokerError, KafkaTimeoutError, LocalError, error_named
from spark_kafka_source.fetch import fetcher, source
from spark_kafka_source.protocol.messages.fetch import FetchRequest
from spark_kafka_source.protocol.messages.find_coordinator import FindCoordinatorRequest
from spark_kafka_source.protocol.messages.groups import OffsetCommitRequest, OffsetFetchRequest
from spark_kafka_source.protocol.messages.list_offsets import ListOffsetsRequest
from spark_kafka_source.protocol.messages.membership import HeartbeatRequest, LeaveGroupRequest
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from spark_kafka_source.testing.memory import Action, MemoryBroker
from spark_kafka_source.topic_partition import TopicPartition
from tests.consumer.consumers import (
    IN_GROUP,
    PATIENCE_MS,
    T0,
    T1,
    consuming,
    eventually,
    fill,
    forget_group,
    longer_and_longer,
    of,
    poll_until,
    polled,
)

pytestmark = pytest.mark.memory(nodes=2, topics={"t": 2, "u": 1})

U0 = TopicPartition("u", 0)
# A wait for a silent broker would take this long.
HOUR_MS = 3_600_000
FOR_HOURS: dict[str, Any] = {"request_timeout_ms": HOUR_MS, "default_api_timeout_ms": HOUR_MS}


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (asked, client_module, fetcher, source):
        monkeypatch.setattr(module, "LONGEST_SILENCE_MS", 30)


def committed(broker: MemoryBroker) -> dict[TopicPartition, int]:
    return dict(broker.cluster.committed.get("g", {}))


# -- polls -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "silent", [MetadataRequest, OffsetFetchRequest, FindCoordinatorRequest, ListOffsetsRequest]
)
def test_a_poll_ends_in_its_time_whatever_is_not_answered(
    broker: MemoryBroker, silent: Any
) -> None:
    broker.control(silent, Action.SILENCE, times=None)
    with consuming(broker, T0, group_id="g", **FOR_HOURS) as consumer:
        for _ in range(3):
            assert not len(consumer.poll(timeout_ms=10))
        poll_until(consumer, lambda: bool(broker.requests(silent)))
        consumer.close(timeout_ms=100)


def test_a_leader_that_does_not_say_where_to_begin_delays_no_other(broker: MemoryBroker) -> None:
    fill(broker, T0, 1)
    fill(broker, T1, 1)
    broker.control(ListOffsetsRequest, Action.SILENCE, node_id=1, times=None)
    with consuming(broker, T0, T1, **FOR_HOURS) as consumer:
        assert polled(consumer, 10) == of(T0, range(10))
        consumer.close(timeout_ms=100)


@pytest.mark.usefixtures("impatient")
def test_a_leader_that_froze_in_mid_read_is_left_for_the_next(broker: MemoryBroker) -> None:
    fill(broker, T0, 1)
    fill(broker, T1, 1)
    with consuming(broker, T0, T1, fetch_max_wait_ms=10, **FOR_HOURS) as consumer:
        assert len(polled(consumer, 20)) == 20
        broker.control(FetchRequest, Action.SILENCE, node_id=1, times=None)
        fill(broker, T0, 1)
        assert polled(consumer, 10) == of(T0, range(10, 20))
        fill(broker, T1, 1)
        broker.move_leader(T1, 0)
        assert polled(consumer, 10) == of(T1, range(10, 20))
        consumer.close(timeout_ms=100)


def test_a_seek_during_a_lookup_counts(broker: MemoryBroker) -> None:
    fill(broker, T0, 1)
    held = broker.hold(ListOffsetsRequest)
    with consuming(broker, T0) as consumer:
        poll_until(consumer, lambda: bool(broker.requests(ListOffsetsRequest)))
        consumer.seek(T0, 7)
        held.release()
        assert polled(consumer, 3) == of(T0, range(7, 10))


def test_a_reset_during_a_lookup_counts(broker: MemoryBroker) -> None:
    """The first answer belongs to an outdated request."""
    fill(broker, T0, 1)
    held = broker.hold(ListOffsetsRequest)
    with consuming(broker, T0) as consumer:
        poll_until(consumer, lambda: bool(broker.requests(ListOffsetsRequest)))
        consumer.seek_to_end(T0)
        held.release()
        poll_until(consumer, lambda: len(broker.requests(ListOffsetsRequest)) == 2)
        assert consumer.position(T0) == 10


@pytest.mark.parametrize(
    "silent",
    [
        MetadataRequest,
        FindCoordinatorRequest,
        OffsetFetchRequest,
        ListOffsetsRequest,
        OffsetForLeaderEpochRequest,
        FetchRequest,
        OffsetCommitRequest,
    ],
)
def test_a_poll_that_waits_for_an_answer_sleeps_meanwhile(
    broker: MemoryBroker, silent: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The poll does not check repeatedly for the answer."""
    fill(broker, T0, 1)
    interval_ms = 100 if silent is OffsetCommitRequest else HOUR_MS
    config = {"group_id": "g", "auto_commit_interval_ms": interval_ms} | FOR_HOURS
    with consuming(broker, T0, **config) as consumer:
        if silent not in (MetadataRequest, FindCoordinatorRequest, OffsetFetchRequest):
            consumer.seek(T0, 0, leader_epoch=0)
        if silent is OffsetForLeaderEpochRequest:
            broker.move_leader(T0, 1)
        if silent is OffsetCommitRequest:
            polled(consumer, 10)
        if silent is ListOffsetsRequest:
            consumer.seek_to_beginning(T0)
        broker.control(silent, Action.SILENCE, times=None)
        poll_until(consumer, lambda: bool(broker.requests(silent)))
        looks = 0
        prepare = consumer._reading.prepare

        def counted() -> None:
            nonlocal looks
            looks += 1
            prepare()

        monkeypatch.setattr(consumer._reading, "prepare", counted)
        consumer.poll(timeout_ms=300)
        # A healthy broker answers an empty fetch after 50 ms. Each answer wakes the poll.
        assert looks < 60
        consumer.close(timeout_ms=100)


@pytest.mark.parametrize("timeout_ms", [-1, -5])
def test_a_poll_of_less_than_no_time_is_refused(broker: MemoryBroker, timeout_ms: int) -> None:
    with consuming(broker, T0) as consumer, pytest.raises(LocalError, match=f"is {timeout_ms}"):
        consumer.poll(timeout_ms=timeout_ms)


@pytest.mark.parametrize("config", [{}, IN_GROUP], ids=["alone", "in a group"])
def test_a_topic_that_is_not_there_is_told_of_once(
    broker: MemoryBroker, config: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    with consuming(broker, **config) as consumer, caplog.at_level(logging.WARNING):
        consumer.subscribe(["nope"])
        poll_until(consumer, lambda: "nope" in caplog.text)
        seen = len(broker.requests(MetadataRequest))
        poll_until(consumer, lambda: bool(config) or len(broker.requests(MetadataRequest)) > seen)
        for _ in range(3):
            consumer.poll(timeout_ms=5)
    assert caplog.text.count("'nope': UNKNOWN_TOPIC_OR_PARTITION") == 1


def test_brokers_that_are_all_gone_are_told_of_once(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    with consuming(broker, T0) as consumer, caplog.at_level(logging.WARNING):
        for node_id in (0, 1):
            broker.stop(node_id)
        poll_until(consumer, lambda: "No broker of" in caplog.text)
        for _ in range(20):
            consumer.poll(timeout_ms=10)
        assert caplog.text.count("No broker of") == 1
        fill(broker, T0, 1)
        for node_id in (0, 1):
            broker.start(node_id)
        assert polled(consumer, 10) == of(T0, range(10))


def test_a_look_that_fails_is_made_again_in_a_group(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.control(MetadataRequest, Action.CLOSE, times=3)
    with consuming(broker, **IN_GROUP) as consumer, caplog.at_level(logging.WARNING):
        consumer.subscribe(["nope"])
        poll_until(consumer, lambda: "'nope': UNKNOWN_TOPIC" in caplog.text)


# -- commits ---------------------------------------------------------------------------------------


def gone(broker: MemoryBroker, topic: str) -> None:
    """Delete the topic, and refuse commits of it as a real broker does."""
    del broker.cluster.topics[topic]


def test_the_offsets_of_other_topics_are_committed_all_the_same(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    fill(broker, T0, 1)
    fill(broker, U0, 1)
    config = {"group_id": "g", "auto_commit_interval_ms": 20}
    with consuming(broker, T0, U0, **config) as consumer:
        assert len(polled(consumer, 20)) == 20
        gone(broker, "u")
        poll_until(consumer, lambda: committed(broker).get(T0) == 10)
        before = len(broker.requests(OffsetCommitRequest))
        poll_until(consumer, lambda: len(broker.requests(OffsetCommitRequest)) > before + 6)
        consumer.commit({T0: 3}, timeout_ms=PATIENCE_MS)
        assert committed(broker)[T0] == 3
        with pytest.raises(BrokerError, match=r"u-0.*UNKNOWN_TOPIC.*other 1 partitions are"):
            consumer.commit({T0: 5, U0: 5})
        assert committed(broker)[T0] == 5
    assert caplog.text.count("Offsets were not committed") == 1


def test_a_slow_coordinator_gets_no_queue_of_automatic_commits(broker: MemoryBroker) -> None:
    fill(broker, T0, 1)
    held = broker.hold(OffsetCommitRequest)
    config = {"group_id": "g", "auto_commit_interval_ms": 1}
    with consuming(broker, T0, **config) as consumer:
        polled(consumer, 10)
        poll_until(consumer, lambda: bool(broker.requests(OffsetCommitRequest)))
        for _ in range(20):
            consumer.poll(timeout_ms=2)
        assert len(broker.requests(OffsetCommitRequest)) == 1
        # None waits behind the one under way.
        assert len(consumer._commits._queue) == 1
        held.release()
        poll_until(consumer, lambda: committed(broker).get(T0) == 10)


def test_a_poll_does_not_wait_for_the_commit_before_a_rebalance(broker: MemoryBroker) -> None:
    """Partitions to revoke return no more records. They are revoked after their commit."""
    fill(broker, T0, 3)
    config = IN_GROUP | {"enable_auto_commit": True, "max_poll_records": 5}
    with consuming(broker, **config) as consumer:
        consumer.subscribe(["t"])
        found = polled(consumer, 10)
        held = broker.hold(OffsetCommitRequest)
        broker.gather("g")
        poll_until(
            consumer,
            lambda: bool(broker.requests(OffsetCommitRequest)),
            lambda records: found.extend((T0, each.offset) for each in records),
        )
        for _ in range(3):
            assert not len(consumer.poll(timeout_ms=5))
        held.release()
        found += polled(consumer, 30 - len(found))
    assert found == of(T0, range(30))


def test_a_member_says_goodbye_even_where_its_last_commit_is_not_answered(
    broker: MemoryBroker,
) -> None:
    fill(broker, T0, 1)
    for timeout_ms in longer_and_longer(1_000):
        forget_group(broker)
        with consuming(broker, **IN_GROUP | {"enable_auto_commit": True}) as consumer:
            consumer.subscribe(["t"])
            polled(consumer, 10)
            broker.control(OffsetCommitRequest, Action.SILENCE, times=None)
            consumer.close(timeout_ms=timeout_ms)
        if broker.requests(LeaveGroupRequest):
            break
    assert broker.requests(LeaveGroupRequest)


def test_members_with_a_pattern_look_again_before_they_join(broker: MemoryBroker) -> None:
    config = IN_GROUP | {"metadata_max_age_ms": HOUR_MS}
    with consuming(broker, **config) as consumer:
        consumer.subscribe(pattern="t|new")
        poll_until(consumer, lambda: consumer.assignment() == {T0, T1})
        broker.create_topic("new")
        broker.gather("g")
        new = TopicPartition("new", 0)
        poll_until(consumer, lambda: consumer.assignment() == {T0, T1, new})


# -- wakeup ----------------------------------------------------------------------------------------

WAITS: dict[str, tuple[Any, Callable[[KafkaConsumer], object]]] = {
    "commit": (OffsetCommitRequest, lambda consumer: consumer.commit({T0: 1})),
    "committed": (OffsetFetchRequest, lambda consumer: consumer.committed([T0])),
    "position": (OffsetFetchRequest, lambda consumer: consumer.position(T0)),
    "list_topics": (MetadataRequest, lambda consumer: consumer.list_topics()),
    "partitions_for": (MetadataRequest, lambda consumer: consumer.partitions_for("t")),
    "beginning_offsets": (ListOffsetsRequest, lambda consumer: consumer.beginning_offsets([T0])),
    "end_offsets": (ListOffsetsRequest, lambda consumer: consumer.end_offsets([T0])),
    "offsets_for_times": (ListOffsetsRequest, lambda consumer: consumer.offsets_for_times({T0: 1})),
    "poll": (FetchRequest, lambda consumer: consumer.poll(timeout_ms=HOUR_MS)),
}


@pytest.mark.parametrize("call", WAITS)
def test_wakeup_ends_every_wait(broker: MemoryBroker, call: str) -> None:
    waited_for, use = WAITS[call]
    broker.control(waited_for, Action.SILENCE, times=None)
    with consuming(broker, T0, group_id="g", **FOR_HOURS) as consumer:
        raised: list[Exception] = []

        def run() -> None:
            try:
                use(consumer)
            except WakeupError as error:
                raised.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        broker.wait_for(waited_for)
        consumer.wakeup()
        thread.join(PATIENCE_MS / 1000)
        assert len(raised) == 1
        broker.forget()
        consumer.close(timeout_ms=100)


def test_a_wait_ends_with_its_time_too(broker: MemoryBroker) -> None:
    with consuming(broker, T0, group_id="g") as consumer:
        consumer.committed([T0])  # Now the consumer knows the coordinator.
        broker.control(OffsetFetchRequest, Action.SILENCE, times=None)
        with pytest.raises(KafkaTimeoutError, match="OffsetFetch"):
            consumer.committed([T0], timeout_ms=50)


# -- metrics and client ids ------------------------------------------------------------------------


def test_a_storm_of_rebalances_shows_in_the_metrics(broker: MemoryBroker) -> None:
    with consuming(broker, **IN_GROUP) as consumer:
        consumer.subscribe(["t"])
        for count in range(1, 4):
            poll_until(consumer, lambda: consumer.metrics()["rebalance-total"] == count)  # noqa: B023
            broker.gather("g")
        broker.control(HeartbeatRequest, error_named("UNKNOWN_MEMBER_ID"))
        poll_until(consumer, lambda: consumer.metrics()["failed-rebalance-total"] == 1)
        eventually(lambda: consumer.metrics()["heartbeat-total"] > 0)
        found = consumer.metrics()
    assert found["join-total"] >= 3
    assert found["sync-total"] >= 3
    assert found["failed-heartbeat-total"] >= 1
    assert found["rebalance-latency-max"] >= found["rebalance-latency-avg"] > 0
    assert 0 <= found["last-rebalance-seconds-ago"] < time.monotonic()
    assert found["rebalance-rate-per-hour"] > 0


def test_consumers_of_a_process_have_client_ids_of_their_own(broker: MemoryBroker) -> None:
    with (
        consuming(broker, T0, group_id="g") as one,
        consuming(broker, T0, group_id="g") as other,
        consuming(broker, T0, client_id="mine") as named,
    ):
        ids = [each._config.client.connection.client_id for each in (one, other, named)]
    assert ids[2] == "mine"
    assert ids[0] != ids[1]
    assert all(each.startswith("spark-kafka-source-g-") for each in ids[:2])


def test_a_poll_does_not_spin_while_a_leader_does_not_say_how_far_its_log_reaches(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(broker, T0, 1)
    with consuming(broker, T0, **FOR_HOURS) as consumer:
        polled(consumer, 10)
        broker.control(OffsetForLeaderEpochRequest, Action.SILENCE, times=None)
        broker.move_leader(T0, 1)
        poll_until(consumer, lambda: bool(broker.requests(OffsetForLeaderEpochRequest)))
        waiting, waits = consumer._waiting, list[Any]()
        once = waiting.once

        def waited(*given: Any) -> Any:
            waits.append(given)
            return once(*given)

        monkeypatch.setattr(waiting, "once", waited)
        consumer.poll(timeout_ms=200)
        assert len(waits) < 50
        poll_until(consumer, lambda: bool(waits))
        consumer.close(timeout_ms=100)


def test_another_thread_may_learn_at_any_time_that_there_is_no_leader(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(broker, T0, 1)
    with consuming(broker, T0) as consumer:
        polled(consumer, 5)
        cluster, calls = consumer._client.cluster, list[TopicPartition]()
        log = cluster.log

        def sometimes(where: TopicPartition) -> Any:
            calls.append(where)
            return log(where) if len(calls) % 2 else None

        monkeypatch.setattr(cluster, "log", sometimes)
        poll_until(consumer, lambda: len(calls) > 20)


def test_a_call_that_wakeup_ended_takes_no_place_of_other_questions(broker: MemoryBroker) -> None:
    broker.control(ListOffsetsRequest, Action.SILENCE, node_id=1, times=None)
    with consuming(broker, T0, **FOR_HOURS) as consumer:
        for _ in range(10):
            consumer.wakeup()
            with pytest.raises(WakeupError):
                consumer.end_offsets([T1])
        consumer._waiting.step()
        assert consumer._waiting.lookups.is_idle
        fill(broker, T0, 1)
        assert polled(consumer, 10) == of(T0, range(10))


def test_a_thread_that_cannot_start_ends_one_poll(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    fill(broker, T0, 1)
    with consuming(broker, T0) as consumer:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", none_left)
            with pytest.raises(RuntimeError, match="start new thread"):
                consumer.poll(timeout_ms=10)
        assert polled(consumer, 10) == of(T0, range(10))
