"""Reads the partitions of a consumer: finds where to begin, fetches, and hands records out."""

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any
from uuid import UUID

import pyarrow as pa

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.consumer.fetcher import FetchDone, Fetcher, is_checked
from spark_kafka_source.consumer.log_checks import out_of_range
from spark_kafka_source.consumer.losses import UNKNOWN_TOPIC, LogTruncatedError, TopicGoneError
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

# What has less time than it takes to connect would never come to anything; and who waits for one
# broker for longer would keep back what others have sent.
_STEP_MS = 5_000

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
        self._looked_at_seconds = 0.0
        self._error: Exception | None = None

    def close(self) -> None:
        """Ends the fetch sessions."""
        self._fetcher.close()

    def prepare(self) -> None:
        """Finds leaders and positions as far as they are missing, and asks for records there.

        Raises what cannot heal; what can is tried again by a later call. Takes some seconds where
        a broker has to be asked that does not answer.
        """
        self._looked_at_seconds = time.monotonic()
        for step in (self._find_leaders, self._check_logs, self._find_positions):
            try:
                step(Deadline.after_ms(_STEP_MS))
            except KafkaError as error:
                if not _may_heal(error):
                    raise
                level = logging.DEBUG if isinstance(error, BrokerError) else logging.WARNING
                logger.log(level, "%s; trying again", error)
        self._fetcher.ask()

    @property
    def waited_for(self) -> list[Any]:
        """What becomes readable once there is something to take."""
        return list(self._fetcher.in_flight)

    def next_try_seconds(self) -> float | None:
        """When `prepare` has something to do even if nothing comes in."""
        moments = [self._fetcher.next_try_seconds(self._looked_at_seconds)]
        if self._client.unknown_topics(self.positions.partitions):
            moments.append(self._ask_topics_at_seconds)
        if self._unchecked():
            moments.append(self._looked_at_seconds)
        return min((moment for moment in moments if moment is not None), default=None)

    def take(self, max_records: int) -> list[tuple[TopicPartition, pa.RecordBatch]]:
        """Up to so many of the records that are here; positions move behind them.

        Partitions take turns, and what comes after is asked for. Raises `CorruptRecordError` with
        the position still before what is wrong; where there were records first, in the next call.
        """
        self._raise_kept()
        self._keep_error(self._fetcher.take)
        found: list[tuple[TopicPartition, pa.RecordBatch]] = []
        left = max_records
        for position in self._in_turn():
            try:
                for batch in self._hand_out(position, left):
                    found.append((position.topic_partition, batch))
                    left -= batch.num_rows
            except Exception as error:
                position.refetch()
                self._last = position.topic_partition
                self._error = self._error or error
                break
            if left <= 0:
                break
        self._keep_error(self._fetcher.ask)
        if not found:
            self._raise_kept()
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
            error = BrokerError(topic.error, f"Metadata of {topic.name}")
            if topic.error.code and not topic.error.retriable:
                raise error
            if topic.error.code:
                logger.warning("%s; trying again", error)

    def _find_positions(self, deadline: Deadline) -> None:
        """Those whose leaders are known, or that were committed; the others a while later."""
        now_seconds = time.monotonic()
        unknown = [
            each
            for each in self.positions
            if each.next is None and each.not_before_seconds <= now_seconds
        ]
        try:
            self._seek_to_committed(unknown, deadline)
            left = [each for each in unknown if each.next is None]
            self._check_policies(left)
            self._reset_positions([each for each in left if self._has_leader(each)], deadline)
        except KafkaError as error:
            if not _may_heal(error):
                raise
            logger.warning("%s; trying again", error)
        for each in unknown:
            if each.next is None:
                self._later(each)

    def _later(self, position: Position) -> None:
        position.tries += 1
        pause_seconds = self._client.pause_seconds(position.tries)
        position.not_before_seconds = time.monotonic() + pause_seconds

    def _has_leader(self, position: Position) -> bool:
        try:
            self._client.cluster.leader(position.topic_partition)
        except BrokerError:
            return False
        return True

    def find(self, unknown: Collection[Position], deadline: Deadline) -> None:
        """Has these begin where the group committed, or else by the policy.

        Raises `NoOffsetError`, `KafkaTimeoutError`, `BrokerError`.
        """
        self._seek_to_committed(unknown, deadline)
        left = [each for each in unknown if each.next is None]
        self._check_policies(left)
        self._reset_positions(left, deadline)

    def _seek_to_committed(self, unknown: Collection[Position], deadline: Deadline) -> None:
        uncommitted = [each.topic_partition for each in unknown if each.reset_to is None]
        if uncommitted:
            committed = self._committed(uncommitted, deadline.remaining_ms())
            for where, (offset, leader_epoch) in committed.items():
                self.positions[where].seek(offset, leader_epoch)

    def _policy(self, position: Position) -> ResetPolicy:
        return position.reset_to or self._reset

    def _check_policies(self, unknown: Collection[Position]) -> None:
        nowhere = [each.topic_partition for each in unknown if self._policy(each).is_none]
        if nowhere:
            raise NoOffsetError(nowhere)

    def _reset_positions(self, unknown: Collection[Position], deadline: Deadline) -> None:
        timestamps = {each.topic_partition: self._policy(each).timestamp_now() for each in unknown}
        self._seek_to(timestamps, deadline)

    def _seek_to(self, timestamps: Mapping[TopicPartition, int], deadline: Deadline) -> None:
        level = self._decoding.fetch.isolation_level
        found = list_offsets(self._client, timestamps, level, timeout_ms=deadline.remaining_ms())
        late = dict.fromkeys(
            (where for where, at in found.items() if at.offset == NO_OFFSET), LATEST_TIMESTAMP
        )
        found |= list_offsets(self._client, late, level, timeout_ms=deadline.remaining_ms())
        for where, at in found.items():
            self.positions[where].seek(*at)
            logger.info("%s: begins at offset %d", where, at.offset)

    # -- whether the log is still the same ---------------------------------------------------------

    def _unchecked(self) -> list[Position]:
        """Those whose leader is another than that whose log was seen last."""
        now_seconds = time.monotonic()
        return [
            each
            for each in self.positions
            if each.next is not None
            and each.not_before_seconds <= now_seconds
            and self._has_leader(each)
            and not is_checked(each, *self._log(each))
        ]

    def _log(self, position: Position) -> tuple[UUID, int]:
        """The topic's id, and the leader's epoch. Raises `BrokerError` where there is no leader."""
        cluster, where = self._client.cluster, position.topic_partition
        _, leader_epoch = cluster.leader(where)
        return cluster.topics[where.topic].topic_id, leader_epoch

    def _check_logs(self, deadline: Deadline) -> None:
        """Where the leader is a new one, its log must reach as far as was read (KIP-320)."""
        moved: dict[TopicPartition, int] = {}
        for each in self._unchecked():
            topic_id, leader_epoch = self._log(each)
            if each.is_elsewhere(topic_id):
                self._made_anew(each)
            elif leader_epoch < each.checked_epoch:
                # Who described the topic is behind those who wrote to it, or committed.
                self._client.cluster.forget_leaders()
                self._later(each)
            elif each.next is not None and each.next.leader_epoch >= 0:
                moved[each.topic_partition] = each.next.leader_epoch
            else:
                each.checked_epoch = leader_epoch
        try:
            ends = epoch_end_offsets(self._client, moved, timeout_ms=deadline.remaining_ms())
        except KafkaError:
            for where in moved:
                self._later(self.positions[where])
            raise
        for where, end in ends.items():
            self._compare(self.positions[where], end)

    def _compare(self, position: Position, end: int) -> None:
        """`end` is that of the epoch of the position, in the log that the leader has."""
        if position.next is not None and 0 <= end < position.next.offset:
            where = position.topic_partition
            self._truncated(position, LogTruncatedError(where, position.next.offset, end))
        elif 0 <= end < position.fetch_offset:
            position.refetch()  # What was fetched ahead may be of the log that was cut.
        if self._has_leader(position):
            position.checked_epoch = self._log(position)[1]

    def _made_anew(self, position: Position) -> None:
        """The topic was deleted and made anew: its offsets are those of other records."""
        if position.next is None or position.fetched:
            self._later(position)  # What is here comes first.
            return
        error = TopicGoneError(position.topic_partition, position.next.offset)
        if self._reset.is_none:
            raise error
        logger.warning("%s; another has its name, going on there by the policy", error)
        position.topic_id, position.checked_epoch = None, -1
        position.reset(self._reset)

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


def _may_heal(error: KafkaError) -> bool:
    is_unknown = isinstance(error, BrokerError) and error.error in UNKNOWN_TOPIC
    return error.retriable or is_unknown or isinstance(error, KafkaTimeoutError)
