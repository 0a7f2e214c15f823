"""Kafka's consumer on asyncio. See `KafkaConsumer` for each call: this one does the same."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from functools import wraps
from typing import Any, Concatenate, Never, ParamSpec, TypeVar, overload

from spark_kafka_source.aio.hold import hold
from spark_kafka_source.client import Topic
from spark_kafka_source.client.arguments import refuse_positional
from spark_kafka_source.client.metrics import MetricsReporter
from spark_kafka_source.client.partition_info import PartitionInfo
from spark_kafka_source.consumer.calls import ConsumerCalls, Given
from spark_kafka_source.consumer.committer import CommitCallback
from spark_kafka_source.consumer.consumer_records import ConsumerRecord, ConsumerRecords
from spark_kafka_source.consumer.deserializers import Deserializer
from spark_kafka_source.consumer.one_by_one import one_by_one
from spark_kafka_source.consumer.one_user import OneUser
from spark_kafka_source.consumer.partition_arguments import Offsets, OneOrMany
from spark_kafka_source.consumer.rebalance_listener import RebalanceListener
from spark_kafka_source.fetch.offsets import OffsetAndTimestamp
from spark_kafka_source.forks import OwnProcess, used_where_made
from spark_kafka_source.groups import Member, OffsetAndMetadata
from spark_kafka_source.groups.assignors import Assignor
from spark_kafka_source.net import TokenProvider
from spark_kafka_source.records import COLUMNS_WITH_HEADERS
from spark_kafka_source.spelling import spelt
from spark_kafka_source.topic_partition import TopicPartition

_CLOSE_MS = 30_000

P = ParamSpec("P")
R = TypeVar("R")


def _by_one_task(
    method: "Callable[Concatenate[AIOConsumer, P], Coroutine[Any, Any, R]]",
) -> "Callable[Concatenate[AIOConsumer, P], Coroutine[Any, Any, R]]":
    @wraps(method)
    async def checked(self: "AIOConsumer", /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._one_task.used_here(), spelt(self._calls.spelling):
            return await method(self, *args, **kwargs)

    return checked


def _at_once(
    method: "Callable[Concatenate[AIOConsumer, P], R]",
) -> "Callable[Concatenate[AIOConsumer, P], R]":
    @wraps(method)
    def checked(self: "AIOConsumer", /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._one_task.used_here(), spelt(self._calls.spelling):
            return method(self, *args, **kwargs)

    return checked


def _task() -> "asyncio.Task[Any] | None":
    """Return the present task; None outside of a loop."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


