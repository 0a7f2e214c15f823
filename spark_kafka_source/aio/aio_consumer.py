"""Kafka's consumer on asyncio. See `KafkaConsumer` for each call: this one does the same."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import closing
from typing import Any, Never, TypeVar, overload
from uuid import UUID

from spark_kafka_source.aio.hold import hold, turns
from spark_kafka_source.client import Topic
from spark_kafka_source.client.cluster import PartitionInfo
from spark_kafka_source.consumer.arguments import Offsets, OneOrMany
from spark_kafka_source.consumer.consumer import CLOSE_MS, Consumer
from spark_kafka_source.consumer.consumer_records import ConsumerRecord, ConsumerRecords, one_by_one
from spark_kafka_source.fetch.offsets import OffsetAndTimestamp
from spark_kafka_source.forks import used_where_made
from spark_kafka_source.groups import OffsetAndMetadata
from spark_kafka_source.net import Conversation
from spark_kafka_source.spelling import spelt
from spark_kafka_source.topic_partition import TopicPartition

T = TypeVar("T")


def _task() -> "asyncio.Task[Any] | None":
    """Return the present task; None outside of a loop."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


@used_where_made
class AIOConsumer(Consumer):
    """Read topics as Arrow in an asyncio program, alone or as a member of a group.

        async with AIOConsumer(bootstrap_servers="localhost:9092", group_id="g") as consumer:
            consumer.subscribe(["events"])
            async for record in consumer:
                print(record.value)

    Settings, calls and errors are those of `KafkaConsumer`; calls that wait are awaited, and other
    tasks go on meanwhile. One task at a time may use the consumer. Only `wakeup` may be called from
    another one. A task that is cancelled in a call loses no record: the next `poll` returns it.

    The methods of a listener may be `async`, and await calls of the consumer. Deserializers and
    callbacks of commits are plain functions, and the loop stands still while one runs. A thread of
    its own keeps the consumer in its group while the loop is busy.
    """

    _user_kind = "task"
    _present_user = staticmethod(_task)
    _listener_may_wait = True

    async def _wait(self, conversation: Conversation[T]) -> T:
        """Hold a conversation. Other tasks go on until it is over."""
        with closing(conversation), self._user.used_here(), spelt(self._config.spelling):
            await turns.give()  # Before: a cancellation after it would lose its result.
            return await hold(conversation)

    async def __aenter__(self) -> "AIOConsumer":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def unsubscribe(self, *more: Never, topics: None = None) -> None:
        """Stop reading, and leave the group."""
        await self._wait(self._unsubscribe(more or topics))

    async def poll(self, timeout_ms: int = 1_000) -> ConsumerRecords:
        """Return the next records, up to `max_poll_records`; wait for some up to `timeout_ms`."""
        return await self._wait(self._poll(timeout_ms))

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        """Yield records one by one, from one poll after another, without end.

        The position moves with each record, so a commit covers only the yielded records.
        """
        while True:
            for record in one_by_one(await self.poll(), self._positions):
                yield record
                await turns.give()  # The position is behind this record, and before the next.

    @overload
    async def position(
        self, /, topic_partition: TopicPartition, timeout_ms: int | None = None
    ) -> int: ...

    @overload
    async def position(
        self, /, topic_partition: Iterable[TopicPartition], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]: ...

    async def position(
        self, topic_partition: OneOrMany, timeout_ms: int | None = None
    ) -> int | dict[TopicPartition, int]:
        """Return the offset of the next record. Ask for a position that is not known yet."""
        return await self._wait(self._seeking.position(topic_partition, timeout_ms))

    async def list_topics(self, timeout_ms: int | None = None) -> dict[str, Topic]:
        """Return all topics that this user may see, with their partitions' leaders."""
        return await self._wait(self._log.list_topics(timeout_ms))

    async def partitions_for(
        self, topic: str, timeout_ms: int | None = None
    ) -> list[PartitionInfo]:
        """Return the partitions of a topic. Raises `BrokerError` if there is no such topic."""
        return await self._wait(self._log.partitions_for(topic, timeout_ms))

    async def beginning_offsets(
        self, topic_partitions: OneOrMany, timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Return the first offset that each partition still has."""
        return await self._wait(self._log.beginning_offsets(topic_partitions, timeout_ms))

    async def end_offsets(
        self, topic_partitions: OneOrMany, timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Return each partition's offset after the last record that `isolation_level` shows."""
        return await self._wait(self._log.end_offsets(topic_partitions, timeout_ms))

    async def offsets_for_times(
        self, timestamps_ms: Mapping[TopicPartition, int], timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first offset at or after a time, in ms since the epoch, or None."""
        return await self._wait(self._log.offsets_for_times(timestamps_ms, timeout_ms))

    async def commit(self, offsets: Offsets | None = None, timeout_ms: int | None = None) -> None:
        """Commit these offsets, of the next records to read, or all positions, and wait."""
        await self._wait(self._commits.commit(offsets, timeout_ms))

    async def committed(
        self, topic_partitions: OneOrMany, timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the group's last committed offsets, None for partitions without one."""
        return await self._wait(self._commits.committed(topic_partitions, timeout_ms))

    async def client_instance_id(self, timeout_ms: int | None = None) -> UUID:
        """Return the id by which brokers know the metrics of this consumer (KIP-714)."""
        return await self._wait(self._client_instance_id(timeout_ms))

    async def close(self, timeout_ms: int = CLOSE_MS) -> None:
        """Commit if `enable_auto_commit` is set, leave the group, and close all connections."""
        if not self._user.is_closed:
            await self._wait(self._close(timeout_ms))
