"""A Ctrl-C in a consumer's calls: nothing is lost or told wrongly, and the member leaves."""

import threading
from collections.abc import Callable, Collection
from functools import partial
from itertools import count
from typing import Any

import pytest

from spark_kafka_source.consumer import commits, kafka_consumer, subscription
from spark_kafka_source.consumer.kafka_consumer import KafkaConsumer
from spark_kafka_source.errors import ClosedError
from spark_kafka_source.net import Deadline, Running, Wait, run, wait_for
from spark_kafka_source.protocol.messages.groups import OffsetCommitRequest
from spark_kafka_source.protocol.messages.membership import (
    ConsumerGroupHeartbeatRequest,
    LeaveGroupRequest,
)
from spark_kafka_source.testing.memory import Action, MemoryBroker
from spark_kafka_source.topic_partition import TopicPartition
from tests.consumer.consumers import (
    IN_GROUP,
    T0,
    T1,
    Listener,
    consuming,
    eventually,
    fill,
    forget_group,
    longer_and_longer,
    of,
    places,
    poll_until,
    polled,
)

pytestmark = pytest.mark.memory(nodes=2, topics={"t": 2, "u": 1}, coordinators={"g": 1})

U0 = TopicPartition("u", 0)
HOUR_MS = 3_600_000
CLASSIC = IN_GROUP | {"enable_auto_commit": True, "auto_commit_interval_ms": HOUR_MS}
PROTOCOLS: dict[str, dict[str, Any]] = {
    "eager": CLASSIC | {"partition_assignment_strategy": "range"},
    "cooperative": CLASSIC | {"partition_assignment_strategy": "cooperative-sticky"},
    "KIP-848": {
        name: value
        for name, value in (CLASSIC | {"group_protocol": "consumer"}).items()
        if not name.endswith("_ms") or name.startswith("auto")
    },
}
WITH_EACH = pytest.mark.parametrize("config", PROTOCOLS.values(), ids=PROTOCOLS)
FOR_HOURS = {"request_timeout_ms": HOUR_MS, "default_api_timeout_ms": HOUR_MS}


@pytest.fixture
def broker(broker: MemoryBroker) -> MemoryBroker:
    fill(broker, T0, 1)
    fill(broker, T1, 1)
    return broker


class Interrupted(Listener):
    """A listener that keeps its calls. A Ctrl-C ends the first one of the kind `at`."""

    def __init__(self, at: str = "") -> None:
        super().__init__(self._interrupt)
        self.at = at

    def _interrupt(self, what: str, partitions: Collection[TopicPartition]) -> None:
        if what == self.at and partitions:
            self.at = ""
            raise KeyboardInterrupt


def poll_to_interrupt(consumer: KafkaConsumer) -> None:
    with pytest.raises(KeyboardInterrupt):
        poll_until(consumer, lambda: False)


def drop(broker: MemoryBroker, consumer: KafkaConsumer) -> None:
    """End the member's session, and wait until the member knows."""
    member = consumer.group_metadata()
    assert member is not None
    if broker.cluster.groups:
        broker.drop_member("g", member.member_id)
    else:
        broker.drop_consumer("g", member.member_id)
    eventually(lambda: consumer.group_metadata() is None)


def committed(broker: MemoryBroker) -> dict[TopicPartition, int]:
    return dict(broker.cluster.committed.get("g", {}))


def farewells(broker: MemoryBroker) -> int:
    beats = broker.requests(ConsumerGroupHeartbeatRequest)
    return len(broker.requests(LeaveGroupRequest)) + sum(each.member_epoch < 0 for each in beats)


def check_has_left(broker: MemoryBroker, consumer: KafkaConsumer) -> None:
    """Check that the member has left, that its thread has ended, and that it is closed."""
    assert farewells(broker) == 1
    check_is_closed(broker, consumer)


def check_is_closed(broker: MemoryBroker, consumer: KafkaConsumer) -> None:
    wait_for_last_steps(broker)
    seen = len(broker.seen)
    consumer.close()
    assert len(broker.seen) == seen


def wait_for_last_steps(broker: MemoryBroker) -> None:
    """Wait until the member's thread has ended, and nothing that was sent can come in any more.

    A Ctrl-C may end the wait for the thread, or for the answers to the last requests.
    """
    eventually(lambda: "group g" not in {each.name for each in threading.enumerate()})
    for node_id in broker.cluster.ports:
        broker.hang_up(node_id)


def interrupt_at(
    monkeypatch: pytest.MonkeyPatch, is_time: Callable[[], bool], *, was_interrupted: bool = False
) -> None:
    """Let a Ctrl-C end each wait of a call for which `is_time()`. No wait may be long after it."""

    def block(wait: Wait) -> None:
        nonlocal was_interrupted
        if is_time():
            was_interrupted = True
            raise KeyboardInterrupt
        assert not was_interrupted or wait.until.remaining_ms() < 60_000
        wait.block()

    monkeypatch.setattr(kafka_consumer, "run", partial(run, block=block))


