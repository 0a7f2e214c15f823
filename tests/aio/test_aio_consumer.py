"""What differs in an `AIOConsumer`: other tasks go on, listeners may wait, tasks are cancelled."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from spark_kafka_source import AIOConsumer, KafkaConsumer, TopicPartition
from spark_kafka_source.aio import hold
from spark_kafka_source.consumer.waiting import WakeupError
from spark_kafka_source.errors import ConfigurationError, LocalError
from spark_kafka_source.protocol.messages.fetch import FetchRequest
from spark_kafka_source.protocol.messages.groups import OffsetCommitRequest
from spark_kafka_source.testing.memory import Action, MemoryBroker
from tests.aio.conftest import others
from tests.consumer.consumers import IN_GROUP, QUICK, T0, T1, fill
from tests.consumer.test_interrupted import (
    PROTOCOLS,
    WITH_EACH,
    drop,
    farewells,
    wait_for_last_steps,
)

MOST_SECONDS = 60


@pytest.fixture(autouse=True)
def topic(broker: MemoryBroker) -> None:
    broker.create_topic("t", 2)


@asynccontextmanager
async def consuming(broker: MemoryBroker, **config: Any) -> AsyncIterator[AIOConsumer]:
    broker.held_step_seconds = 0.002
    async with AIOConsumer(bootstrap_servers=str(broker.address()), **QUICK | config) as consumer:
        yield consumer


def held(conversation: Any) -> Any:
    return asyncio.run(asyncio.wait_for(conversation, MOST_SECONDS))


def test_it_has_the_calls_of_the_other_one() -> None:
    """Each has the same parameters, with the same defaults."""
    for name, there in inspect.getmembers(KafkaConsumer, callable):
        if name.startswith("_"):
            continue
        here = getattr(AIOConsumer, name)
        assert (
            str(inspect.signature(here)).split(" -> ")[0].replace("AIO", "Kafka")
            == str(inspect.signature(there)).split(" -> ")[0]
        ), name


def test_other_tasks_go_on_while_it_waits(broker: MemoryBroker) -> None:
    broker.control(FetchRequest, Action.SILENCE, times=None)

    async def read() -> None:
        async with consuming(broker, request_timeout_ms=200) as consumer:
            consumer.assign([T0])
            polling = asyncio.create_task(consumer.poll(30_000))
            await asyncio.to_thread(broker.wait_for, FetchRequest)
            for _ in range(50):
                await asyncio.sleep(0.001)
            assert not polling.done()
            consumer.wakeup()
            with pytest.raises(WakeupError):
                await polling

    held(read())


def test_many_read_in_one_thread(broker: MemoryBroker) -> None:
    fill(broker, T0, 1)
    fill(broker, T1, 1)

    async def read(where: TopicPartition) -> list[int]:
        async with consuming(broker) as consumer:
            consumer.assign([where])
            found: list[int] = []
            async for record in consumer:
                found.append(record.offset)
                if len(found) == 10:
                    return found
        raise AssertionError("the loop over a consumer has no end")

    async def all_of_them() -> list[list[int]]:
        return await asyncio.gather(*(read(each) for each in [T0, T1] * 10))

    assert held(all_of_them()) == [list(range(10))] * 20


def test_a_cancelled_poll_loses_nothing(broker: MemoryBroker) -> None:
    async def read() -> list[int]:
        async with consuming(broker) as consumer:
            consumer.assign([T0])
            polling = asyncio.create_task(consumer.poll(60_000))
            await asyncio.sleep(0.05)
            polling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await polling
            fill(broker, T0, 1)
            found: list[int] = []
            while len(found) < 10:
                found += [each.offset for each in await consumer.poll(10_000)]
            return found

    assert held(read()) == list(range(10))


@pytest.mark.usefixtures("clock")
def test_other_tasks_have_their_turn_while_there_is_a_backlog(broker: MemoryBroker) -> None:
    fill(broker, T0, 100)

    async def read() -> list[int]:
        async with consuming(broker, max_poll_records=1) as polling:
            polling.assign([T0])
            while not len(await polling.poll(60_000)):
                pass
            with others() as of_poll:
                for _ in range(200):
                    await polling.poll(60_000)
        async with consuming(broker, max_poll_records=500) as looping:
            looping.assign([T0])
            records = aiter(looping)
            await anext(records)
            with others() as of_loop:
                for _ in range(400):
                    await anext(records)
        return [len(of_poll), len(of_loop)]

    of_poll, of_loop = held(read())
    assert of_poll >= 19
    assert 39 <= of_loop <= 45


def test_a_cancelled_turn_loses_nothing(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look at the clock is a turn, so each cancellation comes in one."""
    monkeypatch.setattr(hold, "_TURN_SECONDS", 0)
    fill(broker, T0, 2)
    found: list[int] = []

    async def loop(consumer: AIOConsumer) -> None:
        async for record in consumer:
            found.append(record.offset)

    async def poll(consumer: AIOConsumer) -> None:
        while len(found) < 20:
            found.extend(each.offset for each in await consumer.poll())

    async def read() -> None:
        async with consuming(broker, max_poll_records=2) as consumer:
            consumer.assign([T0])
            reading: Any
            for reading in (loop, poll, loop, poll, poll, loop, loop):
                before, task = len(found), asyncio.create_task(reading(consumer))
                while len(found) == before:
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
            await poll(consumer)

    held(read())
    assert found == list(range(20))


