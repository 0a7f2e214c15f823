"""The calls of a consumer, as conversations: `KafkaConsumer` and `AIOConsumer` hold them."""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

# The first consumer with typed values, or with dead letters, imports what they need.
from spark_kafka_source import consumer, dead_letters
from spark_kafka_source.client import KafkaClient, Topic
from spark_kafka_source.client.metrics import MetricsReporter, read
from spark_kafka_source.client.partition_info import PartitionInfo
from spark_kafka_source.client.reporting import METRIC_REPORTERS, Reporting, given_reporters
from spark_kafka_source.client.serde_arguments import argument_of
from spark_kafka_source.consumer.background import Background
from spark_kafka_source.consumer.column_names import checked_columns
from spark_kafka_source.consumer.commits import Commits
from spark_kafka_source.consumer.committer import Commit, CommitCallback, Committer
from spark_kafka_source.consumer.consumer_config import ConsumerConfig
from spark_kafka_source.consumer.consumer_records import ConsumerRecords, Taken
from spark_kafka_source.consumer.deserializers import Deserializer, Deserializers
from spark_kafka_source.consumer.first_contact import FirstContact
from spark_kafka_source.consumer.log_lookups import LogLookups
from spark_kafka_source.consumer.metrics import LAG, Metrics, PartitionMetrics
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
from spark_kafka_source.groups import Member, OffsetAndMetadata
from spark_kafka_source.groups.assignors import Assignor
from spark_kafka_source.net import Deadline, TokenProvider
from spark_kafka_source.records.freed_memory import keep_freed_memory
from spark_kafka_source.spelling import Spelling, spelt
from spark_kafka_source.topic_partition import TopicPartition
from spark_kafka_source.typed import letters_are_read

_OFFSET = "offset"


class Given(NamedTuple):
    """Arguments of a consumer that are objects of the user's; see `KafkaConsumer`."""

    key_deserializer: Deserializer | None
    value_deserializer: Deserializer | None
    columns: Iterable[str]
    assignors: Iterable[Assignor | str] | None
    listener: RebalanceListener | None
    metric_reporters: Iterable[MetricsReporter] | None
    token_provider: TokenProvider | None


