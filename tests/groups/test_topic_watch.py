"""The leader's looks at topics that are missing, or that change, and what they cost."""

import itertools
import time
from collections.abc import Callable, Iterator

import pytest

from spark_kafka_source.client import Retry
from spark_kafka_source.errors import ConnectionFailedError
from spark_kafka_source.groups.classic import State
from spark_kafka_source.groups.leader import TopicWatch
from spark_kafka_source.net import run
from spark_kafka_source.protocol.messages.membership import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
)
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.testing.memory import MemoryBroker
from tests.client.clock import Clock
from tests.groups.alone import T0, T1, Alone
from tests.groups.assignors.topics import topics
from tests.groups.members import member

pytestmark = pytest.mark.memory(nodes=3)

RETRY = Retry(backoff_ms=100, backoff_max_ms=1_000)


@pytest.fixture
def alone() -> Iterator[Alone]:
    alone = Alone()
    yield alone
    alone.close()


def watch(clock: Clock, **divided: int) -> TopicWatch:
    return TopicWatch(topics(**divided), 60.0, RETRY.pause_seconds, clock.monotonic, by_rack=False)


def looks(clock: Clock, watched: TopicWatch, seconds: float) -> list[tuple[float, set[str]]]:
    """Look whenever it is due, for so many seconds. Return the time and the topics of each look."""
    found = []
    end_seconds = clock.now_seconds + seconds
    while watched.due_seconds <= end_seconds:
        clock.now_seconds = watched.due_seconds
        due = watched.due_topics()
        watched.changed(due, topics(there=1))
        found.append((clock.now_seconds, set(due)))
    return found


def test_topics_that_are_there_are_looked_at_once_in_metadatas_age() -> None:
    clock = Clock()
    assert looks(clock, watch(clock, there=1), 130) == [(60, {"there"}), (120, {"there"})]


def test_pauses_between_looks_for_a_missing_topic_grow_to_those_between_tries() -> None:
    clock = Clock()
    found = looks(clock, watch(clock, there=1, missing=0), 59)
    assert all(topics == {"missing"} for _, topics in found), "the others are known"
    times = [0.0, *(at for at, _ in found)]
    pauses = [after - before for before, after in itertools.pairwise(times)]
    for pause, expected in zip(pauses, (0.1, 0.2, 0.4, 0.8), strict=False):
        assert 0.79 * expected < pause < 1.21 * expected
    assert all(0.79 < each < 1.21 for each in pauses[4:])
    # A second for each look, and a few looks more at the beginning.
    assert len(found) < 59 / 0.8 + 4


def test_a_client_that_tries_again_at_once_does_not_look_at_once() -> None:
    clock = Clock()
    watched = TopicWatch({"t": []}, 60.0, Retry(0, 0).pause_seconds, clock.monotonic, by_rack=False)
    assert 1 < len(looks(clock, watched, 1)) <= 20


def test_a_look_at_all_topics_has_the_missing_ones_too() -> None:
    clock = Clock()
    found = looks(clock, watch(clock, there=1, missing=0), 61)
    assert (60, {"there", "missing"}) in found


def test_a_topic_that_goes_away_is_missing_from_then_on() -> None:
    clock = Clock()
    watched = watch(clock, gone=2)
    clock.now_seconds = watched.due_seconds
    assert watched.changed(watched.due_topics(), {}) == ["gone"]
    assert watched.due_seconds <= clock.now_seconds + 1.2


def test_a_leader_joins_once_for_a_topic_that_comes(alone: Alone) -> None:
    alone.cluster = {}
    alone.settle()
    alone.cluster = topics(t=2)
    alone.clock.now_seconds += 2
    alone.next_due()
    alone.poll()
    assert alone.next(JoinGroupRequest).reason == "the partitions of t have changed"
    alone.join(2)
    alone.sync(T0, T1)
    alone.poll()
    assert alone.membership.assignment == {T0, T1}
    for _ in range(20):  # Less than the age of metadata.
        alone.clock.now_seconds += 2
        alone.next_due()
        alone.poll()
    assert alone.state() is State.STABLE


