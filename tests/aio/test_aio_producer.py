"""What differs in an `AIOProducer`: a call that waits lets other tasks go on."""

import asyncio
import inspect
from typing import Any

import pyarrow as pa
import pytest

from spark_kafka_source import AIOProducer, KafkaProducer
from spark_kafka_source.errors import KafkaError, KafkaTimeoutError, error_named
from spark_kafka_source.producer import UnsendableRecordError
from spark_kafka_source.producer.transaction import TransactionStateError
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.protocol.messages.produce import ProduceRequest
from tests.memory_broker import Action, MemoryBroker, PartitionLog
from tests.producer.writing import values

MOST_SECONDS = 30
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
    by_another = {"begin_at", "knows_id", "prepare_transaction", "sends_at_once", "of"}
    for name, there in inspect.getmembers(KafkaProducer, callable):
        if name.startswith("_") or name in by_another:
            continue
        here = inspect.signature(getattr(AIOProducer, name)).parameters
        assert list(here) == [
            each for each in inspect.signature(there).parameters if each != "on_delivery"
        ], name


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
        producer = writing(broker, delivery_timeout_ms=2_000, request_timeout_ms=500, **small)
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
