"""What `KafkaConsumer` and `AIOConsumer` have in common: all but the waiting itself.

A poll takes these steps, none of which waits, until there are records or its time is up:

    subscribe()                   assign()
        │                            │
        ▼                            │
    Subscription.follow              │     joins, heartbeats and revocations of the group
        │ assigned partitions        │
        ▼                            ▼
    Positions                              the next offset of each partition
        ▲         │ ▲
        │         │ └─ StartOffsets        the first offset: committed, or by auto.offset.reset
        │         ▼
        │     Reading.prepare              fetches from the leaders, ahead of the next poll
        │         │ fetched chunks
        │         ▼
        └──── Reading.next_records         records, decoded; the position moves behind them
                  │
                  ▼
              ConsumerRecords ──▶ the caller

    Commits.attend                         commits the positions, each auto.commit.interval.ms

The module is long because it has all calls of one public class.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, ClassVar, Concatenate, Never, ParamSpec, TypeVar, overload
from uuid import UUID

# The first consumer with typed values imports what it needs.
from spark_kafka_source import consumer
from spark_kafka_source.client import KafkaClient, Topic
from spark_kafka_source.client.arguments import refuse_positional
from spark_kafka_source.client.metrics import MetricsReporter, read
from spark_kafka_source.client.reporting import METRIC_REPORTERS, Reporting, given_reporters
from spark_kafka_source.client.serde_arguments import argument_of
from spark_kafka_source.client.traffic import Traffic
from spark_kafka_source.consumer.arguments import (
    Offsets,
    OneOrMany,
    checked_columns,
    checked_partition,
    checked_partitions,
)
from spark_kafka_source.consumer.commits import CommitCallback, Commits
from spark_kafka_source.consumer.consumer_config import ConsumerConfig
from spark_kafka_source.consumer.consumer_records import ConsumerRecords, PartitionRecords
from spark_kafka_source.consumer.decoding import Decoding
from spark_kafka_source.consumer.deserializers import Deserializer, Deserializers
from spark_kafka_source.consumer.log_lookups import LogLookups
from spark_kafka_source.consumer.metrics import LAG, Metrics, PartitionMetrics, consumer_figures
from spark_kafka_source.consumer.reading import Reading
from spark_kafka_source.consumer.rebalance_listener import (
    GivenListener,
    RebalanceListener,
    given_listener,
)
from spark_kafka_source.consumer.seeking import Seeking
from spark_kafka_source.consumer.subscription import Subscription
from spark_kafka_source.consumer.unreachable_brokers import UnreachableWarning
from spark_kafka_source.consumer.use_guard import UseGuard
from spark_kafka_source.consumer.waiting import Waiting
from spark_kafka_source.errors import ConfigurationError, LocalError
from spark_kafka_source.fetch.offset_reset import EARLIEST, LATEST
from spark_kafka_source.forks import OwnProcess, used_where_made
from spark_kafka_source.groups import Member, OffsetAndMetadata
from spark_kafka_source.groups.assignors import Assignor
from spark_kafka_source.net import Deadline, TokenProvider
from spark_kafka_source.records import COLUMNS_WITH_HEADERS
from spark_kafka_source.records.freed_memory import keep_freed_memory
from spark_kafka_source.spelling import spelt
from spark_kafka_source.telemetry import Tags, Telemetry
from spark_kafka_source.topic_partition import TopicPartition
from spark_kafka_source.typed import letters_are_read

CLOSE_MS = 30_000
# The time to tell the coordinator that the member leaves.
_FAREWELL_MS = 2_000
_OFFSET = "offset"

C = TypeVar("C", bound="Consumer")
P = ParamSpec("P")
R = TypeVar("R")


def _exclusively(method: Callable[Concatenate[C, P], R]) -> Callable[Concatenate[C, P], R]:
    @wraps(method)
    def checked(self: C, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._user.used_here(), spelt(self._config.spelling):
            return method(self, *args, **kwargs)

    return checked


_ELSEWHERE = {
    "consume": "poll()",
    "getmany": "poll()",
    "getone": "poll()",
    "partitions_for_topic": "partitions_for(topic)",
    "subscriptions": "subscription()",
    "topics": "list_topics()",
}
"""The calls here, by their names in other clients."""


@used_where_made
class Consumer:
    """The calls of a consumer that do not wait, and conversations for the calls that wait.

    `KafkaConsumer` blocks its thread until a conversation is over. `AIOConsumer` lets other tasks
    go on meanwhile.
    """

    _user_kind: ClassVar[str]
    """One "thread" or one "task" at a time may use the consumer."""

    _listener_may_wait: ClassVar[bool]
    """Whether the methods of a listener may be `async`."""

    if not TYPE_CHECKING:  # Types would have any name otherwise.

        def __getattr__(self, name):
            text = f"{type(self).__name__!r} object has no attribute {name!r}"
            text += f": call {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
            raise AttributeError(text, name=name, obj=self)

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
        refuse_positional(type(self).__name__, positional)
        serdes = {
            "key": argument_of(configuration, "key_deserializer", key_deserializer),
            "value": argument_of(configuration, "value_deserializer", value_deserializer),
        }
        reporters_given = argument_of(configuration, METRIC_REPORTERS, metric_reporters)
        self._config = config = ConsumerConfig.from_arguments(configuration, token_provider)
        keep_freed_memory()
        self._columns = checked_columns(columns)
        with spelt(config.spelling):
            self._listener = self._checked_listener(listener)
            own_assignors = config.own_assignors(assignors, configuration)
            self._deserializers = Deserializers.of(serdes, config.typed, configuration)
            reporters = given_reporters(*reporters_given, configuration, config.client)
        self._user = UseGuard(self._user_kind, self._present_user)
        self._metrics = Metrics(config.sensors)
        traffic = Traffic(config.sensors)
        self._client = KafkaClient(config.client, traffic=traffic)
        self._unreachable_warning = UnreachableWarning(self._client)
        self._waiting = Waiting(config.client.default_api_timeout_ms)
        self._decoding = self._new_decoding()
        self._reading = self._new_reading()
        self._positions = self._reading.positions
        self._log = LogLookups(self._client, self._waiting, config.fetch.isolation_level)
        self._seeking = Seeking(self._positions, self._reading.start_offsets, self._waiting)
        self._subscription = self._new_subscription(own_assignors)
        self._commits = Commits(
            self._client,
            config,
            self._positions,
            self._subscription,
            self._waiting,
            on_commit=self._metrics.commit_ms.record,
        )
        self._of_partitions = PartitionMetrics(self._positions, config.fetch.isolation_level)
        of_partitions = self._of_partitions.measures(self._decoding.typed)
        self._measures = {**self._metrics.measures, **of_partitions, **traffic.measures}
        client_id = config.client.connection.client_id
        self._reporting = Reporting(reporters, "consumer", client_id, self._measures)
        self._member_id = ""
        self._telemetry = self._new_telemetry(traffic)

    def _new_telemetry(self, traffic: Traffic) -> Telemetry | None:
        if not self._config.telemetry.enable_metrics_push:
            return None
        figures = consumer_figures(
            self._measures, self._of_partitions, traffic, self._client.cluster
        )
        return Telemetry(self._client, figures, self._labels, self._waiting.telemetry)

    def _labels(self) -> Tags:
        """Return what brokers are told of this consumer besides its metrics."""
        group, member = self._config.group, self._subscription.member()
        if member is not None:  # The last push comes after the member has left.
            self._member_id = member.member_id
        labels = {
            "client_rack": self._config.fetch.client_rack,
            "group_id": group.group_id if group else "",
            "group_instance_id": group.group_instance_id if group else "",
            "group_member_id": self._member_id,
        }
        return {name: text for name, text in labels.items() if text}

    @staticmethod
    def _present_user() -> object:
        """Return the thread, or the task, that makes this call."""
        raise NotImplementedError

    def _new_decoding(self) -> Decoding:
        # A batch can only be divided with its offsets.
        columns = tuple(dict.fromkeys((*self._columns, _OFFSET, *self._deserializers.columns)))
        typed: consumer.TypedDecoding | None = None
        if self._config.typed.parts:
            with spelt(self._config.spelling):
                typed = consumer.TypedDecoding(
                    self._config.typed, columns, self._client, self._waiting
                )
        return Decoding(columns, self._config.fetch, typed=typed, deserializers=self._deserializers)

    def _new_reading(self) -> Reading:
        return Reading(
            self._client,
            self._decoding,
            self._config.reset,
            self._find_committed,
            lookups=self._waiting.lookups,
            on_fetch=self._metrics.fetched,
            describe=self._describe_unknown,
        )

    def _new_subscription(self, own_assignors: tuple[Assignor, ...]) -> Subscription:
        return Subscription(
            self._client,
            self._config,
            own_assignors,
            self._positions,
            self._waiting,
            begin_commit=self._begin_commit,
            metrics=self._metrics.group,
        )

    # These methods use parts that are made after the parts that call them.

    async def _find_committed(
        self, partitions: Collection[TopicPartition], timeout_ms: int
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        return await self._commits.group_offsets(partitions, timeout_ms)

    async def _describe_unknown(self, names: list[str], deadline: Deadline) -> list[Topic]:
        return await self._subscription.describe(names, deadline)

    def _begin_commit(self) -> Callable[[], bool]:
        return self._commits.begin_automatic()

    # -- what to read ------------------------------------------------------------------------------

    @_exclusively
    def subscribe(
        self,
        topics: Iterable[str] = (),
        *more: Never,
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
        Raises `LocalError` for what cannot be a topic's name.
        """
        if more:
            raise LocalError(
                "subscribe() takes the topics as one list, and the rest by name: "
                "subscribe(['events', 'orders'], listener=listener)"
            )
        heard_by = self._checked_listener(listener) or self._listener
        self._subscription.begin(topics, pattern, heard_by, server_pattern)

    def _checked_listener(self, given: RebalanceListener | None) -> GivenListener | None:
        if given is not None and self._config.group is None:
            expected = "Give it: a listener hears how a group divides the partitions"
            raise ConfigurationError("kafka.group.id", "is missing", expected)
        return given_listener("listener", given, self, may_wait=self._listener_may_wait)

    @_exclusively
    def assign(self, topic_partitions: OneOrMany) -> None:
        """Read only these partitions, whatever the group's other members read."""
        partitions = checked_partitions(topic_partitions)
        if self._subscription.is_active:
            raise LocalError("Topics are subscribed: unsubscribe() first")
        letters = self._config.typed.bad_records_topic
        if letters in {partition.topic for partition in partitions}:
            raise letters_are_read(letters)
        self._commits.commit_consumed_async()
        self._positions.keep(partitions)
        self._follow_partitions()

    async def _unsubscribe(self, topics: object) -> None:
        if topics:
            raise LocalError(
                "unsubscribe() ends the whole subscription: to keep a part of it, subscribe() to "
                "the topics that remain"
            )
        self._waiting.ignored = True
        try:
            await self._leave(Deadline.after_ms(self._waiting.default_ms))
        finally:
            self._waiting.ignored = False
            self._follow_partitions()

    async def _leave(self, deadline: Deadline) -> None:
        """End the subscription, after the commits: nobody can commit for a member that left."""
        left_ms = deadline.remaining_ms()
        try:
            if self._subscription.in_group:
                commit_by = deadline.within_ms(max(left_ms - _FAREWELL_MS, left_ms // 2))
                self._commits.commit_consumed_async(commit_by.remaining_ms())
                await self._commits.finish(commit_by)
            else:
                self._commits.commit_consumed_async(left_ms)
        except BaseException:  # Such as a Ctrl-C. The coordinator is still told.
            deadline = deadline.within_ms(_FAREWELL_MS)
            raise
        finally:
            await self._subscription.end(deadline)

    def subscription(self) -> set[str]:
        """Return the subscribed topics, or the known topics that match the pattern."""
        return self._subscription.names

    def assignment(self) -> set[TopicPartition]:
        """Return the partitions that the consumer reads now."""
        return set(self._positions.partitions)

    # -- reading -----------------------------------------------------------------------------------

    async def _poll(self, timeout_ms: int) -> ConsumerRecords:
        self._user.refuse_within_another("poll()")
        if timeout_ms < 0:
            raise LocalError(f"timeout_ms is {timeout_ms}: give 0 or more, in milliseconds")
        if not self._subscription.is_active and not self._positions:
            raise LocalError("There is nothing to read: subscribe() or assign() first")
        self._metrics.poll_began()
        self._unreachable_warning.poll_began()
        self._reading.extend_deadlines()
        if self._telemetry is not None:
            self._telemetry.attend()
        try:
            parts = await self._poll_until(Deadline.after_ms(timeout_ms))
        finally:
            self._metrics.poll_ended()
            self._follow_partitions()
        self._unreachable_warning.poll_ended()
        self._metrics.records.record(sum(part.batch.num_rows for part in parts))
        return ConsumerRecords(
            parts,
            self._columns,
            self._commits.consumed({part.topic_partition for part in parts}),
            without_rows=None if self._decoding.typed is None else self._decoding.typed.schema,
        )

    async def _poll_until(self, deadline: Deadline) -> list[PartitionRecords]:
        while True:
            self._waiting.raise_if_woken()
            self._waiting.step()
            await self._subscription.follow()
            self._commits.attend()
            self._reading.prepare()
            parts = self._reading.next_records(self._config.poll.max_poll_records)
            if parts or deadline.expired:
                return parts
            await self._wait_for_data(deadline)

    async def _wait_for_data(self, deadline: Deadline) -> None:
        """Wait for data, the next try, the next automatic commit or lookup, or the deadline."""
        moments = [
            deadline.at_seconds,
            self._reading.next_try_seconds(),
            self._commits.due_seconds,
            self._subscription.next_look_seconds,
        ]
        # A millisecond more: what is due at almost the same time is asked for together.
        soonest_seconds = min(moment for moment in moments if moment is not None) + 0.001
        until = Deadline(soonest_seconds, deadline.timeout_ms)
        things = [*self._reading.waited_for, *self._subscription.waited_for]
        await self._waiting.once(until, things)

    def wakeup(self) -> None:
        """End the call that waits, or the next call that waits. Any thread may call it.

        `poll`, `commit`, `committed`, `position` and all other calls that wait raise
        `WakeupError`. Only `close` and `unsubscribe` go on.
        """
        self._waiting.wake()

    # -- the group ---------------------------------------------------------------------------------

    def enforce_rebalance(self, reason: str = "rebalance enforced by the user") -> None:
        """Make the group rebalance, from the next poll on (KIP-568)."""
        self._subscription.rejoin(reason)

    def group_metadata(self) -> Member | None:
        """Return this consumer's member identity, or None outside of a generation."""
        return self._subscription.member()

    # -- positions ---------------------------------------------------------------------------------

    @_exclusively
    def pause(self, *topic_partitions: OneOrMany) -> None:
        """Return no records of these partitions until `resume`, or until they are revoked.

        Like the other methods, it takes partitions one by one or as a collection.
        """
        self._seeking.pause(topic_partitions, paused=True)

    @_exclusively
    def resume(self, *topic_partitions: OneOrMany) -> None:
        """Return records of these partitions again."""
        self._seeking.pause(topic_partitions, paused=False)

    def paused(self) -> set[TopicPartition]:
        """Return the paused partitions."""
        return {position.topic_partition for position in self._positions if position.paused}

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

    @_exclusively
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

    @_exclusively
    def seek_to_beginning(self, *topic_partitions: OneOrMany) -> None:
        """Go on at the first offset of these partitions, or of all assigned ones."""
        self._seeking.reset(topic_partitions, EARLIEST)

    @_exclusively
    def seek_to_end(self, *topic_partitions: OneOrMany) -> None:
        """Go on after the last record of these partitions, or of all assigned ones."""
        self._seeking.reset(topic_partitions, LATEST)

    def current_lag(self, topic_partition: TopicPartition) -> int | None:
        """Return the number of offsets from the position to the last known end, or None."""
        return self._of_partitions.lag(self._positions[checked_partition(topic_partition)])

    # -- offsets of the group ----------------------------------------------------------------------

    @_exclusively
    def commit_async(
        self, offsets: Offsets | None = None, callback: CommitCallback | None = None
    ) -> None:
        """Commit without waiting. Commits keep their order.

        The request goes out at once if the coordinator is known and connected, else with a later
        call. A later `poll`, `commit` or `close` calls `callback` with the result.
        """
        self._commits.commit_async(offsets, callback)

    # -- the end -----------------------------------------------------------------------------------

    def metrics(self) -> dict[str, float]:
        """Return counts and rates by Kafka's names, for partitions as `topic-0.records-lag`.

        Any thread may call it at any time.
        """
        lags = self._of_partitions.lags()
        return read(self._measures) | {f"{partition}.{LAG}": lag for partition, lag in lags.items()}

    def _follow_partitions(self) -> None:
        """Tell the metrics reporters which partitions there are now."""
        self._reporting.follow(self._positions.partitions, LAG, self._of_partitions.lag_or_nan)

    async def _client_instance_id(self, timeout_ms: int | None) -> UUID:
        telemetry = self._telemetry
        if telemetry is None:
            raise LocalError("'kafka.enable.metrics.push' is false: brokers know no metrics of it")
        deadline = Deadline.after_ms(self._waiting.default_ms if timeout_ms is None else timeout_ms)
        telemetry.ask_for_id()
        telemetry.attend()
        await self._waiting.until(telemetry.settled.is_set, deadline)
        return telemetry.known_id(deadline.timeout_ms)

    async def _close(self, timeout_ms: int) -> None:
        deadline = Deadline.after_ms(timeout_ms)
        self._waiting.ignored = True
        try:
            await self._leave_for_good(deadline)
            if self._telemetry is not None:
                await self._telemetry.end(deadline)
        finally:
            try:
                await self._close_parts()
            finally:
                self._user.is_closed = True

    async def _leave_for_good(self, deadline: Deadline) -> None:
        try:
            await self._leave(deadline)
        except Exception:  # An error of the listener.
            raise
        except BaseException:  # A Ctrl-C, or a cancellation: nobody wants to wait any more.
            deadline = Deadline.after_ms(0)
            raise
        finally:
            await self._commits.close(deadline)

    async def _close_parts(self) -> None:
        if self._decoding.typed is not None:
            self._decoding.typed.close()
        self._waiting.close()
        try:
            await self._reading.close()
        finally:
            self._client.close()
            self._deserializers.close()
            self._reporting.close()
