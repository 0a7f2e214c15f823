"""Reactions of a `KafkaConsumer` to changes of leaders, sessions and logs, and to errors."""

import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import Any

import pytest

from spark_kafka_source.errors import ERRORS, BrokerError, ErrorCode, KafkaError, error_code
from spark_kafka_source.fetch import (
    LogTruncatedError,
    OffsetOutOfRangeError,
    TopicGoneError,
)
from spark_kafka_source.fetch.answers import Answers
from spark_kafka_source.fetch.reader import LogReader
from spark_kafka_source.fetch.session import FetchSession
from spark_kafka_source.fetch.source import Source
from spark_kafka_source.net import Connection, Deadline
from spark_kafka_source.protocol import Exchange
from spark_kafka_source.protocol.messages.fetch import FetchRequest, FetchResponse
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from spark_kafka_source.testing.memory import KAFKA_2_1, MemoryBroker, PartitionLog
from tests.consumer.consumers import (
    PATIENCE_MS,
    T0,
    T1,
    T2,
    Place,
    consuming,
    eventually,
    fetches,
    fill,
    of,
    places,
    poll_until,
    polled,
)
from tests.fixtures import silent_after

pytestmark = pytest.mark.memory(nodes=3)

UNLISTED = error_code(999)
CODES = [error for error in ERRORS.values() if error.code] + [UNLISTED]


@pytest.fixture
def one() -> Iterator[MemoryBroker]:
    """Run one node, so that there is only one fetch session."""
    with MemoryBroker() as broker:
        broker.create_topic("t", 3)
        yield broker


# -- sessions (KIP-227) ----------------------------------------------------------------------------


def test_only_what_changes_is_asked_for(one: MemoryBroker) -> None:
    fill(one, T0, 1)
    with consuming(one, T0, T1, T2) as consumer:
        polled(consumer, 10)
        poll_until(consumer, lambda: len(fetches(one)) >= 5)
        first, second, *rest = fetches(one)
        assert first == (0, 0, [(0, 0), (1, 0), (2, 0)])
        session_id = second[0]
        assert session_id > 0
        assert second == (session_id, 1, [(0, 10)])
        for epoch, each in enumerate(rest, 2):
            assert each == (session_id, epoch, [])
        fill(one, T2, 1)
        polled(consumer, 10)
        poll_until(consumer, lambda: any((2, 10) in asked for _, _, asked in fetches(one)))
    eventually(lambda: not one.cluster.fetch_sessions[0].by_id)
    assert fetches(one)[-1] == (session_id, -1, [])


def test_who_is_paused_or_gone_is_forgotten(one: MemoryBroker) -> None:
    with consuming(one, T0, T1, T2) as consumer:
        poll_until(consumer, lambda: len(fetches(one)) >= 2)
        (session,) = one.cluster.fetch_sessions[0].by_id.values()
        consumer.pause(T0)
        consumer.assign([T0, T1])
        poll_until(consumer, lambda: [each.partition for each in session.partitions] == [1])
        consumer.resume(T0)
        poll_until(consumer, lambda: {each.partition for each in session.partitions} == {0, 1})


@pytest.mark.parametrize(
    "name",
    [
        "FETCH_SESSION_ID_NOT_FOUND",
        "INVALID_FETCH_SESSION_EPOCH",
        "FETCH_SESSION_TOPIC_ID_ERROR",
    ],
)
def test_a_session_that_is_lost_is_begun_anew(one: MemoryBroker, name: str) -> None:
    fill(one, T0, 1)
    with consuming(one, T0, T1) as consumer:
        polled(consumer, 10)
        poll_until(consumer, lambda: len(fetches(one)) >= 3)
        (session,) = one.cluster.fetch_sessions[0].by_id.values()
        if name == "FETCH_SESSION_ID_NOT_FOUND":
            one.cluster.fetch_sessions[0].by_id.clear()
        elif name == "INVALID_FETCH_SESSION_EPOCH":
            session.epoch += 5
        else:
            session.by_id = not session.by_id
        poll_until(consumer, lambda: [each[1] for each in fetches(one)].count(0) == 2)
        fill(one, T0, 1)
        assert polled(consumer, 10) == of(T0, range(10, 20))
        full = [each for each in fetches(one) if each[1] == 0]
        known = 0 if name == "FETCH_SESSION_ID_NOT_FOUND" else session.session_id
        assert full[1] == (known, 0, [(0, 10), (1, 0)])
        assert len(one.cluster.fetch_sessions[0].by_id) == 1


