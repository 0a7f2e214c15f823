"""What differs in an `AIOProducer`: a call that waits lets other tasks go on."""

import asyncio
import contextlib
import inspect
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from spark_kafka_source import AIOProducer, KafkaProducer
from spark_kafka_source.errors import (
    BootstrapError,
    ClosedError,
    KafkaError,
    KafkaTimeoutError,
    LocalError,
    error_named,
)
from spark_kafka_source.producer import UnknownPartitionError, UnsendableRecordError
from spark_kafka_source.producer.errors import TransactionStateError
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.protocol.messages.produce import ProduceRequest
from spark_kafka_source.testing.memory import Action, MemoryBroker, PartitionLog
from tests.aio.conftest import others
from tests.producer.writing import values

MOST_SECONDS = 60
QUICK: dict[str, Any] = {"linger_ms": 0, "retry_backoff_ms": 1, "retry_backoff_max_ms": 1}


@pytest.fixture(autouse=True)
def logs(broker: MemoryBroker) -> list[PartitionLog]:
    return broker.create_topic("t", 2)


def writing(broker: MemoryBroker, **config: Any) -> AIOProducer:
    return AIOProducer(bootstrap_servers=str(broker.address()), **QUICK | config)


def held(conversation: Any) -> Any:
    return asyncio.run(asyncio.wait_for(conversation, MOST_SECONDS))


def test_it_has_the_calls_of_the_other_one() -> None:
    """But for those by which another process ends a transaction, and callbacks."""
    by_another = {"begin_at", "prepare_transaction", "sends_at_once", "of"}
    for name, there in inspect.getmembers(KafkaProducer, callable):
        if name.startswith("_") or name in by_another:
            continue
        here = inspect.signature(getattr(AIOProducer, name)).parameters
        assert list(here) == [
            each for each in inspect.signature(there).parameters if each != "on_delivery"
        ], name


@pytest.mark.parametrize("value", [None, b"secret"])
@pytest.mark.parametrize("topic", [{"topic": "t", "value": "secret"}, b"t", ["t"]], ids=repr)
def test_what_is_no_topic_is_named_and_not_shown(
    broker: MemoryBroker, topic: Any, value: Any
) -> None:
    async def write() -> None:
        async with writing(broker) as producer:
            await producer.send(topic, value)

    with KafkaProducer(bootstrap_servers=str(broker.address())) as producer:
        for send in (partial(producer.send, topic, value), lambda: held(write())):
            with pytest.raises(LocalError, match="give a topic's name, and the record") as refused:
                send()
            assert "secret" not in str(refused.value)