@used_where_made
class AIOConsumer:
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

    def __init__(
        self,
        *positional: Never,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
        columns: Iterable[str] = COLUMNS_WITH_HEADERS,
        assignors: Iterable[Assignor | str] | None = None,
        listener: RebalanceListener | None = None,
        metric_reporters: Iterable[MetricsReporter] | None = None,
        token_provider: TokenProvider | None = None,
        **configuration: object,
    ) -> None:
        self._process = OwnProcess("consumer")
        refuse_positional("AIOConsumer", positional)
        given = Given(
            key_deserializer,
            value_deserializer,
            columns,
            assignors,
            listener,
            metric_reporters,
            token_provider,
        )
        self._calls = ConsumerCalls(self, given, configuration, may_wait=True)
        self._one_task = OneUser("task", _task)

    async def __aenter__(self) -> "AIOConsumer":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # -- what to read ------------------------------------------------------------------------------

    @_at_once
    def subscribe(
        self,
        topics: Iterable[str] = (),
        *,
        pattern: str | re.Pattern[str] | None = None,
        listener: RebalanceListener | None = None,
        server_pattern: str | None = None,
    ) -> None:
        """Read these topics, or topics that match a pattern, from the next poll on."""
        self._calls.subscribe(
            self, topics, pattern=pattern, listener=listener, server_pattern=server_pattern
        )

    @_at_once
    def assign(self, topic_partitions: OneOrMany) -> None:
        """Read only these partitions, whatever the group's other members read."""
        self._calls.assign(topic_partitions)

    @_by_one_task
    async def unsubscribe(self) -> None:
        """Stop reading, and leave the group."""
        await hold(self._calls.unsubscribe())

    def subscription(self) -> set[str]:
        """Return the subscribed topics, or the known topics that match the pattern."""
        return self._calls.subscription()

    def assignment(self) -> set[TopicPartition]:
        """Return the partitions that the consumer reads now."""
        return self._calls.assignment()

    # -- reading -----------------------------------------------------------------------------------

    @_by_one_task
    async def poll(self, timeout_ms: int = 1_000) -> ConsumerRecords:
        """Return the next records, up to `max_poll_records`; wait for some up to `timeout_ms`."""
        self._one_task.refuse_within_another("poll()")
        return await hold(self._calls.poll(timeout_ms))

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        """Yield records one by one, from one poll after another, without end.

        The position moves with each record, so a commit covers only the yielded records.
        """
        while True:
            for record in one_by_one(await self.poll(), self._calls.positions):
                yield record

    def wakeup(self) -> None:
        """End the call that waits, or the next one: it raises `WakeupError`. For any thread."""
        self._calls.wakeup()

    # -- the group ---------------------------------------------------------------------------------

    def enforce_rebalance(self, reason: str = "rebalance enforced by the user") -> None:
        """Make the group rebalance, from the next poll on (KIP-568)."""
        self._calls.enforce_rebalance(reason)

    def group_metadata(self) -> Member | None:
        """Return this consumer's member identity, or None outside of a generation."""
        return self._calls.group_metadata()

    # -- positions ---------------------------------------------------------------------------------

    @_at_once
    def pause(self, *topic_partitions: OneOrMany) -> None:
        """Return no records of these partitions until `resume`, or until they are revoked."""
        self._calls.pause(*topic_partitions)

    @_at_once
    def resume(self, *topic_partitions: OneOrMany) -> None:
        """Return records of these partitions again."""
        self._calls.pause(*topic_partitions, paused=False)

    def paused(self) -> set[TopicPartition]:
        """Return the paused partitions."""
        return self._calls.paused()

    @_at_once
    def seek(
        self,
        topic_partition: TopicPartition | Offsets,
        offset: int | OffsetAndMetadata | None = None,
        leader_epoch: int = -1,
    ) -> None:
        """Go on at this offset, or at the offset of each partition in a dict."""
        self._calls.seek(topic_partition, offset, leader_epoch)

    @_at_once
    def seek_to_beginning(self, *topic_partitions: OneOrMany) -> None:
        """Go on at the first offset of these partitions, or of all assigned ones."""
        self._calls.seek_to_beginning(*topic_partitions)

    @_at_once
    def seek_to_end(self, *topic_partitions: OneOrMany) -> None:
        """Go on after the last record of these partitions, or of all assigned ones."""
        self._calls.seek_to_end(*topic_partitions)

    @overload
    async def position(
        self, /, topic_partition: TopicPartition, timeout_ms: int | None = None
    ) -> int: ...

    @overload
    async def position(
        self, /, topic_partition: Iterable[TopicPartition], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]: ...

    @_by_one_task
    async def position(
        self, topic_partition: OneOrMany, timeout_ms: int | None = None
    ) -> int | dict[TopicPartition, int]:
        """Return the offset of the next record. Ask for a position that is not known yet."""
        return await hold(self._calls.position(topic_partition, timeout_ms))

    def current_lag(self, topic_partition: TopicPartition) -> int | None:
        """Return the number of offsets from the position to the last known end, or None."""
        return self._calls.current_lag(topic_partition)

    # -- what there is -----------------------------------------------------------------------------

    @_by_one_task
    async def list_topics(self, timeout_ms: int | None = None) -> dict[str, Topic]:
        """Return all topics that this user may see, with their partitions' leaders."""
        return await hold(self._calls.list_topics(timeout_ms))

    @_by_one_task
    async def partitions_for(
        self, topic: str, timeout_ms: int | None = None
    ) -> list[PartitionInfo]:
        """Return the partitions of a topic. Raises `BrokerError` if there is no such topic."""
        return await hold(self._calls.partitions_for(topic, timeout_ms))

    @_by_one_task
    async def beginning_offsets(
        self, topic_partitions: OneOrMany, timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Return the first offset that each partition still has."""
        return await hold(self._calls.beginning_offsets(topic_partitions, timeout_ms))

    @_by_one_task
    async def end_offsets(
        self, topic_partitions: OneOrMany, timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Return each partition's offset after the last record that `isolation_level` shows."""
        return await hold(self._calls.end_offsets(topic_partitions, timeout_ms))

    @_by_one_task
    async def offsets_for_times(
        self, timestamps_ms: Mapping[TopicPartition, int], timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first offset at or after a time, in ms since the epoch, or None."""
        return await hold(self._calls.offsets_for_times(timestamps_ms, timeout_ms))

    # -- offsets of the group ----------------------------------------------------------------------

    @_by_one_task
    async def commit(self, offsets: Offsets | None = None, timeout_ms: int | None = None) -> None:
        """Commit these offsets, of the next records to read, or all positions, and wait."""
        await hold(self._calls.commit(offsets, timeout_ms))

    @_at_once
    def commit_async(
        self, offsets: Offsets | None = None, callback: CommitCallback | None = None
    ) -> None:
        """Commit without waiting. The consumer's next calls send it, and call `callback`."""
        self._calls.commit_async(offsets, callback)

    @_by_one_task
    async def committed(
        self, topic_partitions: OneOrMany, timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the group's last committed offsets, None for partitions without one."""
        return await hold(self._calls.committed(topic_partitions, timeout_ms))

    # -- the end -----------------------------------------------------------------------------------

    def metrics(self) -> dict[str, float]:
        """Return counts and rates by Kafka's names, for partitions as `topic-0.records-lag`."""
        return self._calls.metrics()

    async def close(self, timeout_ms: int = _CLOSE_MS) -> None:
        """Commit if `enable_auto_commit` is set, leave the group, and close all connections."""
        if self._one_task.is_closed:
            return
        with self._one_task.used_here(), spelt(self._calls.spelling):
            try:
                await hold(self._calls.close(timeout_ms))
            finally:
                self._one_task.is_closed = True