def test_a_broker_that_has_no_room_for_sessions_is_asked_in_full(one: MemoryBroker) -> None:
    one.cluster.most_fetch_sessions = 0
    fill(one, T0, 1)
    with consuming(one, T0, T1) as consumer:
        polled(consumer, 10)
        poll_until(consumer, lambda: len(fetches(one)) >= 4)
        assert all(each[:2] == (0, 0) and len(each[2]) == 2 for each in fetches(one))


def test_two_that_evict_each_other_both_go_on(one: MemoryBroker) -> None:
    one.cluster.most_fetch_sessions = 1
    fill(one, T0, 1)
    with consuming(one, T0) as a, consuming(one, T0) as b:
        for _ in range(3):
            assert polled(a, 10) == polled(b, 10)
            fill(one, T0, 1)


def test_brokers_that_name_topics_and_have_no_ids() -> None:
    with MemoryBroker(2, versions=KAFKA_2_1) as broker:
        broker.create_topic("t", 2, topic_id=uuid.UUID(int=0))
        fill(broker, T0, 2)
        with consuming(broker, T0, T1) as consumer:
            polled(consumer, 20)
            broker.move_leader(T0, 1)
            fill(broker, T0, 1)
            assert polled(consumer, 10) == of(T0, range(20, 30))
            fill(broker, T1, 1)
            assert polled(consumer, 10) == of(T1, range(10))


# -- leaders ---------------------------------------------------------------------------------------


def test_a_leader_that_moves_in_mid_read(broker: MemoryBroker) -> None:
    broker.create_topic("t", 1)
    fill(broker, T0, 5)
    with consuming(broker, T0, max_partition_fetch_bytes=1, max_poll_records=3) as consumer:
        found = []
        for node_id in (1, 2, 0, 1):
            found += polled(consumer, 5)
            broker.move_leader(T0, node_id)
            fill(broker, T0, 1)
        found += polled(consumer, 90 - len(found))
        assert found == of(T0, range(90))


def test_a_broker_that_is_restarted(broker: MemoryBroker) -> None:
    broker.create_topic("t", 3)
    fill(broker, T1, 1)
    with consuming(broker, T0, T1, T2) as consumer:
        polled(consumer, 10)
        broker.stop(1)
        fill(broker, T0, 1)
        assert polled(consumer, 10) == of(T0, range(10))
        fill(broker, T1, 1)
        broker.start(1)
        assert polled(consumer, 10) == of(T1, range(10, 20))


@pytest.mark.parametrize("error", CODES, ids=str)
def test_every_code_of_a_partition_is_tried_again_or_raised(
    broker: MemoryBroker, error: ErrorCode
) -> None:
    broker.create_topic("t", 1)
    fill(broker, T0, 1)
    broker.control(FetchRequest, error)
    with consuming(broker, T0) as consumer:
        assert_tried_again_or_raised(consumer, error)


@pytest.mark.parametrize("error", CODES, ids=str)
def test_every_code_of_a_whole_answer_likewise(broker: MemoryBroker, error: ErrorCode) -> None:
    broker.create_topic("t", 1)
    fill(broker, T0, 1)
    broker.control(FetchRequest, FetchResponse(error_code=error.code))
    with consuming(broker, T0) as consumer:
        assert_tried_again_or_raised(consumer, error, whole=True)