def test_records_keep_their_order_and_have_their_offsets(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    async def write() -> list[int]:
        async with writing(broker) as producer:
            sent = [await producer.send("t", b"%d" % each, partition=0) for each in range(200)]
            return [(await each).offset for each in sent]

    assert held(write()) == list(range(200))
    assert values(logs[0]) == [b"%d" % each for each in range(200)]


def test_other_tasks_go_on_while_a_topic_is_waited_for(broker: MemoryBroker) -> None:
    answers = broker.hold(MetadataRequest)

    async def write() -> tuple[bool, int]:
        async with writing(broker) as producer:
            sending = asyncio.create_task(producer.send_and_wait("t", b"a", partition=1))
            turns = 0
            while turns < 50:
                await asyncio.sleep(0.001)
                turns += 1
            is_waiting = not sending.done()
            answers.release()
            return is_waiting, (await sending).offset

    assert held(write()) == (True, 0)


def test_a_missing_topic_holds_up_no_other(broker: MemoryBroker) -> None:
    async def write() -> list[int]:
        async with writing(broker) as producer:
            missing = asyncio.create_task(producer.send_and_wait("missing", b"a"))
            await asyncio.to_thread(broker.wait_for, MetadataRequest)
            sent = await producer.send_and_wait("t", b"b", partition=0)
            await producer.flush()
            assert not missing.done()
            broker.create_topic("missing")
            return [sent.offset, (await missing).offset]

    assert held(write()) == [0, 0]


def test_more_topics_than_threads_are_waited_for(broker: MemoryBroker) -> None:
    names = [f"t{number}" for number in range(20)]
    logs = [log for name in names for log in broker.create_topic(name)]

    async def write() -> None:
        async with writing(broker) as producer:
            numbers = range(3)
            await asyncio.gather(*(producer.send(n, b"%d" % i) for i in numbers for n in names))

    held(write())
    assert [values(each) for each in logs] == [[b"0", b"1", b"2"]] * 20


def test_waiting_records_of_a_topic_keep_their_order(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    """One that is cancelled is written in its place if a thread waits for it already, or never."""
    answers = broker.hold(MetadataRequest)

    async def write() -> None:
        async with writing(broker) as producer:
            send = partial(producer.send, "t", partition=0)
            sending = [asyncio.create_task(send(b"%d" % each)) for each in range(50)]
            await asyncio.to_thread(broker.wait_for, MetadataRequest)
            for each in sending[:5]:
                each.cancel()
            await asyncio.wait(sending[:5])  # Their calls are out of the line then.
            answers.release()
            await asyncio.gather(*sending, return_exceptions=True)
            await send(b"last")

    held(write())
    assert values(logs[0]) == [b"0", *(b"%d" % each for each in range(5, 50)), b"last"]


def test_a_record_waits_for_earlier_ones_of_its_topic(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    async def write() -> None:
        async with writing(broker, max_block_ms=3_000) as producer:
            await producer.partitions_for("t")
            answers = broker.hold(MetadataRequest)
            unknown = asyncio.create_task(producer.send("t", b"a", partition=2))
            known = asyncio.create_task(producer.send("t", b"b", partition=1))
            await asyncio.to_thread(broker.wait_for, MetadataRequest, 2)
            assert not known.done()
            answers.release()
            with pytest.raises(UnknownPartitionError):
                await unknown
            await known

    held(write())
    assert values(logs[1]) == [b"b"]


@pytest.mark.usefixtures("clock")
def test_other_tasks_have_their_turn_while_records_are_sent(broker: MemoryBroker) -> None:
    async def write() -> int:
        async with writing(broker) as producer:
            await producer.partitions_for("t")
            with others() as turns:
                for _ in range(1_000):
                    await producer.send("t", b"a", partition=0)
                return len(turns)

    assert 90 <= held(write()) <= 110


def test_a_closed_one_takes_no_record(broker: MemoryBroker) -> None:
    async def write() -> None:
        producer = writing(broker)
        await producer.close()
        with pytest.raises(ClosedError):
            await producer.send("t", b"a")

    held(write())


def test_other_calls_that_wait_do_not_move_the_deadline_of_close(broker: MemoryBroker) -> None:
    table = pa.table({"value": [b"a"]})
    answers = broker.hold(ProduceRequest)

    async def write() -> bool:
        producer = writing(broker)
        sent = [asyncio.create_task(producer.send_columns("t", table)) for _ in range(40)]
        await asyncio.to_thread(broker.wait_for, ProduceRequest)
        await asyncio.sleep(0.1)
        _, late = await asyncio.wait([asyncio.create_task(producer.close(0.1))], timeout=5)
        answers.release()
        await asyncio.gather(*sent, return_exceptions=True)
        return not late

    assert held(write())


def test_the_error_of_a_record_is_raised_where_it_is_awaited(broker: MemoryBroker) -> None:
    broker.control(ProduceRequest, error_named("TOPIC_AUTHORIZATION_FAILED"))

    async def write() -> None:
        async with writing(broker) as producer:
            sent = await producer.send("t", b"a")
            with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
                await sent
            with pytest.raises(UnsendableRecordError):
                await producer.send("t", "no bytes")

    held(write())


def test_a_full_buffer_waits_beside_the_loop(broker: MemoryBroker) -> None:
    broker.control(ProduceRequest, Action.SILENCE, times=None)
    small = {"buffer_memory": 40_000, "max_request_size": 20_000, "max_block_ms": 300}

    async def write() -> int:
        producer = writing(broker, delivery_timeout_ms=3_600_000, request_timeout_ms=500, **small)
        known = list[Any]()
        while not known:  # Afterwards only the buffer is waited for.
            with contextlib.suppress(BootstrapError, KafkaTimeoutError):
                known = await producer.partitions_for("t")
        sent = []
        with pytest.raises(KafkaTimeoutError, match="buffer_memory"):
            for _ in range(10):
                sent.append(await producer.send("t", b"x" * 10_000, partition=0))
        turns = 0
        while turns < 10:
            await asyncio.sleep(0)
            turns += 1
        await producer.close(0)
        failed = await asyncio.gather(*sent, return_exceptions=True)
        assert all(isinstance(each, KafkaError) for each in failed)
        return turns

    assert held(write()) == 10


def test_columns_flush_and_partitions(broker: MemoryBroker, logs: list[PartitionLog]) -> None:
    async def write() -> int:
        async with writing(broker) as producer:
            await producer.send_columns("t", pa.table({"value": ["a", "b"], "partition": [0, 0]}))
            sent = await producer.send("t", b"c", partition=0)
            await producer.flush()
            assert sent.done() or (await sent).offset == 2
            return len(await producer.partitions_for("t"))

    assert held(write()) == 2
    assert values(logs[0]) == [b"a", b"b", b"c"]


def test_a_transaction_ends_after_a_send_that_waits(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    answers = broker.hold(MetadataRequest)

    async def write() -> None:
        async with writing(broker, transactional_id="x") as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            sending = asyncio.create_task(producer.send("t", b"a", partition=0))
            await asyncio.to_thread(broker.wait_for, MetadataRequest)
            ending = asyncio.create_task(producer.commit_transaction())
            await asyncio.sleep(0)
            answers.release()
            await asyncio.gather(sending, ending)

    held(write())
    assert values(logs[0]) == [b"a"]


def test_transactions(broker: MemoryBroker) -> None:
    async def write() -> None:
        async with writing(broker, transactional_id="x") as producer:
            with pytest.raises(TransactionStateError):
                await producer.begin_transaction()
            await producer.init_transactions()
            await producer.begin_transaction()
            await producer.send("t", b"kept", partition=0)
            await producer.commit_transaction()
            await producer.begin_transaction()
            await producer.send("t", b"dropped", partition=0)
            await producer.abort_transaction()

    held(write())
