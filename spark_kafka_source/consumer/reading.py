"""Reads the partitions of a consumer: finds where to begin, fetches, and hands records out."""

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import pyarrow as pa

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.consumer.fetcher import FetchDone, Fetcher
from spark_kafka_source.consumer.log_checks import out_of_range
from spark_kafka_source.consumer.losses import LogTruncatedError
from spark_kafka_source.consumer.offset_reset import NoOffsetError, ResetPolicy
from spark_kafka_source.consumer.offsets import (
    LATEST_TIMESTAMP,
    NO_OFFSET,
    OffsetAndEpoch,
    epoch_end_offsets,
    list_offsets,
)
from spark_kafka_source.consumer.positions import Position, Positions
from spark_kafka_source.consumer.unread import Decoding, Unread
from spark_kafka_source.errors import BrokerError, CorruptRecordError, KafkaError, KafkaTimeoutError
from spark_kafka_source.net import Deadline
from spark_kafka_source.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

# What has less time than it takes to connect would never come to anything.
_LEAST_MS = 5_000

Committed = Callable[[Collection[TopicPartition], int], Mapping[TopicPartition, OffsetAndEpoch]]
"""What the group committed, asked for so many ms; partitions without an offset are left out."""


class Reading:
    """The positions of a consumer, and what comes in from there on."""

    def __init__(
        self,
        client: KafkaClient,
        decoding: Decoding,
        reset: ResetPolicy,
        committed: Committed,
        on_fetch: Callable[[FetchDone], None] = lambda _: None,
    ) -> None:
        self.positions = Positions()
        self._client = client
        self._decoding = decoding
        self._reset = reset
        self._committed = committed
        self._fetcher = Fetcher(client, decoding, self.positions, self._out_of_range, on_fetch)
        self._last: TopicPartition | None = None
        self._ask_topics_at_seconds = 0.0
        self._topic_tries = 0

    def close(self) -> None:
        """Ends the fetch sessions."""
        self._fetcher.close()

    def prepare(self, deadline: Deadline) -> None:
        """Finds leaders and positions as far as they are missing, and asks for records there.

        Raises what cannot heal; what can is tried again by the next call. Takes some seconds
        longer than `deadline` where a broker has to be asked that does not answer.
        """
        deadline = _at_least(deadline)
        try:
            self._find_leaders(deadline)
            self._check_logs(deadline)
            self.find([each for each in self.positions if each.next is None], deadline)
        except KafkaTimeoutError as error:
            logger.warning("%s; trying again", error)
        except KafkaError as error:
            if not error.retriable:
                raise
            logger.debug("%s; trying again", error)
        self._fetcher.ask()

    @property
    def waited_for(self) -> list[Any]:
        """What becomes readable once there is something to take."""
        return list(self._fetcher.in_flight)

    def next_try_seconds(self) -> float | None:
        """When `prepare` has something to do even if nothing comes in."""
        moments = [self._fetcher.next_try_seconds()]
        if self._client.unknown_topics(self.positions.partitions):
            moments.append(self._ask_topics_at_seconds)
        return min((moment for moment in moments if moment is not None), default=None)

    def take(self, max_records: int) -> list[tuple[TopicPartition, pa.RecordBatch]]:
        """Up to so many of the records that are here; positions move behind them.

        Partitions take turns, and what comes after is asked for. Raises `CorruptRecordError` with
        the position still before what is wrong; where others had records first, in the next call.
        """
        self._fetcher.take()
        found: list[tuple[TopicPartition, pa.RecordBatch]] = []
        left = max_records
        for position in self._in_turn():
            try:
                for batch in self._hand_out(position, left):
                    found.append((position.topic_partition, batch))
                    left -= batch.num_rows
            except CorruptRecordError:
                position.refetch()
                if not found:
                    raise
                break
            if left <= 0:
                break
        self._fetcher.ask()
        return found

    def _in_turn(self) -> list[Position]:
        """Those that have something, beginning after the one that was last."""
        positions = list(self.positions)
        names = [each.topic_partition for each in positions]
        start = names.index(self._last) + 1 if self._last in names else 0
        in_turn = positions[start:] + positions[:start]
        return [each for each in in_turn if each.fetched and not each.paused]

    def _hand_out(self, position: Position, max_records: int) -> Iterator[pa.RecordBatch]:
        while max_records > 0 and position.fetched:
            unread = position.fetched[0]
            if position.next is None or unread.next_offset != position.next.offset:
                position.refetch()
                return
            batch = unread.take(max_records)
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

    def _find_leaders(self, deadline: Deadline) -> None:
        """Asks for topics whose leaders are unknown, but not again and again."""
        unknown = self._client.unknown_topics(self.positions.partitions)
        if not unknown:
            self._topic_tries = 0
            return
        if time.monotonic() < self._ask_topics_at_seconds:
            return
        self._topic_tries += 1
        pause_seconds = self._client.pause_seconds(self._topic_tries)
        self._ask_topics_at_seconds = time.monotonic() + pause_seconds
        for topic in self._client.topics(unknown, deadline):
            if topic.error.code and not topic.error.retriable:
                raise BrokerError(topic.error, f"Metadata of {topic.name}")

    def find(self, unknown: Collection[Position], deadline: Deadline) -> None:
        """Has these begin where the group committed, or else by the policy.

        Raises `NoOffsetError`, `KafkaTimeoutError`, `BrokerError`.
        """
        uncommitted = [each.topic_partition for each in unknown if each.reset_to is None]
        if uncommitted:
            committed = self._committed(uncommitted, _left_ms(deadline))
            for where, (offset, leader_epoch) in committed.items():
                self.positions[where].seek(offset, leader_epoch)
        self._reset_positions([each for each in unknown if each.next is None], deadline)

    def _reset_positions(self, unknown: Collection[Position], deadline: Deadline) -> None:
        policies = {each.topic_partition: each.reset_to or self._reset for each in unknown}
        nowhere = [where for where, policy in policies.items() if policy.is_none]
        if nowhere:
            raise NoOffsetError(nowhere)
        timestamps = {where: policy.timestamp_now() for where, policy in policies.items()}
        self._seek_to(timestamps, deadline)

    def _seek_to(self, timestamps: Mapping[TopicPartition, int], deadline: Deadline) -> None:
        level = self._decoding.fetch.isolation_level
        found = list_offsets(self._client, timestamps, level, timeout_ms=_left_ms(deadline))
        late = dict.fromkeys(
            (where for where, at in found.items() if at.offset == NO_OFFSET), LATEST_TIMESTAMP
        )
        found |= list_offsets(self._client, late, level, timeout_ms=_left_ms(deadline))
        for where, at in found.items():
            self.positions[where].seek(*at)
            logger.info("%s: begins at offset %d", where, at.offset)

    # -- whether the log is still the same ---------------------------------------------------------

    def _check_logs(self, deadline: Deadline) -> None:
        """Where the leader is a new one, its log must reach as far as was read (KIP-320)."""
        moved = {
            each.topic_partition: each.next.leader_epoch
            for each in self.positions
            if each.next is not None and 0 <= each.checked_epoch < self._leader_epoch(each)
        }
        ends = epoch_end_offsets(self._client, moved, timeout_ms=_left_ms(deadline))
        for where, end in ends.items():
            position = self.positions[where]
            if position.next is not None and 0 <= end < position.next.offset:
                self._truncated(position, LogTruncatedError(where, position.next.offset, end))
            position.checked_epoch = self._leader_epoch(position)

    def _leader_epoch(self, position: Position) -> int:
        try:
            return self._client.cluster.leader(position.topic_partition)[1]
        except BrokerError:
            return -1

    def _truncated(self, position: Position, error: LogTruncatedError) -> None:
        if self._reset.is_none:
            raise error
        logger.warning("%s; going on there", error)
        position.seek(error.diverged)

    def _out_of_range(self, position: Position) -> None:
        """By the policy, or raises `OffsetOutOfRangeError`."""
        if position.fetched:
            return  # What is here comes first, and this will be asked for again.
        where, offset = position.topic_partition, position.fetch_offset
        if self._reset.is_none:
            raise out_of_range(self._client, where, offset)
        logger.warning("%s: offset %d is not in the log; going on by the policy", where, offset)
        position.reset(self._reset)


def _at_least(deadline: Deadline) -> Deadline:
    least = Deadline.after_ms(_LEAST_MS)
    return least if deadline.at_seconds < least.at_seconds else deadline


def _left_ms(deadline: Deadline) -> int:
    return int(deadline.remaining_seconds() * 1000)