def assert_tried_again_or_raised(consumer: Any, error: ErrorCode, *, whole: bool = False) -> None:
    """Check that the consumer retries or raises, and goes on after that."""
    goes_on = not whole and error.name in ("OFFSET_OUT_OF_RANGE", "UNKNOWN_SERVER_ERROR")
    if not error.retriable and not goes_on:
        with pytest.raises(KafkaError) as caught:
            polled(consumer, 10)
        assert isinstance(caught.value, BrokerError)
        assert caught.value.error == error
        assert whole or "t-0 at offset 0" in str(caught.value)
    assert polled(consumer, 10) == of(T0, range(10))


# -- the nearest replica (KIP-392) -----------------------------------------------------------------


def near(broker: MemoryBroker) -> list[int]:
    return [each.node_id for each in broker.seen if isinstance(each.request, FetchRequest)]


def test_a_replica_in_the_rack_is_read_from(broker: MemoryBroker) -> None:
    (log,) = broker.create_topic("t")
    log.replicas_by_rack = {"here": 2}
    fill(broker, T0, 3)
    with consuming(broker, T0, client_rack="here", max_partition_fetch_bytes=1) as consumer:
        assert polled(consumer, 30) == of(T0, range(30))
        assert near(broker)[0] == 0
        assert set(near(broker)[1:]) == {2}


def test_a_replica_in_the_rack_may_be_node_0(broker: MemoryBroker) -> None:
    (log,) = broker.create_topic("t")
    broker.move_leader(T0, 1)
    log.replicas_by_rack = {"here": 0}
    fill(broker, T0, 3)
    with consuming(broker, T0, client_rack="here", max_partition_fetch_bytes=1) as consumer:
        assert polled(consumer, 30) == of(T0, range(30))
        assert near(broker)[0] == 1
        assert set(near(broker)[1:]) == {0}


def test_the_leader_is_asked_again_once_metadata_is_old(broker: MemoryBroker) -> None:
    (log,) = broker.create_topic("t")
    log.replicas_by_rack = {"here": 2}
    with consuming(broker, T0, client_rack="here", metadata_max_age_ms=30) as consumer:
        poll_until(consumer, lambda: near(broker).count(0) >= 2 and near(broker).count(2) >= 2)


@pytest.mark.parametrize("trouble", ["unknown", "down", "refuses"])
def test_a_replica_that_cannot_be_read_from_costs_nothing(
    broker: MemoryBroker, trouble: str
) -> None:
    (log,) = broker.create_topic("t")
    fill(broker, T0, 1)
    log.replicas_by_rack = {"here": 77 if trouble == "unknown" else 2}
    if trouble == "refuses":
        broker.control(FetchRequest, error_code(9), times=None, node_id=2)
    with consuming(broker, T0, client_rack="here") as consumer:
        if trouble == "down":
            polled(consumer, 5)
            broker.stop(2)
            fill(broker, T0, 1)
        began = time.monotonic()
        polled(consumer, 10)
        assert time.monotonic() - began < PATIENCE_MS / 2000
        asked = len(near(broker))
        consumer.poll(timeout_ms=100)
        assert len(near(broker)) - asked < 20, "they do not send each other back and forth"


# -- logs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("policy", "expected"), [("earliest", 5), ("latest", 10)])
def test_an_offset_that_is_not_there_any_more(
    broker: MemoryBroker, policy: str, expected: int
) -> None:
    (log,) = broker.create_topic("t")
    fill(broker, T0, 1)
    log.log_start_offset = 5
    with consuming(broker, T0, auto_offset_reset=policy) as consumer:
        consumer.seek(T0, 2)
        poll_until(consumer, lambda: consumer.position(T0) >= expected)
        fill(broker, T0, 1)
        consumer.seek(T0, 999)
        poll_until(consumer, lambda: consumer.position(T0) == 20)


def test_an_offset_that_is_not_there_and_no_policy(broker: MemoryBroker) -> None:
    (log,) = broker.create_topic("t")
    fill(broker, T0, 1)
    log.log_start_offset = 5
    with consuming(broker, T0, auto_offset_reset="none") as consumer:
        consumer.seek(T0, 2)
        for _ in range(2):
            with pytest.raises(OffsetOutOfRangeError, match=r"offset 2 .*5 to 10"):
                polled(consumer, 1)
        consumer.seek(T0, 5)
        assert polled(consumer, 5) == of(T0, range(5, 10))