# -- listeners -------------------------------------------------------------------------------------


@WITH_EACH
def test_a_listener_is_told_again_of_new_partitions(
    broker: MemoryBroker, config: dict[str, Any]
) -> None:
    listener = Interrupted("assigned")
    with consuming(broker, **config) as consumer:
        consumer.subscribe(["t"], listener=listener)
        poll_to_interrupt(consumer)
        assert consumer.assignment() == set(), "if they are lost now, nobody may read them"
        assert sorted(polled(consumer, 20)) == of(T0, range(10)) + of(T1, range(10))
        told = [each for each in listener.said if each[1]]
        assert told == [("assigned", {T0, T1})] * 2
    assert committed(broker) == {T0: 10, T1: 10}


@WITH_EACH
def test_a_listener_is_told_again_of_what_it_is_to_give_up(
    broker: MemoryBroker, config: dict[str, Any]
) -> None:
    fill(broker, U0, 1)
    listener = Interrupted("revoked")
    with consuming(broker, **config) as consumer:
        consumer.subscribe(["t"], listener=listener)
        polled(consumer, 20)
        consumer.subscribe(["u"], listener=listener)
        poll_to_interrupt(consumer)
        assert consumer.assignment() == {T0, T1}
        assert consumer.position(T0) == 10
        assert polled(consumer, 10) == of(U0, range(10))
        told = [each for each in listener.said if each[1]]
        assert told[1:] == [("revoked", {T0, T1})] * 2 + [("assigned", {U0})]
    assert committed(broker) == {T0: 10, T1: 10, U0: 10}


@WITH_EACH
def test_a_listener_is_told_again_of_what_is_lost(
    broker: MemoryBroker, config: dict[str, Any]
) -> None:
    listener = Interrupted("lost")
    with consuming(broker, **config) as consumer:
        consumer.subscribe(["t"], listener=listener)
        polled(consumer, 20)
        drop(broker, consumer)
        poll_to_interrupt(consumer)
        assert consumer.assignment() == {T0, T1}
        assert consumer.position(T0) == 10
        assert len(polled(consumer, 20)) == 20
        told = [each for each in listener.said if each[1]]
        assert told == [
            ("assigned", {T0, T1}),
            ("lost", {T0, T1}),
            ("lost", {T0, T1}),
            ("assigned", {T0, T1}),
        ]


@WITH_EACH
def test_a_listener_that_is_interrupted_in_close_keeps_no_member(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch, config: dict[str, Any]
) -> None:
    with consuming(broker, **config | {"enable_auto_commit": False}) as consumer:
        consumer.subscribe(["t"], listener=Interrupted("revoked"))
        polled(consumer, 20)
        interrupt_at(monkeypatch, lambda: False, was_interrupted=True)
        with pytest.raises(KeyboardInterrupt):
            consumer.close(timeout_ms=HOUR_MS)
        check_has_left(broker, consumer)


# -- commits and look-ups --------------------------------------------------------------------------


@WITH_EACH
@pytest.mark.parametrize("begun", ["by close", "before"])
def test_a_commit_that_is_interrupted_in_close_keeps_no_member(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch, config: dict[str, Any], begun: str
) -> None:
    told: list[Exception | None] = []
    with consuming(broker, **config, **FOR_HOURS) as consumer:
        consumer.subscribe(["t"])
        polled(consumer, 20)
        broker.control(OffsetCommitRequest, Action.SILENCE, times=None)
        if begun == "before":
            consumer.commit_async({T0: 3}, lambda _, error: told.append(error))
        close = consumer._commits.close

        async def at_once(deadline: Deadline) -> None:
            assert deadline.expired, "nobody wants to wait any more"
            await close(deadline)

        monkeypatch.setattr(consumer._commits, "close", at_once)
        waits = count()
        interrupt_at(monkeypatch, lambda: next(waits) == 0)
        with pytest.raises(KeyboardInterrupt):
            consumer.close(timeout_ms=HOUR_MS)
        check_has_left(broker, consumer)
    assert [type(each) for each in told] == ([ClosedError] if begun == "before" else [])


def test_a_ctrl_c_in_the_last_wait_for_commits_tells_their_callbacks(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Exception | None] = []
    broker.control(OffsetCommitRequest, Action.SILENCE, times=None)
    with consuming(broker, T0, group_id="g", enable_auto_commit=False, **FOR_HOURS) as consumer:
        consumer.commit_async({T0: 3}, lambda _, error: told.append(error))
        interrupt_at(monkeypatch, lambda: True)
        with pytest.raises(KeyboardInterrupt):
            consumer.close()
    assert [type(each) for each in told] == [ClosedError]


