"""Kafka's consumer, with Arrow records: https://kafka.apache.org/documentation/#consumerapi."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import wraps
from typing import Concatenate, Never, ParamSpec, TypeVar, overload

# The first consumer with typed values, or with dead letters, imports what they need.
from spark_kafka_source import consumer, dead_letters
from spark_kafka_source.client import KafkaClient, Topic
from spark_kafka_source.client.arguments import refuse_positional
from spark_kafka_source.client.metrics import MetricsReporter, read
from spark_kafka_source.client.partition_info import PartitionInfo
from spark_kafka_source.client.reporting import METRIC_REPORTERS, Reporting, given_reporters
from spark_kafka_source.client.serde_arguments import argument_of
from spark_kafka_source.consumer.background import Background
from spark_kafka_source.consumer.column_names import checked_columns
from spark_kafka_source.consumer.commits import Commits
from spark_kafka_source.consumer.committer import Commit, CommitCallback, Committer
from spark_kafka_source.consumer.consumer_config import ConsumerConfig
from spark_kafka_source.consumer.consumer_records import ConsumerRecord, ConsumerRecords, Taken
from spark_kafka_source.consumer.deserializers import Deserializer, Deserializers
from spark_kafka_source.consumer.first_contact import FirstContact
from spark_kafka_source.consumer.log_lookups import LogLookups
from spark_kafka_source.consumer.metrics import LAG, Metrics, PartitionMetrics
from spark_kafka_source.consumer.one_by_one import one_by_one
from spark_kafka_source.consumer.one_thread import OneThread
from spark_kafka_source.consumer.partition_arguments import Offsets, OneOrMany, is_one
from spark_kafka_source.consumer.partition_arguments import topic_partition as checked_partition
from spark_kafka_source.consumer.partition_arguments import topic_partitions as checked_partitions
from spark_kafka_source.consumer.reading import Reading
from spark_kafka_source.consumer.rebalance_listener import (
    GivenListener,
    RebalanceListener,
    given_listener,
)
from spark_kafka_source.consumer.seeking import Seeking
from spark_kafka_source.consumer.subscription import Subscription
from spark_kafka_source.consumer.unread import Decoding
from spark_kafka_source.consumer.waiting import Waiting
from spark_kafka_source.errors import ConfigurationError, LocalError
from spark_kafka_source.fetch.fetcher import FetchDone
from spark_kafka_source.fetch.offset_reset import EARLIEST, LATEST
from spark_kafka_source.fetch.offsets import OffsetAndEpoch, OffsetAndTimestamp
from spark_kafka_source.fetch.positions import Position
from spark_kafka_source.forks import OwnProcess, used_where_made
from spark_kafka_source.groups import Member, OffsetAndMetadata
from spark_kafka_source.groups.assignors import Assignor
from spark_kafka_source.net import Deadline, TokenProvider
from spark_kafka_source.records import COLUMNS_WITH_HEADERS
from spark_kafka_source.records.freed_memory import keep_freed_memory
from spark_kafka_source.spelling import spelt
from spark_kafka_source.topic_partition import TopicPartition
from spark_kafka_source.typed import letters_are_read

_OFFSET = "offset"
_CLOSE_MS = 30_000

P = ParamSpec("P")
R = TypeVar("R")


def _by_one_thread(
    method: "Callable[Concatenate[KafkaConsumer, P], R]",
) -> "Callable[Concatenate[KafkaConsumer, P], R]":
    @wraps(method)
    def checked(self: "KafkaConsumer", /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._one_thread.used_here(), spelt(self._config.spelling):
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
        deserializers = {
            "key": argument_of(configuration, "key_deserializer", key_deserializer),
            "value": argument_of(configuration, "value_deserializer", value_deserializer),
        }
        reporters_given = argument_of(configuration, METRIC_REPORTERS, metric_reporters)
        self._config = ConsumerConfig.from_arguments(configuration, token_provider)
        keep_freed_memory()
        self._columns = checked_columns(columns)
        with spelt(self._config.spelling):
            self._listener = self._checked_listener(listener)
            found_assignors = self._config.own_assignors(assignors, configuration)
            self._deserializers = Deserializers.of(deserializers, self._config.typed, configuration)
            reporters = given_reporters(*reporters_given, configuration, self._config.client)
        self._metrics = Metrics(self._config.sensors)
        self._client = KafkaClient(self._config.client)
        self._first_contact = FirstContact(self._client)
        self._one_thread = OneThread()
        self._waiting = Waiting()
        self._typed = self._new_typed()
        self._reading = self._new_reading()
        self._positions = self._reading.positions
        self._log_lookups = LogLookups(
            self._client, self._waiting, self._config.fetch.isolation_level
        )
        self._seeking = Seeking(self._positions, self._reading.starts, self._waiting)
        self._subscription = Subscription(
            self._client,
            self._config,
            found_assignors,
            self._positions,
            lookups=self._waiting.lookups,
            begin_commit=self._begin_commit,
            wait=self._waiting.until,
            metrics=self._metrics.group,
        )
        self._commits = Commits(
            self._config,
            self._positions,
            self._subscription,
            self._new_committer(),
            self._waiting.until,
        )
        self._of_partitions = PartitionMetrics(self._positions, self._end_of)
        self._measures = {**self._metrics.measures, **self._of_partitions.measures(self._typed)}
        client_id = self._config.client.connection.client_id
        self._reporting = Reporting(reporters, "consumer", client_id, self._measures)

    def _new_typed(self) -> "consumer.TypedDecoding | None":
        if not self._config.typed.parts:
            return None
        lookups = Background(self._waiting.wakeup)
        with spelt(self._config.spelling):
            return consumer.TypedDecoding(
                self._config.typed, self._columns_read, lookups, self._new_letters()
            )

    def _new_letters(self) -> "consumer.LetterWrites | None":
        topic = self._config.typed.bad_records_topic
        if not topic:
            return None
        destination = dead_letters.Destination(self._config.client, topic)
        writes = Background(self._waiting.wakeup)
        return consumer.LetterWrites(destination, self._client, self._waiting.lookups, writes)

    @property
    def _columns_read(self) -> tuple[str, ...]:
        # A batch can only be divided with its offsets.
        return tuple(dict.fromkeys((*self._columns, _OFFSET, *self._deserializers.columns)))

    def _new_reading(self) -> Reading:
        decoding = Decoding(
            self._columns_read,
            self._config.fetch,
            typed=self._typed,
            deserializers=self._deserializers,
        )
        return Reading(
            self._client,
            decoding,
            self._config.reset,
            self._begin_at,
            lookups=self._waiting.lookups,
            on_fetch=self._count_fetch,
            describe=self._describe_unknown,
        )

    async def _describe_unknown(self, names: list[str], deadline: Deadline) -> list[Topic]:
        return await self._subscription.describe(names, deadline)

    def _end_of(self, position: Position) -> int | None:
        committed_only = self._config.fetch.isolation_level.value
        return position.last_stable_offset if committed_only else position.high_watermark

    def _new_committer(self) -> Committer | None:
        if self._config.group is None:
            return None
        count = self._metrics.commit_ms.record
        group_id = self._config.group.group_id
        return Committer(self._client, group_id, self._waiting.commits, count)

    async def _begin_at(
        self, topic_partitions: Collection[TopicPartition], timeout_ms: int
    ) -> dict[TopicPartition, OffsetAndEpoch]:
        found = await self._commits.committed(topic_partitions, timeout_ms)
        return {each: OffsetAndEpoch(at.offset, at.leader_epoch) for each, at in found.items()}

    def _begin_commit(self, timeout_ms: int | None) -> Commit | None:
        return self._commits.begin_automatic(timeout_ms)

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
        told = self._checked_listener(listener) or self._listener
        self._subscription.begin(topics, pattern, told, server_pattern)

    def _checked_listener(self, given: RebalanceListener | None) -> GivenListener | None:
        if given is not None and self._config.group is None:
            expected = "Give it: a listener hears how a group divides the partitions"
            raise ConfigurationError("kafka.group.id", "is missing", expected)
        return given_listener("listener", given, self)

    @_by_one_thread
    def assign(self, topic_partitions: OneOrMany) -> None:
        """Read only these partitions, whatever the group's other members read."""
        partitions = checked_partitions(topic_partitions)
        if self._subscription.is_active:
            raise LocalError("Topics are subscribed: unsubscribe() first")
        letters = self._config.typed.bad_records_topic
        if letters in {each.topic for each in partitions}:
            raise letters_are_read(letters)
        self._commits.commit_consumed_async()
        self._positions.keep(partitions)
        self._follow_partitions()

    @_by_one_thread
    def unsubscribe(self) -> None:
        """Stop reading, and leave the group."""
        if not self._subscription.in_group:
            self._commits.commit_consumed_async()
        self._waiting.ignored = True
        try:
            self._subscription.end(self._deadline(None))
        finally:
            self._waiting.ignored = False
            self._follow_partitions()

    def subscription(self) -> set[str]:
        """Return the subscribed topics, or the known topics that match the pattern."""
        return self._subscription.names

    def assignment(self) -> set[TopicPartition]:
        """Return the partitions that the consumer reads now."""
        return set(self._positions.partitions)

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
        if timeout_ms < 0:
            raise LocalError(f"timeout_ms is {timeout_ms}: give 0 or more, in milliseconds")
        if not self._subscription.is_active and not self._positions:
            raise LocalError("There is nothing to read: subscribe() or assign() first")
        self._metrics.poll_began()
        self._first_contact.poll_began()
        try:
            taken = self._taken(Deadline.after_ms(timeout_ms))
        finally:
            self._metrics.poll_ended()
            self._follow_partitions()
        self._first_contact.poll_ended()
        self._metrics.records.record(sum(each.batch.num_rows for each in taken))
        return ConsumerRecords(
            taken,
            self._columns,
            self._commits.next_offsets({each.topic_partition for each in taken}),
            without_rows=None if self._typed is None else self._typed.schema,
        )

    def _taken(self, deadline: Deadline) -> list[Taken]:
        while True:
            self._waiting.raise_if_woken()
            self._waiting.step()
            self._subscription.follow()
            self._commits.attend()
            self._reading.prepare()
            taken = self._reading.take(self._config.poll.max_poll_records)
            if taken or deadline.expired:
                return taken
            self._wait(deadline)

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Yield records one by one, from one poll after another, without end.

        The position moves with each record, so a commit covers only the yielded records. After a
        stop in the middle of a poll, or an error, a later iteration goes on there.
        """
        while True:
            yield from one_by_one(self.poll(), self._positions)

    def wakeup(self) -> None:
        """End the call that another thread waits in, or the next call that waits.

        `poll`, `commit`, `committed`, `position` and all other calls that wait raise
        `WakeupError`. Only `close` and `unsubscribe` go on.
        """
        self._waiting.wake()

    def _wait(self, deadline: Deadline) -> None:
        """Wait for data, the next try, the next automatic commit or lookup, or the deadline."""
        moments = [
            deadline.at_seconds,
            self._reading.next_try_seconds(),
            self._commits.due_seconds,
            self._subscription.next_look_seconds,
        ]
        soonest_seconds = min(each for each in moments if each is not None)
        until = Deadline(soonest_seconds, deadline.timeout_ms)
        self._waiting.once(until, [*self._reading.waited_for, *self._subscription.waited_for])

    def _count_fetch(self, done: FetchDone) -> None:
        self._metrics.fetch_ms.record(done.seconds * 1000)
        self._metrics.fetched_bytes.record(done.size_bytes)

    # -- the group ---------------------------------------------------------------------------------

    def enforce_rebalance(self, reason: str = "rebalance enforced by the user") -> None:
        """Make the group rebalance, from the next poll on (KIP-568)."""
        self._subscription.rejoin(reason)

    def group_metadata(self) -> Member | None:
        """Return this consumer's member identity, or None outside of a generation."""
        return self._subscription.member()

    # -- positions ---------------------------------------------------------------------------------

    @_by_one_thread
    def pause(self, *topic_partitions: OneOrMany) -> None:
        """Return no records of these partitions until `resume`, or until they are revoked.

        Like the other methods, it takes partitions one by one or as a collection.
        """
        for each in [self._positions[each] for each in checked_partitions(*topic_partitions)]:
            each.paused = True

    @_by_one_thread
    def resume(self, *topic_partitions: OneOrMany) -> None:
        """Return records of these partitions again."""
        for each in [self._positions[each] for each in checked_partitions(*topic_partitions)]:
            each.paused = False

    def paused(self) -> set[TopicPartition]:
        """Return the paused partitions."""
        return {each.topic_partition for each in self._positions if each.paused}

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
        self._seeking.seek(topic_partition, offset, leader_epoch)

    @_by_one_thread
    def seek_to_beginning(self, *topic_partitions: OneOrMany) -> None:
        """Go on at the first offset of these partitions, or of all assigned ones."""
        self._seeking.reset(checked_partitions(*topic_partitions), EARLIEST)

    @_by_one_thread
    def seek_to_end(self, *topic_partitions: OneOrMany) -> None:
        """Go on after the last record of these partitions, or of all assigned ones."""
        self._seeking.reset(checked_partitions(*topic_partitions), LATEST)

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
        partitions = checked_partitions(topic_partition)
        found = self._seeking.offsets_of(partitions, self._or_default(timeout_ms))
        return found[partitions[0]] if is_one(topic_partition) else found

    def current_lag(self, topic_partition: TopicPartition) -> int | None:
        """Return the number of offsets from the position to the last known end, or None."""
        return self._of_partitions.lag(self._positions[checked_partition(topic_partition)])

    def _deadline(self, timeout_ms: int | None) -> Deadline:
        return Deadline.after_ms(self._or_default(timeout_ms))

    def _or_default(self, timeout_ms: int | None) -> int:
        return self._config.client.default_api_timeout_ms if timeout_ms is None else timeout_ms

    # -- what there is -----------------------------------------------------------------------------

    @_by_one_thread
    def list_topics(self, timeout_ms: int | None = None) -> dict[str, Topic]:
        """Return all topics that this user may see, with their partitions' leaders."""
        found = self._log_lookups.describe(None, self._or_default(timeout_ms))
        return {each.name: each for each in found}

    @_by_one_thread
    def partitions_for(self, topic: str, timeout_ms: int | None = None) -> list[PartitionInfo]:
        """Return the partitions of a topic. Raises `BrokerError` if there is no such topic.

        Each is a `TopicPartition` that has its leader and its replicas, too.
        """
        return self._log_lookups.partitions_of(topic, self._or_default(timeout_ms))

    @_by_one_thread
    def beginning_offsets(
        self, topic_partitions: OneOrMany, timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Return the first offset that each partition still has."""
        partitions = checked_partitions(topic_partitions)
        return self._log_lookups.beginnings(partitions, self._or_default(timeout_ms))

    @_by_one_thread
    def end_offsets(
        self, topic_partitions: OneOrMany, timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Return each partition's offset after the last record that `isolation_level` shows."""
        partitions = checked_partitions(topic_partitions)
        return self._log_lookups.ends(partitions, self._or_default(timeout_ms))

    @_by_one_thread
    def offsets_for_times(
        self, timestamps_ms: Mapping[TopicPartition, int], timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first offset at or after a time, in ms since the epoch, or None."""
        checked_partitions(timestamps_ms)
        return self._log_lookups.for_times(timestamps_ms, self._or_default(timeout_ms))

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
        self._commits.commit(offsets, self._or_default(timeout_ms))

    @_by_one_thread
    def commit_async(
        self,
        offsets: Offsets | None = None,
        callback: CommitCallback | None = None,
    ) -> None:
        """Commit without waiting. Commits keep their order.

        A later `poll`, `commit` or `close` calls `callback` with the result.
        """
        self._commits.commit_async(offsets, callback)

    @_by_one_thread
    def committed(
        self, topic_partitions: OneOrMany, timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the group's last committed offsets, None for partitions without one."""
        self._commits.require_group()
        partitions = checked_partitions(topic_partitions)
        time_ms = self._or_default(timeout_ms)
        found = self._waiting.ask(
            "OffsetFetch",
            self._commits.committed(partitions, time_ms),
            time_ms,
        )
        return {each: found.get(each) for each in partitions}

    # -- the end -----------------------------------------------------------------------------------

    def metrics(self) -> dict[str, float]:
        """Return counts and rates by Kafka's names, for partitions as `topic-0.records-lag`.

        Any thread may call it at any time.
        """
        lags = self._of_partitions.lags()
        return read(self._measures) | {f"{each}.{LAG}": lag for each, lag in lags.items()}

    def _follow_partitions(self) -> None:
        """Tell the metrics reporters which partitions there are now."""
        self._reporting.follow(self._positions.partitions, LAG, self._of_partitions.lag_or_nan)

    def close(self, timeout_ms: int = _CLOSE_MS) -> None:
        """Commit if `enable_auto_commit` is set, leave the group, and close all connections.

        Waits up to `timeout_ms` milliseconds for the commit and for the group's answers. The
        consumer is closed after that in any case. A commit that fails is logged. A second call
        does nothing. Raises `LocalError` if another thread uses the consumer, and the errors of
        the listener and of commit callbacks.
        """
        if self._one_thread.is_closed:
            return
        with self._one_thread.used_here(), spelt(self._config.spelling):
            deadline = Deadline.after_ms(timeout_ms)
            self._waiting.ignored = True
            try:
                self._leave_for_good(deadline)
            finally:
                self._one_thread.is_closed = True
                if self._typed is not None:
                    self._typed.close()
                self._waiting.close()
                self._reading.close()
                self._client.close()
                self._deserializers.close()
                self._reporting.close()

    def _leave_for_good(self, deadline: Deadline) -> None:
        try:
            if not self._subscription.in_group:
                self._commits.commit_before_giving_up(deadline)
            self._subscription.end(deadline)
        finally:
            self._commits.close(deadline)