def cut(broker: MemoryBroker, log: PartitionLog, offset: int, batches: int) -> None:
    """Do an unclean election: the new leader, node 1, lacks records from `offset` on."""
    broker.move_leader(T0, 1)
    log.truncate(offset)
    fill(broker, T0, batches)


def test_a_log_that_was_cut_is_read_from_there(broker: MemoryBroker) -> None:
    (log,) = broker.create_topic("t")
    fill(broker, T0, 3)
    with consuming(broker, T0) as consumer:
        polled(consumer, 30)
        cut(broker, log, 20, 3)
        assert polled(consumer, 30) == of(T0, range(20, 50))
        assert len(broker.requests(OffsetForLeaderEpochRequest)) == 1


def test_a_log_that_was_cut_and_no_policy(broker: MemoryBroker) -> None:
    (log,) = broker.create_topic("t")
    fill(broker, T0, 3)
    with consuming(broker, T0, auto_offset_reset="none") as consumer:
        consumer.seek(T0, 0)
        polled(consumer, 30)
        cut(broker, log, 20, 3)
        for _ in range(2):
            with pytest.raises(LogTruncatedError) as caught:
                polled(consumer, 1)
            assert caught.value.diverged == 20
        consumer.seek(T0, 20)
        assert polled(consumer, 30) == of(T0, range(20, 50))


def test_what_was_fetched_ahead_of_a_log_that_was_cut_is_dropped(broker: MemoryBroker) -> None:
    """Otherwise the consumer would skip the new leader's records there."""
    (log,) = broker.create_topic("t")
    fill(broker, T0, 4)
    with consuming(broker, T0, max_poll_records=5) as consumer:
        assert polled(consumer, 15) == of(T0, range(15))
        cut(broker, log, 20, 0)
        log.append(*(b"new" for _ in range(30)))
        consumer.list_topics()
        values: list[bytes] = []
        poll_until(
            consumer,
            lambda: len(values) >= 35,
            lambda records: values.extend(each.value for each in records),
        )
        assert values == [b"15", b"16", b"17", b"18", b"19"] + [b"new"] * 30
        assert consumer.position(T0) == 50


def test_new_metadata_alone_does_not_let_a_cut_log_be_read_on(broker: MemoryBroker) -> None:
    """The user may ask for metadata at any time between two polls."""
    (log,) = broker.create_topic("t")
    fill(broker, T0, 3)
    with consuming(broker, T0) as consumer:
        polled(consumer, 30)
        cut(broker, log, 10, 4)
        consumer.list_topics()
        assert polled(consumer, 40) == of(T0, range(10, 50))


def test_a_clean_election_costs_no_record(broker: MemoryBroker) -> None:
    broker.create_topic("t")
    fill(broker, T0, 3)
    with consuming(broker, T0, max_poll_records=7) as consumer:
        found = polled(consumer, 7)
        broker.move_leader(T0, 2)
        fill(broker, T0, 3)
        found += polled(consumer, 53)
        assert found == of(T0, range(60))


def test_an_offset_of_a_newer_epoch_than_metadata_waits_for_newer_metadata(
    broker: MemoryBroker,
) -> None:
    """A former leader may lack the committed offset. This is no data loss."""
    (log,) = broker.create_topic("t")
    fill(broker, T0, 2)
    with consuming(broker, T0) as consumer:
        consumer.partitions_for("t")
        consumer.seek(T0, 15, leader_epoch=3)
        assert len(consumer.poll(timeout_ms=50)) == 0
        assert not broker.requests(FetchRequest)
        assert len(broker.requests(MetadataRequest)) < 60
        log.leader_epoch = 3
        assert polled(consumer, 5) == of(T0, range(15, 20))