def test_two_tasks_at_once_are_refused(broker: MemoryBroker) -> None:
    async def read() -> None:
        async with consuming(broker) as consumer:
            consumer.assign([T0])
            polling = asyncio.create_task(consumer.poll(60_000))
            await asyncio.sleep(0.01)
            with pytest.raises(LocalError, match="in use by another task; only wakeup"):
                await consumer.poll(0)
            consumer.wakeup()
            with pytest.raises(WakeupError):
                await polling

    held(read())


class Committing:
    """An `async` listener that commits what is revoked, and tries to poll."""

    def __init__(self) -> None:
        self.told: list[str] = []

    async def on_partitions_revoked(
        self, consumer: AIOConsumer, partitions: Collection[TopicPartition]
    ) -> None:
        await asyncio.sleep(0)
        await consumer.commit()
        with pytest.raises(LocalError, match="was called in a callback"):
            await consumer.poll(0)
        self.told.append("revoked")

    async def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        await asyncio.sleep(0.01)
        self.told.append("assigned")


def test_a_part_of_a_subscription_is_not_ended(broker: MemoryBroker) -> None:
    async def leave(*given: Any, **named: Any) -> None:
        async with consuming(broker, **IN_GROUP) as consumer:
            with pytest.raises(LocalError, match="the topics that remain"):
                await consumer.unsubscribe(*given, **named)

    held(leave(["foo"]))
    held(leave(topics=["foo"]))


def test_a_listener_may_wait(broker: MemoryBroker) -> None:
    fill(broker, T0, 1)

    async def read() -> tuple[list[str], Any]:
        listener = Committing()
        async with consuming(broker, **IN_GROUP) as consumer:
            consumer.subscribe(["t"], listener=listener)
            count = 0
            while count < 10:
                count += len(await consumer.poll(1_000))
            await consumer.unsubscribe()
            committed = await consumer.committed([T0])
        return listener.told, committed[T0]

    told, committed = held(read())
    assert told == ["assigned", "revoked"]
    assert committed.offset == 10


def test_a_method_that_returns_something_to_await_is_awaited(broker: MemoryBroker) -> None:
    told: list[str] = []

    async def tell(what: str, _: object) -> None:
        await asyncio.sleep(0)
        told.append(what)

    class Listener:
        on_partitions_assigned = staticmethod(partial(tell, "assigned"))

        def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> Any:
            return tell("revoked", partitions)

    async def read() -> None:
        async with consuming(broker, **IN_GROUP) as consumer:
            consumer.subscribe(["t"], listener=Listener())
            while not consumer.assignment():
                await consumer.poll(10)

    held(read())
    assert told == ["assigned", "revoked"]


async def asynchronous(*_: object) -> None: ...


def test_an_asynchronous_callback_of_a_commit_is_refused(broker: MemoryBroker) -> None:
    refused: Any = asynchronous

    async def read() -> None:
        async with consuming(broker, **IN_GROUP) as consumer:
            consumer.assign([T0])
            with pytest.raises(ConfigurationError, match="'callback': is an asynchronous function"):
                consumer.commit_async({T0: 1}, refused)
            consumer.commit_async({T0: 1}, lambda *_: refused())
            with pytest.raises(ConfigurationError, match="returned something to await"):
                await consumer.commit({T0: 1})

    held(read())


