"""Kafka's consumer, with Arrow records: https://kafka.apache.org/documentation/#consumerapi."""

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import Concatenate, Never, ParamSpec, TypeVar, overload

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
from spark_kafka_source.net import TokenProvider, run
from spark_kafka_source.records import COLUMNS_WITH_HEADERS
from spark_kafka_source.spelling import spelt
from spark_kafka_source.topic_partition import TopicPartition

_CLOSE_MS = 30_000

P = ParamSpec("P")
R = TypeVar("R")


def _by_one_thread(
    method: "Callable[Concatenate[KafkaConsumer, P], R]",
) -> "Callable[Concatenate[KafkaConsumer, P], R]":
    @wraps(method)
    def checked(self: "KafkaConsumer", /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._one_thread.used_here(), spelt(self._calls.spelling):
            return method(self, *args, **kwargs)

    return checked


@used_where_made
class KafkaConsumer:
    """Read topics as Arrow, alone or as a member of a group.

        with KafkaConsumer(bootstrap_servers="localhost:9092", group_id="g") as consumer:
            consumer.subscribe(["events"])
            table = consumer.poll(timeout_ms=1000).to_arrow()

    The settings have Kafka's names, with underscores. One thread at a time may use the consumer.
    Only `wakeup` may be called from another thread. After a fork, the child needs a consumer of its
    own: every call raises `ForkedError`. Raises `ConfigurationError` for settings that cannot be
    used.

    `key_deserializer` and `value_deserializer` are functions of the bytes, of the topic and the
    bytes, or of the topic, the headers and the bytes; objects with such a method `deserialize`; or
    names of Kafka's own, as `StringDeserializer`. `poll` calls them, and iterated records show what
    they return.

    `columns` names the Arrow columns, in order. The default is the eight columns of the Spark
    source. With `value_format` and `key_format`, and Spark's other options for typed values, the
    consumer decodes values: into Arrow columns, and into dicts for iterated records.
    `assignors` are your own objects, in place of `partition_assignment_strategy`; see `Assignor`.
    The list may have names of Kafka's assignors, too. `listener` hears of all
    rebalances; see `ConsumerRebalanceListener`. `metric_reporters` get the figures of `metrics`;
    see `MetricsReporter`.
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
        refuse_positional("KafkaConsumer", positional)
        given = Given(
            key_deserializer,
            value_deserializer,
            columns,
            assignors,
            listener,
            metric_reporters,
            token_provider,
        )
        self._calls = ConsumerCalls(self, given, configuration)
        self._one_thread = OneUser("thread", threading.get_ident)

    def __enter__(self) -> "KafkaConsumer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- what to read ------------------------------------------------------------------------------

    @_by_one_thread
    def subscribe(
        self,
        topics: Iterable[str] = (),
        *,
        pattern: str | re.Pattern[str] | None = None,
        listener: RebalanceListener | None = None,
        server_pattern: str | None = None,
    ) -> None:
        """Read these topics, or topics whose whole names match a pattern, from the next poll on.

        With `group_id` the group divides the partitions. Without, this consumer reads all of them.
        The call replaces an earlier subscription, and cannot be mixed with `assign`. The
        coordinator matches `server_pattern`, in RE2's syntax. It needs `group_protocol` `consumer`
        (KIP-848), and raises `ConfigurationError` without.

        `listener` takes the place of the one that the consumer was made with. Raises
        `ConfigurationError` for an object that is no listener, and for one without `group_id`.
        """
        self._calls.subscribe(
            self, topics, pattern=pattern, listener=listener, server_pattern=server_pattern
        )

    @_by_one_thread
    def assign(self, topic_partitions: OneOrMany) -> None:
        """Read only these partitions, whatever the group's other members read."""
        self._calls.assign(topic_partitions)

    @_by_one_thread
    def unsubscribe(self) -> None:
        """Stop reading, and leave the group."""
        run(self._calls.unsubscribe())

    def subscription(self) -> set[str]:
        """Return the subscribed topics, or the known topics that match the pattern."""
        return self._calls.subscription()

    def assignment(self) -> set[TopicPartition]:
        """Return the partitions that the consumer reads now."""
        return self._calls.assignment()

    # -- reading -----------------------------------------------------------------------------------

    @_by_one_thread
    def poll(self, timeout_ms: int = 1_000) -> ConsumerRecords:
        """Return the next records, up to `max_poll_records`; wait for some up to `timeout_ms`.

        Silent brokers and commits do not prolong the call. A rebalance listener and deserializers
        do. Positions move behind the records.

        Raises `LocalError` for a negative time and within a callback, `NoOffsetError`, kinds of
        `RecordsLostError` if `auto_offset_reset` is `none`, `CorruptRecordError`, `BrokerError`,
        `WakeupError`, and errors of the rebalance listener. Raises `RecordDeserializationError` for
        a record that a deserializer refuses. With `value_format`, raises `BadRecordError` and
        errors of schema lookups. The records before a bad one are returned first. The position
        stays then, and the next call tries again. Call `poll` at least every
        `max_poll_interval_ms`.
        """
        self._one_thread.refuse_within_another("poll()")
        return run(self._calls.poll(timeout_ms))

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Yield records one by one, from one poll after another, without end.

        The position moves with each record, so a commit covers only the yielded records. After a
        stop in the middle of a poll, or an error, a later iteration goes on there.
        """
        while True:
            yield from one_by_one(self.poll(), self._calls.positions)

    def wakeup(self) -> None:
        """End the call that another thread waits in, or the next call that waits.

        `poll`, `commit`, `committed`, `position` and all other calls that wait raise
        `WakeupError`. Only `close` and `unsubscribe` go on.
        """
        self._calls.wakeup()

    # -- the group ---------------------------------------------------------------------------------

    def enforce_rebalance(self, reason: str = "rebalance enforced by the user") -> None:
        """Make the group rebalance, from the next poll on (KIP-568)."""
        self._calls.enforce_rebalance(reason)

    def group_metadata(self) -> Member | None:
        """Return this consumer's member identity, or None outside of a generation."""
        return self._calls.group_metadata()

    # -- positions ---------------------------------------------------------------------------------

    @_by_one_thread
    def pause(self, *topic_partitions: OneOrMany) -> None:
        """Return no records of these partitions until `resume`, or until they are revoked.

        Like the other methods, it takes partitions one by one or as a collection.
        """
        self._calls.pause(*topic_partitions)

    @_by_one_thread
    def resume(self, *topic_partitions: OneOrMany) -> None:
        """Return records of these partitions again."""
        self._calls.pause(*topic_partitions, paused=False)

    def paused(self) -> set[TopicPartition]:
        """Return the paused partitions."""
        return self._calls.paused()

    @overload
    def seek(
        self,
        /,
        topic_partition: TopicPartition,
        offset: int | OffsetAndMetadata,
        leader_epoch: int = -1,
    ) -> None: ...

    @overload
    def seek(self, /, topic_partition: Offsets) -> None: ...

    @_by_one_thread
    def seek(
        self,
        topic_partition: TopicPartition | Offsets,
        offset: int | OffsetAndMetadata | None = None,
        leader_epoch: int = -1,
    ) -> None:
        """Go on at this offset. With its leader epoch, a truncated log is noticed.

        For several partitions, give a dict of offsets by partition, as `commit` takes it. An
        `OffsetAndMetadata` stands for its offset and its leader epoch. Raises `LocalError` for an
        offset below 0 and for a partition that is not assigned; no position has moved then.
        """
        self._calls.seek(topic_partition, offset, leader_epoch)

    @_by_one_thread
    def seek_to_beginning(self, *topic_partitions: OneOrMany) -> None:
        """Go on at the first offset of these partitions, or of all assigned ones."""
        self._calls.seek_to_beginning(*topic_partitions)

    @_by_one_thread
    def seek_to_end(self, *topic_partitions: OneOrMany) -> None:
        """Go on after the last record of these partitions, or of all assigned ones."""
        self._calls.seek_to_end(*topic_partitions)

    @overload
    def position(
        self, /, topic_partition: TopicPartition, timeout_ms: int | None = None
    ) -> int: ...

    @overload
    def position(
        self, /, topic_partition: Iterable[TopicPartition], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]: ...

    @_by_one_thread
    def position(
        self, topic_partition: OneOrMany, timeout_ms: int | None = None
    ) -> int | dict[TopicPartition, int]:
        """Return the offset of the next record. Ask for a position that is not known yet.

        For several partitions, returns the offsets by partition; all that are not known are asked
        for at once. Raises `KafkaTimeoutError`, `NoOffsetError`.
        """
        return run(self._calls.position(topic_partition, timeout_ms))

    def current_lag(self, topic_partition: TopicPartition) -> int | None:
        """Return the number of offsets from the position to the last known end, or None."""
        return self._calls.current_lag(topic_partition)

    # -- what there is -----------------------------------------------------------------------------

    @_by_one_thread
    def list_topics(self, timeout_ms: int | None = None) -> dict[str, Topic]:
        """Return all topics that this user may see, with their partitions' leaders."""
        return run(self._calls.list_topics(timeout_ms))

    @_by_one_thread
    def partitions_for(self, topic: str, timeout_ms: int | None = None) -> list[PartitionInfo]:
        """Return the partitions of a topic. Raises `BrokerError` if there is no such topic.

        Each is a `TopicPartition` that has its leader and its replicas, too.
        """
        return run(self._calls.partitions_for(topic, timeout_ms))

    @_by_one_thread
    def beginning_offsets(
        self, topic_partitions: OneOrMany, timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Return the first offset that each partition still has."""
        return run(self._calls.beginning_offsets(topic_partitions, timeout_ms))

    @_by_one_thread
    def end_offsets(
        self, topic_partitions: OneOrMany, timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Return each partition's offset after the last record that `isolation_level` shows."""
        return run(self._calls.end_offsets(topic_partitions, timeout_ms))

    @_by_one_thread
    def offsets_for_times(
        self, timestamps_ms: Mapping[TopicPartition, int], timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first offset at or after a time, in ms since the epoch, or None."""
        return run(self._calls.offsets_for_times(timestamps_ms, timeout_ms))

    # -- offsets of the group ----------------------------------------------------------------------

    @_by_one_thread
    def commit(
        self,
        offsets: Offsets | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        """Commit these offsets, of the next records to read, or all positions, and wait.

        Raises `CommitFailedError` if the group has rebalanced meanwhile, `BrokerError`,
        `KafkaTimeoutError`.
        """
        run(self._calls.commit(offsets, timeout_ms))

    @_by_one_thread
    def commit_async(
        self,
        offsets: Offsets | None = None,
        callback: CommitCallback | None = None,
    ) -> None:
        """Commit without waiting. Commits keep their order.

        The request goes out at once if the coordinator is known and connected, else with a later
        call. A later `poll`, `commit` or `close` calls `callback` with the result.
        """
        self._calls.commit_async(offsets, callback)

    @_by_one_thread
    def committed(
        self, topic_partitions: OneOrMany, timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the group's last committed offsets, None for partitions without one."""
        return run(self._calls.committed(topic_partitions, timeout_ms))

    # -- the end -----------------------------------------------------------------------------------

    def metrics(self) -> dict[str, float]:
        """Return counts and rates by Kafka's names, for partitions as `topic-0.records-lag`.

        Any thread may call it at any time.
        """
        return self._calls.metrics()

    def close(self, timeout_ms: int = _CLOSE_MS) -> None:
        """Commit if `enable_auto_commit` is set, leave the group, and close all connections.

        Waits up to `timeout_ms` milliseconds for the commit and for the group's answers. The
        consumer is closed after that in any case. A commit that fails is logged. A second call
        does nothing. Raises `LocalError` if another thread uses the consumer, and the errors of
        the listener and of commit callbacks.
        """
        if self._one_thread.is_closed:
            return
        with self._one_thread.used_here(), spelt(self._calls.spelling):
            try:
                run(self._calls.close(timeout_ms))
            finally:
                self._one_thread.is_closed = True