def test_a_look_that_fails_is_one_look(alone: Alone, monkeypatch: pytest.MonkeyPatch) -> None:
    alone.cluster = {}
    alone.settle()
    asked = []

    def fail(topics: object, _: object) -> dict[str, object]:
        asked.append(topics)
        raise ConnectionFailedError("gone")

    monkeypatch.setattr(alone.membership, "_topics_of", fail)
    alone.clock.now_seconds += 2
    for _ in range(5):
        alone.next_due()
    assert asked == [["t"]]
    assert alone.state() is State.STABLE


def test_one_who_follows_never_looks(alone: Alone, monkeypatch: pytest.MonkeyPatch) -> None:
    alone.cluster = {}
    alone.poll()
    response = JoinGroupResponse(0, 0, 1, "consumer", "deal", "leader", False, "m")
    alone.answer(alone.next(JoinGroupRequest), response)
    monkeypatch.setattr(alone.membership, "_topics_of", lambda *_: pytest.fail("it looked"))
    alone.sync()
    alone.poll()
    alone.membership.look_at_topics()
    for _ in range(100):
        alone.clock.now_seconds += 1
        alone.next_due()
        alone.membership._note_poll()
    assert alone.state() is State.STABLE


def test_a_leader_that_is_told_of_partitions_looks_at_once(alone: Alone) -> None:
    alone.settle(T0, T1)
    alone.cluster = topics(t=3)
    alone.next_due()
    alone.poll()
    assert alone.state() is State.STABLE
    alone.membership.look_at_topics()
    alone.next_due()
    alone.poll()
    assert alone.state() is State.PREPARING_REBALANCE


@pytest.mark.parametrize("cooperative", [False, True], ids=["eager", "cooperative"])
def test_a_topic_that_comes_is_divided_and_costs_two_rounds_at_most(
    broker: MemoryBroker, *, cooperative: bool
) -> None:
    broker.cluster.coordinators["g"] = 1
    with member(broker, cooperative=cooperative) as one:
        one.settle()
        before = len(broker.requests(JoinGroupRequest))
        broker.create_topic("t", 2)
        one.settle(T0, T1)
        broker.wait_for(HeartbeatRequest, len(broker.requests(HeartbeatRequest)) + 5)
        run(one.membership.poll())
        assert len(broker.requests(JoinGroupRequest)) == before + 1


def most_looks(seconds: float) -> float:
    """Return how often one member may look in this time, with pauses of 100 ms, or a fifth less.

    A test cannot count by heartbeats: if answers take long, each look has few of them.
    """
    return seconds / 0.08 + 2


def test_a_topic_that_never_comes_costs_fewer_looks_than_heartbeats(broker: MemoryBroker) -> None:
    """The pauses between looks are twice the heartbeat's, and one thread does both in turn."""
    pauses = {"retry_backoff_ms": 100, "retry_backoff_max_ms": 100}
    with member(broker, client=pauses, heartbeat_interval_ms=40) as one:
        one.settle()
        began_seconds = time.monotonic()
        broker.forget()
        broker.wait_for(HeartbeatRequest, 30)
        asked = broker.requests(MetadataRequest)
        assert 0 < len(asked) <= most_looks(time.monotonic() - began_seconds)
        assert {each.name for request in asked for each in request.topics or ()} == {"t"}
        assert len(broker.requests(JoinGroupRequest)) == 0


def test_two_members_ask_no_more_than_one(broker: MemoryBroker) -> None:
    def poll_both_until(done: Callable[[], bool]) -> None:
        def both() -> bool:
            run(two.membership.poll())
            return done()

        one.poll_until(both)

    pauses = {"retry_backoff_ms": 100, "retry_backoff_max_ms": 100}
    with (
        member(broker, client=pauses, heartbeat_interval_ms=40) as one,
        member(broker, client=pauses, heartbeat_interval_ms=40) as two,
    ):
        poll_both_until(
            lambda: one.is_stable and two.is_stable and len(broker.group("g").members) == 2
        )
        began_seconds = time.monotonic()
        broker.forget()
        broker.wait_for(HeartbeatRequest, 60)
        asked = broker.requests(MetadataRequest)
        assert 0 < len(asked) <= most_looks(time.monotonic() - began_seconds)
        broker.create_topic("t", 4)
        poll_both_until(
            lambda: len(one.membership.assignment) == len(two.membership.assignment) == 2
        )