class ConsumerCalls:
    """A consumer. Calls that wait are conversations; one user at a time may make them.

    See `KafkaConsumer` for each call.
    """

    def __init__(
        self,
        front: object,
        given: Given,
        configuration: dict[str, object],
        *,
        may_wait: bool = False,
    ) -> None:
        """`front` is the consumer that the user has: a listener may ask for it.

        With `may_wait` the methods of a listener may be `async`.
        """
        self._may_wait = may_wait
        deserializers = {
            "key": argument_of(configuration, "key_deserializer", given.key_deserializer),
            "value": argument_of(configuration, "value_deserializer", given.value_deserializer),
        }
        reporters_given = argument_of(configuration, METRIC_REPORTERS, given.metric_reporters)
        self._config = ConsumerConfig.from_arguments(configuration, given.token_provider)
        keep_freed_memory()
        self._columns = checked_columns(given.columns)
        with spelt(self.spelling):
            self._listener = self._checked_listener(given.listener, front)
            assignors = self._config.own_assignors(given.assignors, configuration)
            self._deserializers = Deserializers.of(deserializers, self._config.typed, configuration)
            reporters = given_reporters(*reporters_given, configuration, self._config.client)
        self._metrics = Metrics(self._config.sensors)
        self._client = KafkaClient(self._config.client)
        self._first_contact = FirstContact(self._client)
        self._waiting = Waiting()
        self._typed = self._new_typed()
        self._reading = self._new_reading()
        self.positions = self._reading.positions
        self._log_lookups = LogLookups(
            self._client, self._waiting, self._config.fetch.isolation_level
        )
        self._seeking = Seeking(self.positions, self._reading.starts, self._waiting)
        self._subscription = Subscription(
            self._client,
            self._config,
            assignors,
            self.positions,
            lookups=self._waiting.lookups,
            begin_commit=self._begin_commit,
            wait=self._waiting.until,
            metrics=self._metrics.group,
        )
        self._commits = Commits(
            self._config,
            self.positions,
            self._subscription,
            self._new_committer(),
            self._waiting.until,
        )
        self._of_partitions = PartitionMetrics(self.positions, self._end_of)
        self._measures = {**self._metrics.measures, **self._of_partitions.measures(self._typed)}
        client_id = self._config.client.connection.client_id
        self._reporting = Reporting(reporters, "consumer", client_id, self._measures)

    @property
    def spelling(self) -> Spelling:
        """The spelling of settings in errors."""
        return self._config.spelling

    def _new_typed(self) -> "consumer.TypedDecoding | None":
        if not self._config.typed.parts:
            return None
        lookups = Background(self._waiting.wakeup)
        with spelt(self.spelling):
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

    # -- what to read ------------------------------------------------------------------------------

    def subscribe(
        self,
        front: object,
        topics: Iterable[str],
        *,
        pattern: str | re.Pattern[str] | None,
        listener: RebalanceListener | None,
        server_pattern: str | None,
    ) -> None:
        """Replace the subscription."""
        told = self._checked_listener(listener, front) or self._listener
        self._subscription.begin(topics, pattern, told, server_pattern)

    def _checked_listener(
        self, given: RebalanceListener | None, front: object
    ) -> GivenListener | None:
        if given is not None and self._config.group is None:
            expected = "Give it: a listener hears how a group divides the partitions"
            raise ConfigurationError("kafka.group.id", "is missing", expected)
        return given_listener("listener", given, front, may_wait=self._may_wait)

    def assign(self, topic_partitions: OneOrMany) -> None:
        """Read only these partitions."""
        partitions = checked_partitions(topic_partitions)
        if self._subscription.is_active:
            raise LocalError("Topics are subscribed: unsubscribe() first")
        letters = self._config.typed.bad_records_topic
        if letters in {each.topic for each in partitions}:
            raise letters_are_read(letters)
        self._commits.commit_consumed_async()
        self.positions.keep(partitions)
        self._follow_partitions()

    async def unsubscribe(self) -> None:
        """Stop reading, and leave the group."""
        if not self._subscription.in_group:
            self._commits.commit_consumed_async()
        self._waiting.ignored = True
        try:
            await self._subscription.end(Deadline.after_ms(self._or_default(None)))
        finally:
            self._waiting.ignored = False
            self._follow_partitions()

    def subscription(self) -> set[str]:
        """Return the subscribed topics."""
        return self._subscription.names

    def assignment(self) -> set[TopicPartition]:
        """Return the partitions that the consumer reads now."""
        return set(self.positions.partitions)

    # -- reading -----------------------------------------------------------------------------------

    async def poll(self, timeout_ms: int) -> ConsumerRecords:
        """Return the next records."""
        if timeout_ms < 0:
            raise LocalError(f"timeout_ms is {timeout_ms}: give 0 or more, in milliseconds")
        if not self._subscription.is_active and not self.positions:
            raise LocalError("There is nothing to read: subscribe() or assign() first")
        self._metrics.poll_began()
        self._first_contact.poll_began()
        try:
            taken = await self._taken(Deadline.after_ms(timeout_ms))
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

    async def _taken(self, deadline: Deadline) -> list[Taken]:
        while True:
            self._waiting.raise_if_woken()
            self._waiting.step()
            await self._subscription.follow()
            self._commits.attend()
            self._reading.prepare()
            taken = self._reading.take(self._config.poll.max_poll_records)
            if taken or deadline.expired:
                return taken
            await self._wait(deadline)

    async def _wait(self, deadline: Deadline) -> None:
        """Wait for data, the next try, the next automatic commit or lookup, or the deadline."""
        moments = [
            deadline.at_seconds,
            self._reading.next_try_seconds(),
            self._commits.due_seconds,
            self._subscription.next_look_seconds,
        ]
        # A millisecond more: what is due at almost the same time is asked for together.
        soonest_seconds = min(each for each in moments if each is not None) + 0.001
        until = Deadline(soonest_seconds, deadline.timeout_ms)
        things = [*self._reading.waited_for, *self._subscription.waited_for]
        await self._waiting.once(until, things)

    def wakeup(self) -> None:
        """End the call that waits, or the next call that waits. Any thread may call it."""
        self._waiting.wake()

    def _count_fetch(self, done: FetchDone) -> None:
        self._metrics.fetch_ms.record(done.seconds * 1000)
        self._metrics.fetched_bytes.record(done.size_bytes)

    # -- the group ---------------------------------------------------------------------------------

    def enforce_rebalance(self, reason: str) -> None:
        """Make the group rebalance."""
        self._subscription.rejoin(reason)

    def group_metadata(self) -> Member | None:
        """Return this consumer's member identity, or None outside of a generation."""
        return self._subscription.member()

    # -- positions ---------------------------------------------------------------------------------

    def pause(self, *topic_partitions: OneOrMany, paused: bool = True) -> None:
        """Return no records of these partitions, or return them again."""
        for each in [self.positions[each] for each in checked_partitions(*topic_partitions)]:
            each.paused = paused

    def paused(self) -> set[TopicPartition]:
        """Return the paused partitions."""
        return {each.topic_partition for each in self.positions if each.paused}

    def seek(
        self,
        topic_partition: TopicPartition | Offsets,
        offset: int | OffsetAndMetadata | None,
        leader_epoch: int,
    ) -> None:
        """Go on at this offset."""
        self._seeking.seek(topic_partition, offset, leader_epoch)

    def seek_to_beginning(self, *topic_partitions: OneOrMany) -> None:
        """Go on at the first offset of these partitions, or of all assigned ones."""
        self._seeking.reset(checked_partitions(*topic_partitions), EARLIEST)

    def seek_to_end(self, *topic_partitions: OneOrMany) -> None:
        """Go on after the last record of these partitions, or of all assigned ones."""
        self._seeking.reset(checked_partitions(*topic_partitions), LATEST)

    async def position(
        self, topic_partition: OneOrMany, timeout_ms: int | None
    ) -> int | dict[TopicPartition, int]:
        """Return the offset of the next record of one partition, or of each of several."""
        partitions = checked_partitions(topic_partition)
        found = await self._seeking.offsets_of(partitions, self._or_default(timeout_ms))
        return found[partitions[0]] if is_one(topic_partition) else found

    def current_lag(self, topic_partition: TopicPartition) -> int | None:
        """Return the number of offsets from the position to the last known end, or None."""
        return self._of_partitions.lag(self.positions[checked_partition(topic_partition)])

    def _or_default(self, timeout_ms: int | None) -> int:
        return self._config.client.default_api_timeout_ms if timeout_ms is None else timeout_ms

    # -- what there is -----------------------------------------------------------------------------

    async def list_topics(self, timeout_ms: int | None) -> dict[str, Topic]:
        """Return all topics that this user may see."""
        found = await self._log_lookups.describe(None, self._or_default(timeout_ms))
        return {each.name: each for each in found}

    async def partitions_for(self, topic: str, timeout_ms: int | None) -> list[PartitionInfo]:
        """Return the partitions of a topic."""
        return await self._log_lookups.partitions_of(topic, self._or_default(timeout_ms))

    async def beginning_offsets(
        self, topic_partitions: OneOrMany, timeout_ms: int | None
    ) -> dict[TopicPartition, int]:
        """Return the first offset that each partition still has."""
        partitions = checked_partitions(topic_partitions)
        return await self._log_lookups.beginnings(partitions, self._or_default(timeout_ms))

    async def end_offsets(
        self, topic_partitions: OneOrMany, timeout_ms: int | None
    ) -> dict[TopicPartition, int]:
        """Return each partition's offset after the last record that `isolation_level` shows."""
        partitions = checked_partitions(topic_partitions)
        return await self._log_lookups.ends(partitions, self._or_default(timeout_ms))

    async def offsets_for_times(
        self, timestamps_ms: Mapping[TopicPartition, int], timeout_ms: int | None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first offset at or after a time, in ms since the epoch, or None."""
        checked_partitions(timestamps_ms)
        return await self._log_lookups.for_times(timestamps_ms, self._or_default(timeout_ms))

    # -- offsets of the group ----------------------------------------------------------------------

    async def commit(self, offsets: Offsets | None, timeout_ms: int | None) -> None:
        """Commit these offsets, or all positions, and wait."""
        await self._commits.commit(offsets, self._or_default(timeout_ms))

    def commit_async(self, offsets: Offsets | None, callback: CommitCallback | None) -> None:
        """Commit without waiting."""
        self._commits.commit_async(offsets, callback)

    async def committed(
        self, topic_partitions: OneOrMany, timeout_ms: int | None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the group's last committed offsets, None for partitions without one."""
        self._commits.require_group()
        partitions = checked_partitions(topic_partitions)
        time_ms = self._or_default(timeout_ms)
        question = self._commits.committed(partitions, time_ms)
        found = await self._waiting.ask("OffsetFetch", question, time_ms)
        return {each: found.get(each) for each in partitions}

    # -- the end -----------------------------------------------------------------------------------

    def metrics(self) -> dict[str, float]:
        """Return counts and rates by Kafka's names. Any thread may call it at any time."""
        lags = self._of_partitions.lags()
        return read(self._measures) | {f"{each}.{LAG}": lag for each, lag in lags.items()}

    def _follow_partitions(self) -> None:
        """Tell the metrics reporters which partitions there are now."""
        self._reporting.follow(self.positions.partitions, LAG, self._of_partitions.lag_or_nan)

    async def close(self, timeout_ms: int) -> None:
        """Commit, leave the group, and close all connections."""
        deadline = Deadline.after_ms(timeout_ms)
        self._waiting.ignored = True
        try:
            await self._leave_for_good(deadline)
        finally:
            if self._typed is not None:
                self._typed.close()
            self._waiting.close()
            try:
                await self._reading.close()
            finally:
                self._client.close()
                self._deserializers.close()
                self._reporting.close()

    async def _leave_for_good(self, deadline: Deadline) -> None:
        try:
            if not self._subscription.in_group:
                await self._commits.commit_before_giving_up(deadline)
            await self._subscription.end(deadline)
        finally:
            await self._commits.close(deadline)