def test_a_ctrl_c_in_a_step_of_a_commit_does_not_lose_it(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Exception | None] = []

    async def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with consuming(broker, **IN_GROUP) as consumer:
        consumer.subscribe(["t"])
        polled(consumer, 20)
        assert committed(broker) == {}
        with monkeypatch.context() as patch:
            patch.setattr(commits, "commit_offsets", interrupted)
            with pytest.raises(KeyboardInterrupt):
                consumer.commit_async({T0: 7}, lambda _, error: told.append(error))
    assert committed(broker) == {T0: 7}
    assert told == [None]


@pytest.mark.parametrize("config", [{}, IN_GROUP], ids=["alone", "in a group"])
def test_a_ctrl_c_in_a_look_for_topics_costs_one_poll(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch, config: dict[str, Any]
) -> None:
    async def interrupted(*_: Any, **__: Any) -> None:
        await wait_for((), Deadline(0.0, 0))
        raise KeyboardInterrupt

    with consuming(broker, **config) as consumer:
        consumer.subscribe(pattern="t")
        with monkeypatch.context() as patch:
            patch.setattr(subscription, "describe_topics", interrupted)
            poll_to_interrupt(consumer)
        assert len(polled(consumer, 20)) == 20


@pytest.mark.parametrize("at", range(0, 48, 3))
def test_a_ctrl_c_in_any_step_of_a_conversation_loses_no_record(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    steps, user = count(), threading.get_ident()
    go_on = Running.go_on

    def interrupted(running: Running[Any]) -> None:
        if threading.get_ident() == user and not running.is_done and next(steps) == at:
            monkeypatch.setattr(running, "_conversation", Interrupting(running._conversation))
        go_on(running)

    monkeypatch.setattr(Running, "go_on", interrupted)
    check_all_is_read(broker)


class Interrupting:
    """A conversation whose next step a Ctrl-C ends."""

    def __init__(self, conversation: Any) -> None:
        self._conversation = conversation
        self.close = conversation.close

    def send(self, _: None) -> Any:
        return self._conversation.throw(KeyboardInterrupt)


@pytest.mark.parametrize("at", range(0, 24, 3))
def test_a_ctrl_c_in_any_wait_loses_no_record(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    waits = count()
    interrupt_at(monkeypatch, lambda: next(waits) == at)
    check_all_is_read(broker)


def check_all_is_read(broker: MemoryBroker) -> None:
    """Read and commit all records, and close, with a Ctrl-C at some time."""
    found: list[Any] = []
    with consuming(broker, **CLASSIC) as consumer:
        consumer.subscribe(["t"])

        def go_on(call: Callable[[], object]) -> None:
            try:
                call()
            except KeyboardInterrupt:
                call()

        while len(found) < 20:
            go_on(lambda: found.extend(places(consumer.poll(timeout_ms=50))))
        go_on(consumer.commit)
        assert committed(broker) == {T0: 10, T1: 10}
        go_on(consumer.close)
        check_is_closed(broker, consumer)
    assert sorted(found) == of(T0, range(10)) + of(T1, range(10))


# -- the last commits ------------------------------------------------------------------------------


@WITH_EACH
@pytest.mark.parametrize("end", [KafkaConsumer.close, KafkaConsumer.unsubscribe])
@pytest.mark.parametrize("moves", [False, True], ids=["", "the coordinator moves"])
def test_a_commit_is_done_before_the_member_leaves(
    broker: MemoryBroker,
    config: dict[str, Any],
    end: Callable[[KafkaConsumer], None],
    moves: bool,
) -> None:
    told: list[Exception | None] = []
    with consuming(broker, **config | {"enable_auto_commit": False}) as consumer:
        consumer.subscribe(["t"])
        polled(consumer, 20)
        if moves:
            consumer.commit({T1: 3})
            broker.cluster.coordinators["g"] = 0
        consumer.commit_async({T0: 7}, lambda _, error: told.append(error))
        end(consumer)
        assert committed(broker)[T0] == 7
        assert farewells(broker) == 1
        if end is KafkaConsumer.unsubscribe:
            consumer.assign([T0])
            consumer.poll(timeout_ms=0)
    assert told == [None]


@WITH_EACH
def test_a_commit_that_is_not_answered_leaves_time_to_leave(
    broker: MemoryBroker, config: dict[str, Any]
) -> None:
    for timeout_ms in longer_and_longer(500):
        told: list[Exception | None] = []
        forget_group(broker)
        with consuming(broker, **config, **FOR_HOURS) as consumer:
            consumer.subscribe(["t"])
            polled(consumer, 20)
            broker.control(OffsetCommitRequest, Action.SILENCE, times=None)
            consumer.commit_async({T0: 7}, lambda _, error, told=told: told.append(error))
            consumer.close(timeout_ms=timeout_ms)
            if farewells(broker):
                break
    check_has_left(broker, consumer)
    assert [type(each) for each in told] == [ClosedError]
