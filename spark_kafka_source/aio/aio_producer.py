"""Kafka's producer on asyncio. See `KafkaProducer` for each call: this one does the same."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

import pyarrow as pa

from spark_kafka_source.aio.hold import turns
from spark_kafka_source.aio.ordered_calls import OrderedCalls
from spark_kafka_source.client.cluster import PartitionInfo
from spark_kafka_source.groups import Member, OffsetAndMetadata
from spark_kafka_source.producer.delivery import RecordMetadata
from spark_kafka_source.producer.given_columns import HasArrowArray, HasArrowStream
from spark_kafka_source.producer.kafka_producer import KafkaProducer
from spark_kafka_source.producer.parcel import SendFuture
from spark_kafka_source.producer.record import check_topic
from spark_kafka_source.topic_partition import TopicPartition

T = TypeVar("T")


class AIOProducer:
    """Write records in an asyncio program.

        async with AIOProducer(bootstrap_servers="localhost:9092") as producer:
            written = await producer.send("events", b"value", key=b"key")
            print((await written).offset)

    Settings and errors are those of `KafkaProducer`, whose thread sends the records. Calls that may
    wait, for metadata or for room, wait in a few other threads, those of one topic one after the
    other. So the records of a topic keep their order, and a topic that is missing holds up no
    other. With a `transactional.id` all of these calls are made one after the other: a transaction
    ends after the sends that were begun before. A call that is cancelled while it waits in a thread
    goes on: its record may still be written.
    """

    def __init__(self, *positional: Any, **configuration: Any) -> None:
        self._producer = KafkaProducer(*positional, **configuration)
        self._calls = OrderedCalls()
        self._has_one_queue = False
        # The threads of the loop may all wait for records.
        self._closing = ThreadPoolExecutor(thread_name_prefix="close of a producer")

    async def __aenter__(self) -> "AIOProducer":
        return self

    async def __aexit__(self, *error: Any) -> None:
        close = partial(self._producer.__exit__, *error)
        await asyncio.get_running_loop().run_in_executor(self._closing, close)

    async def send(
        self,
        topic: str,
        value: Any = None,
        *,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Iterable[tuple[str, bytes | None]] | None = None,
    ) -> "asyncio.Future[RecordMetadata]":
        """Send one record. Await the returned future for its offset, or for its error.

        Waits up to `max.block.ms` for the topic's partitions and for room in `buffer.memory`.
        """
        check_topic(topic)
        send = partial(
            self._producer.send,
            topic,
            value,
            key=key,
            partition=partition,
            timestamp_ms=timestamp_ms,
            headers=headers,
        )
        waits = not self._producer.sends_at_once(topic, partition)
        if waits or self._queue_of(topic) in self._calls:
            return _awaitable(await self._call(send, topic))
        sent = _awaitable(send())
        await turns.give()  # After: tasks that send at the same time keep their order.
        return sent

    async def send_and_wait(self, topic: str, value: Any = None, **more: Any) -> RecordMetadata:
        """Send one record, and wait until it is written. Takes the arguments of `send`."""
        return await (await self.send(topic, value, **more))

    async def send_columns(
        self, topic: str | None, columns: pa.Table | pa.RecordBatch | HasArrowStream | HasArrowArray
    ) -> None:
        """Send all rows of Arrow columns, and wait until they are written."""
        sent = await self._call(partial(self._producer.send_columns, topic, columns), topic)
        await asyncio.to_thread(sent.result)

    async def flush(self, timeout_seconds: float | None = None) -> None:
        """Send all records so far at once, and wait until each is written or has failed.

        It concerns each `send` that has returned. It waits for no `send` of another task that still
        waits, for example for a topic.
        """
        await asyncio.to_thread(self._producer.flush, timeout_seconds)

    async def close(self, timeout_seconds: float | None = None) -> None:
        """Wait until all records are sent, at most so long, and fail the rest. Never raises."""
        close = partial(self._producer.close, timeout_seconds)
        await asyncio.get_running_loop().run_in_executor(self._closing, close)

    async def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """Return the partitions of a topic, in order."""
        return await self._call(partial(self._producer.partitions_for, topic), topic)

    def metrics(self) -> dict[str, float]:
        """Return counts and rates under Kafka's names; times are in milliseconds."""
        return self._producer.metrics()

    async def client_instance_id(self, timeout_seconds: float | None = None) -> UUID:
        """Return the id by which brokers know the metrics of this producer (KIP-714)."""
        return await asyncio.to_thread(self._producer.client_instance_id, timeout_seconds)

    # -- transactions ------------------------------------------------------------------------------

    async def init_transactions(self) -> None:
        """Take the `transactional.id`: fence the producer that had it, abort its transaction."""
        self._has_one_queue = True  # It takes no record before.
        await self._call(self._producer.init_transactions)

    async def begin_transaction(self) -> None:
        """Begin a transaction. It holds all records that are sent from now on."""
        await self._call(self._producer.begin_transaction)

    async def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group_metadata: Member | None
    ) -> None:
        """Commit a consumer's positions with the transaction."""
        await self._call(
            partial(self._producer.send_offsets_to_transaction, offsets, group_metadata)
        )

    async def commit_transaction(self) -> None:
        """Wait for all records, and commit the transaction."""
        await self._call(self._producer.commit_transaction)

    async def abort_transaction(self) -> None:
        """Abort the transaction: readers with `read_committed` never see its records."""
        await self._call(self._producer.abort_transaction)

    async def _call(self, call: Callable[[], T], topic: str | None = None) -> T:
        """Make a call in a thread, after all earlier ones of its queue."""
        return await self._calls.call(self._queue_of(topic), call)

    def _queue_of(self, topic: str | None) -> str | None:
        return None if self._has_one_queue else topic


def _awaitable(sent: SendFuture) -> "asyncio.Future[RecordMetadata]":
    loop = asyncio.get_running_loop()
    awaitable: asyncio.Future[RecordMetadata] = loop.create_future()

    def set_result(written: RecordMetadata | Exception | None) -> None:
        if awaitable.done():  # It was cancelled.
            return
        if isinstance(written, Exception):
            awaitable.set_exception(written)
        elif written is not None:
            awaitable.set_result(written)

    def tell(metadata: RecordMetadata | None, error: Exception | None) -> None:
        with suppress(RuntimeError):  # The loop is closed: nobody waits any more.
            loop.call_soon_threadsafe(set_result, error or metadata)

    sent.tell(tell)
    return awaitable
