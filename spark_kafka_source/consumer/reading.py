"""Reads the partitions of a consumer: finds where to begin, fetches, and hands records out."""

import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from spark_kafka_source.client import LOOKUP_MS, KafkaClient, Lookup, Lookups, Topic
from spark_kafka_source.consumer.fetcher import FetchDone, Fetcher
from spark_kafka_source.consumer.losses import (
    UNKNOWN_TOPIC,
)
from spark_kafka_source.consumer.offset_reset import ResetPolicy
from spark_kafka_source.consumer.offsets import OffsetAndEpoch
from spark_kafka_source.consumer.partition_lookups import PartitionLookups
from spark_kafka_source.consumer.position_checks import PositionChecks, log_of
from spark_kafka_source.consumer.positions import Position, Positions
from spark_kafka_source.consumer.starts import Committed, Starts, Wanted
from spark_kafka_source.consumer.unread import Decoding, NotKnownYetError, Unread
from spark_kafka_source.errors import BrokerError, CorruptRecordError, KafkaError, KafkaTimeoutError
from spark_kafka_source.net import Deadline
from spark_kafka_source.topic_partition import TopicPartition

logger = logging.getLogger(__name__)


class Reading:
    """The positions of a consumer, and what comes in from there on. Nothing in it waits."""

    def __init__(
        self,
        client: KafkaClient,
        decoding: Decoding,
        reset: ResetPolicy,
        committed: Committed,
        *,
        lookups: Lookups,
        on_fetch: Callable[[FetchDone], None] = lambda _: None,
    ) -> None:
        self.positions = Positions()
        self._client = client
        self._decoding = decoding
        self._reset = reset
        self._lookups = lookups
        self._fetcher = Fetcher(client, decoding, self.positions, self._out_of_range, on_fetch)
        self._last: TopicPartition | None = None
        self._topics: Lookup[list[Topic]] | None = None
        self._ask_topics_at_seconds = 0.0
        self._topic_tries = 0
        self._told: set[str] = set()
        self._told_kinds: set[type[KafkaError]] = set()
        self._looked_at_seconds = 0.0
        self._error: Exception | None = None
        woken = lookups.done.wake
        self.starts = Starts(committed, reset, decoding.fetch.isolation_level, woken)
        self._start_lookups: PartitionLookups[ResetPolicy | None, OffsetAndEpoch]
        self._start_lookups = PartitionLookups(
            lookups,
            self.positions,
            self._find_starts,
            is_current=_is_unknown,
            on_answer=self._begin,
            on_none=self._later,
        )
        self._checks = PositionChecks(client, self.positions, reset, lookups, self._later)

    def close(self) -> None:
        """Ends the fetch sessions."""
        self._fetcher.close()

    def prepare(self) -> None:
        """Finds leaders and positions as far as they are missing, and asks for records there.

        Takes what was found since the last call, asks for what is still missing, and waits for
        nothing. Raises what cannot heal; what can is tried again by a later call.
        """
        self._looked_at_seconds = time.monotonic()
        for step in (
            self._find_leaders,
            self._checks.take,
            self._checks.look,
            self._start_lookups.take,
            self._find_positions,
        ):
            try:
                step()
            except KafkaError as error:
                if not _may_heal(error):
                    raise
                self._tell(error)
        self._fetcher.ask()

    def _tell(self, error: KafkaError) -> None:
        """Once of each kind, until brokers answer again: it is tried again many times a minute."""
        is_new = not isinstance(error, BrokerError) and type(error) not in self._told_kinds
        logger.log(logging.WARNING if is_new else logging.DEBUG, "%s; trying again", error)
        self._told_kinds.add(type(error))

    @property
    def waited_for(self) -> list[Any]:
        """What becomes readable once there is something to take."""
        return list(self._fetcher.in_flight)

    def next_try_seconds(self) -> float | None:
        """When `prepare` has something to do even if nothing comes in."""
        moments = [self._fetcher.next_try_seconds(self._looked_at_seconds)]
        if self._topics is None and self._unknown_topics():
            moments.append(self._ask_topics_at_seconds)
        if self._checks.is_due:
            moments.append(self._looked_at_seconds)
        return min((moment for moment in moments if moment is not None), default=None)

    def take(self, max_records: int) -> list[tuple[TopicPartition, pa.RecordBatch]]:
        """Up to so many of the records that are here; positions move behind them.

        Partitions take turns, and what comes after is asked for. Raises `CorruptRecordError` and
        `BadRecordError` with the position still before what is wrong; where there were records
        first, in the next call. After Ctrl-C all positions are where they were: nobody was given
        the records.
        """
        self._raise_kept()
        self._keep_error(self._fetcher.take)
        before = [(each, each.next) for each in self.positions]
        try:
            found = self._take(max_records)
            self._keep_error(self._fetcher.ask)
        except BaseException:
            for position, at in before:
                if position.next is not at:
                    position.next = at
                    position.refetch()
            raise
        if not found:
            self._raise_kept()
        return found

    def _take(self, max_records: int) -> list[tuple[TopicPartition, pa.RecordBatch]]:
        found: list[tuple[TopicPartition, pa.RecordBatch]] = []
        left = max_records
        for position in self._in_turn():
            try:
                for batch in self._hand_out(position, left):
                    found.append((position.topic_partition, batch))
                    left -= batch.num_rows
            except NotKnownYetError:
                continue
            except Exception as error:
                position.refetch()
                self._last = position.topic_partition
                self._error = self._error or error
                break
            if left <= 0:
                break
        return found

    def _keep_error(self, step: Callable[[], None]) -> None:
        """What is here is handed out before an error is raised: positions are behind it already."""
        try:
            step()
        except KafkaError as error:
            self._error = self._error or error

    def _raise_kept(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _in_turn(self) -> list[Position]:
        """Those that have something, beginning after the one that was last."""
        positions = list(self.positions)
        names = [each.topic_partition for each in positions]
        start = names.index(self._last) + 1 if self._last in names else 0
        in_turn = positions[start:] + positions[:start]
        return [each for each in in_turn if each.fetched and self._can_be_handed_out(each)]

    def _can_be_handed_out(self, position: Position) -> bool:
        """What was fetched ahead may be of a log that was cut: first its new leader is asked."""
        is_held = position.paused or position.is_held
        return not is_held and not self._checks.is_in_doubt(position)

    def _hand_out(self, position: Position, max_records: int) -> Iterator[pa.RecordBatch]:
        while max_records > 0 and position.fetched:
            unread = position.fetched[0]
            if position.next is None or unread.next_offset != position.next.offset:
                position.refetch()
                return
            try:
                batch = unread.take(max_records)
            finally:  # Records that nobody is shown were passed over, perhaps.
                position.handed_out(unread.next_offset, unread.leader_epoch)
            if batch is None:
                position.fetched.popleft()
                self._check_progress(position, unread)
                continue
            self._last = position.topic_partition
            max_records -= batch.num_rows
            yield batch

    def _check_progress(self, position: Position, unread: Unread) -> None:
        """A batch comes whole whatever was asked for (KIP-74): one that does not never will."""
        if unread.next_offset == unread.offset and unread.cut_batch_bytes:
            most_bytes = self._decoding.fetch.max_partition_fetch_bytes
            raise CorruptRecordError(
                position.topic_partition,
                unread.offset,
                f"a record batch of {unread.cut_batch_bytes} bytes did not come whole; asked for "
                f"{most_bytes} (max_partition_fetch_bytes)",
            )

    # -- where to begin ----------------------------------------------------------------------------

    def _unknown_topics(self) -> list[str]:
        """Those whose leaders are unknown, or have had a fetch for too long."""
        self._client.cluster.forget_leaders_of(self._fetcher.overdue_topics())
        return self._client.unknown_topics(self.positions.partitions)

    def _find_leaders(self) -> None:
        """Asks for topics whose leaders are unknown, but not again and again."""
        if self._topics is not None and self._topics.is_done:
            lookup, self._topics = self._topics, None
            self._take_topics(lookup.result())
        unknown = self._unknown_topics()
        if not unknown:
            self._topic_tries = 0
        elif self._topics is None and time.monotonic() >= self._ask_topics_at_seconds:
            self._topic_tries += 1
            pause_seconds = self._client.pause_seconds(self._topic_tries)
            self._ask_topics_at_seconds = time.monotonic() + pause_seconds
            self._topics = self._lookups.ask(
                lambda client: client.topics(unknown, Deadline.after_ms(LOOKUP_MS))
            )

    def _take_topics(self, topics: list[Topic]) -> None:
        self._told_kinds.clear()
        for topic in topics:
            error = BrokerError(topic.error, f"Metadata of {topic.name}")
            if topic.error.code and not topic.error.retriable:
                raise error
            # Once, until it is there: it may be asked for ten times a second.
            if topic.error.code and topic.name not in self._told:
                logger.warning("%s; trying again", error)
            (self._told.add if topic.error.code else self._told.discard)(topic.name)

    def _find_positions(self) -> None:
        """Asks where to begin, in partitions whose leader is known."""
        now_seconds = time.monotonic()
        self._start_lookups.ask(
            {
                each.topic_partition: each.reset_to
                for each in self.positions
                if each.next is None
                and each.not_before_seconds <= now_seconds
                and self._has_leader(each)
            }
        )

    def _find_starts(
        self, client: KafkaClient, wanted: Wanted, found: dict[TopicPartition, OffsetAndEpoch]
    ) -> None:
        self.starts.find(client, wanted, found, LOOKUP_MS)

    def _begin(self, position: Position, _: ResetPolicy | None, at: OffsetAndEpoch) -> None:
        position.seek(*at)
        logger.info("%s: begins at offset %d", position.topic_partition, at.offset)

    def _later(self, position: Position) -> None:
        position.tries += 1
        pause_seconds = self._client.pause_seconds(position.tries)
        position.not_before_seconds = time.monotonic() + pause_seconds

    def _has_leader(self, position: Position) -> bool:
        return log_of(self._client.cluster, position) is not None

    def _out_of_range(self, position: Position) -> None:
        self._checks.out_of_range(position)


def _is_unknown(position: Position, policy: ResetPolicy | None) -> bool:
    return position.next is None and position.reset_to is policy


def _may_heal(error: KafkaError) -> bool:
    is_unknown = isinstance(error, BrokerError) and error.error in UNKNOWN_TOPIC
    return error.retriable or is_unknown or isinstance(error, KafkaTimeoutError)