@pytest.mark.parametrize("longer", [False, True])
@pytest.mark.parametrize("policy", ["earliest", "none"])
def test_a_topic_made_anew_is_another_topic(
    broker: MemoryBroker, policy: str, longer: bool
) -> None:
    broker.create_topic("t")
    fill(broker, T0, 2)
    with consuming(broker, T0, auto_offset_reset=policy) as consumer:
        consumer.seek(T0, 0)
        polled(consumer, 20)
        broker.create_topic("t")
        fill(broker, T0, 3 if longer else 1)
        if policy == "none":
            with pytest.raises(TopicGoneError, match="t-0 from offset 20"):
                polled(consumer, 1)
            consumer.seek(T0, 0)
        assert polled(consumer, 10)[:10] == of(T0, range(10))


def test_a_topic_that_was_deleted_keeps_nobody_waiting(broker: MemoryBroker) -> None:
    broker.create_topic("t")
    broker.create_topic("u")
    u0 = T0._replace(topic="u")
    with consuming(broker, T0, u0) as consumer:
        poll_until(consumer, lambda: consumer.current_lag(T0) is not None)
        del broker.cluster.topics["t"]
        fill(broker, u0, 1)
        assert polled(consumer, 10) == of(u0, range(10))
        consumer.poll(timeout_ms=50)
        consumer.poll(timeout_ms=50)


# -- a user who takes long -------------------------------------------------------------------------


def test_a_broker_is_not_silent_because_the_user_works_on_records_for_long(
    one: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(one, T0, 5)
    silent_after(30_000, monkeypatch)
    monotonic = time.monotonic
    with consuming(one, T0, max_partition_fetch_bytes=1) as consumer:
        polled(consumer, 10)
        before = len(one.requests(MetadataRequest)), one.accepted()
        for seconds in (5, 10, 60, 120):
            monkeypatch.setattr(time, "monotonic", lambda late=seconds: monotonic() + late)
            assert len(polled(consumer, 10)) == 10
        assert (len(one.requests(MetadataRequest)), one.accepted()) == before
        held, asked = one.hold(FetchRequest), len(fetches(one))
        poll_until(consumer, lambda: len(fetches(one)) > asked)
        monkeypatch.setattr(time, "monotonic", lambda: monotonic() + 240)
        consumer.poll(timeout_ms=0)
        (in_flight,) = consumer._reading.waited_for
        assert 20 < in_flight.deadline.remaining_seconds() <= 30, "it has its whole time again"
        held.release()


# -- a Ctrl-C --------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    ("of_class", "name"),
    [
        (Connection, "begin"),
        (Connection, "advance"),
        (Exchange, "response"),
        (FetchSession, "request"),
        (FetchSession, "answered"),
        (Answers, "put"),
        (Source, "ask"),
        (LogReader, "look"),
    ],
    ids=lambda each: each if isinstance(each, str) else each.__name__,
)
def test_a_ctrl_c_at_any_step_costs_no_record_and_stops_nothing(
    one: MemoryBroker, monkeypatch: pytest.MonkeyPatch, of_class: type, name: str, *, after: bool
) -> None:
    """Without the care for it, a partition would wait for `request.timeout.ms`, or for ever."""
    fill(one, T0, 6)
    fill(one, T1, 6)
    original, calls = getattr(of_class, name), count(1)

    def interrupted(*arguments: Any, **rest: Any) -> Any:
        is_it = threading.current_thread() is threading.main_thread() and next(calls) % 5 == 0
        if is_it and not after:
            raise KeyboardInterrupt
        found = original(*arguments, **rest)
        if is_it:
            raise KeyboardInterrupt
        return found

    found: list[Place] = []
    with consuming(one, T0, T1, max_partition_fetch_bytes=1) as consumer:
        monkeypatch.setattr(of_class, name, interrupted)
        deadline = Deadline.after_ms(PATIENCE_MS)
        while len(found) < 120 and not deadline.expired:
            with suppress(KeyboardInterrupt):
                found += places(consumer.poll(timeout_ms=50))
        monkeypatch.undo()
    assert [each for each in found if each[0] == T0] == of(T0, range(60))
    assert [each for each in found if each[0] == T1] == of(T1, range(60))
    assert next(calls) > 5, "there was a Ctrl-C"