def test_a_blocking_consumer_takes_no_listener_that_waits(broker: MemoryBroker) -> None:
    with pytest.raises(ConfigurationError, match="asynchronous method `on_partitions_revoked`"):
        KafkaConsumer(bootstrap_servers=str(broker.address()), group_id="g", listener=Committing())


# -- cancellations ---------------------------------------------------------------------------------


async def cancelled(call: Any, is_time: asyncio.Event) -> None:
    """Begin a call, and cancel it once it is time."""
    task = asyncio.create_task(call)
    await is_time.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def check_has_left(broker: MemoryBroker, consumer: AIOConsumer) -> None:
    assert farewells(broker) == 1
    wait_for_last_steps(broker)
    seen = len(broker.seen)
    await consumer.close()
    assert len(broker.seen) == seen


class Hanging:
    """An `async` listener that keeps its calls. The first of the kind `at` never ends."""

    def __init__(self, at: str) -> None:
        self.at = at
        self.waits = asyncio.Event()
        self.told: list[tuple[str, set[TopicPartition]]] = []

    async def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        await self._hear("revoked", partitions)

    async def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        await self._hear("assigned", partitions)

    async def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        await self._hear("lost", partitions)

    async def _hear(self, what: str, partitions: Collection[TopicPartition]) -> None:
        if not partitions:
            return
        self.told.append((what, set(partitions)))
        if what == self.at:
            self.at = ""
            self.waits.set()
            await asyncio.Event().wait()


@WITH_EACH
@pytest.mark.parametrize("at", ["assigned", "revoked", "lost"])
def test_a_listener_that_was_cancelled_is_told_again(
    broker: MemoryBroker, config: dict[str, Any], at: str
) -> None:
    broker.create_topic("u")
    u0 = TopicPartition("u", 0)
    for each in (T0, T1, u0):
        fill(broker, each, 1)
    both = {T0, T1}

    async def read() -> list[Any]:
        listener = Hanging(at)
        async with consuming(broker, **config) as consumer:

            async def polled(most: int) -> None:
                left = most
                while left > 0:
                    left -= len(await consumer.poll(1_000))

            consumer.subscribe(["t"], listener=listener)
            if at != "assigned":
                await polled(20)
            if at == "revoked":
                consumer.subscribe(["u"], listener=listener)
            elif at == "lost":
                drop(broker, consumer)  # type: ignore[arg-type]
            await cancelled(polled(100), listener.waits)
            assert consumer.assignment() == (set() if at == "assigned" else both)
            await polled(10 if at == "revoked" else 20)
            return listener.told

    expected = {
        "assigned": [("assigned", both)] * 2 + [("revoked", both)],
        "revoked": [("assigned", both)] + [("revoked", both)] * 2,
        "lost": [("assigned", both)] + [("lost", both)] * 2 + [("assigned", both)],
    }
    told = held(read())
    assert told[: len(expected[at])] == expected[at]


@WITH_EACH
def test_a_cancelled_close_leaves_the_group(broker: MemoryBroker, config: dict[str, Any]) -> None:
    fill(broker, T0, 1)

    async def read() -> None:
        async with consuming(broker, **config) as consumer:
            consumer.subscribe(["t"])
            while not len(await consumer.poll(1_000)):
                pass
            is_time, loop = asyncio.Event(), asyncio.get_running_loop()

            def never(_: Any) -> Action:
                loop.call_soon_threadsafe(is_time.set)
                return Action.SILENCE

            broker.control(OffsetCommitRequest, never, times=None)
            await cancelled(consumer.close(), is_time)
            await check_has_left(broker, consumer)

    held(read())


def test_a_listener_that_was_cancelled_in_close_keeps_no_member(broker: MemoryBroker) -> None:
    fill(broker, T0, 1)

    async def read() -> None:
        listener = Hanging("revoked")
        async with consuming(broker, **PROTOCOLS["eager"]) as consumer:
            consumer.subscribe(["t"], listener=listener)
            while not len(await consumer.poll(1_000)):
                pass
            await cancelled(consumer.close(), listener.waits)
            await check_has_left(broker, consumer)

    held(read())
