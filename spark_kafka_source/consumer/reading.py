"""Reads the partitions of a consumer: finds where to begin, fetches, and hands records out."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple
from uuid import UUID

import pyarrow as pa

from spark_kafka_source.client import KafkaClient, Topic
from spark_kafka_source.consumer.fetcher import FetchDone, Fetcher, is_checked
from spark_kafka_source.consumer.log_checks import out_of_range
from spark_kafka_source.consumer.lookups import Lookup, Lookups
from spark_kafka_source.consumer.losses import (
    UNKNOWN_TOPIC,
    LogTruncatedError,
    RecordsLostError,
    TopicGoneError,
)
from spark_kafka_source.consumer.offset_reset import ResetPolicy
from spark_kafka_source.consumer.offsets import OffsetAndEpoch, epoch_end_offsets
from spark_kafka_source.consumer.partition_lookups import PartitionLookups
from spark_kafka_source.consumer.positions import Position, Positions
from spark_kafka_source.consumer.starts import Committed, Starts, Wanted
from spark_kafka_source.consumer.unread import Decoding, Unread
from spark_kafka_source.errors import BrokerError, CorruptRecordError, KafkaError, KafkaTimeoutError
from spark_kafka_source.net import Deadline
from spark_kafka_source.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

# How long one lookup goes on. What went wrong until then is logged, and it is asked for again.
_LOOKUP_MS = 10_000


class _Log(NamedTuple):
    """What is to be compared: where the epoch of a position ends, in the log of this leader."""

    reached_epoch: int
    leader_epoch: int


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
        self._log_lookups: PartitionLookups[_Log, int] = PartitionLookups(
            lookups,
            self.positions,
            self._find_ends,
            is_current=self._is_current,
            on_answer=self._compare,
            on_none=self._later,
        )
        self._loss_lookups: PartitionLookups[int, RecordsLostError] = PartitionLookups(
            lookups,
            self.positions,
            _find_losses,
            is_current=_is_there,
            on_answer=self._lost,
            on_none=self._later,
        )

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
            self._loss_lookups.take,
            self._log_lookups.take,
            self._check_logs,
            self._start_lookups.take,
            self._find_positions,
        ):
            try:
                step()
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
        if self._topics is None and self._unknown_topics():
            moments.append(self._ask_topics_at_seconds)
        if not all(map(self._log_lookups.is_asked, self._unchecked())):
            moments.append(self._looked_at_seconds)
        return min((moment for moment in moments if moment is not None), default=None)

    def take(self, max_records: int) -> list[tuple[TopicPartition, pa.RecordBatch]]:
        """Up to so many of the records that are here; positions move behind them.

        Partitions take turns, and what comes after is asked for. Raises `CorruptRecordError` with
        the position still before what is wrong; where there were records first, in the next call.
        After Ctrl-C all positions are where they were: nobody was given the records.
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
        if position.paused or position.is_held:
            return False
        if (
            position.next is None
            or position.next.leader_epoch < 0
            or (log := self._log(position)) is None
        ):
            return True
        topic_id, leader_epoch = log
        return position.is_elsewhere(topic_id) or leader_epoch <= position.checked_epoch

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
                lambda client: client.topics(unknown, Deadline.after_ms(_LOOKUP_MS))
            )

    def _take_topics(self, topics: list[Topic]) -> None:
        for topic in topics:
            error = BrokerError(topic.error, f"Metadata of {topic.name}")
            if topic.error.code and not topic.error.retriable:
                raise error
            # Once, until it is there: it may be asked for ten times a second.
            if topic.error.code and topic.name not in self._told:
                logger.warning("%s; trying again", error)
            (self._told.add if topic.error.code else self._told.discard)(topic.name)

    def _find_positions(self) -> None:
        """Those whose leaders are known; the others a while later."""
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
        self.starts.find(client, wanted, found, _LOOKUP_MS)

    def _begin(self, position: Position, at: OffsetAndEpoch) -> None:
        position.seek(*at)
        logger.info("%s: begins at offset %d", position.topic_partition, at.offset)

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

    # -- whether the log is still the same ---------------------------------------------------------

    def _unchecked(self) -> dict[TopicPartition, tuple[UUID, int]]:
        """The logs of positions whose leader is another than that whose log was seen last."""
        now_seconds = time.monotonic()
        return {
            each.topic_partition: log
            for each in self.positions
            if each.next is not None
            and each.not_before_seconds <= now_seconds
            and (log := self._log(each)) is not None
            and not is_checked(each, *log)
        }

    def _log(self, position: Position) -> tuple[UUID, int] | None:
        """The topic's id, and the leader's epoch; None where no leader is known.

        Asked once, and not for whether there is a leader before: another thread may learn that
        there is none meanwhile.
        """
        cluster, where = self._client.cluster, position.topic_partition
        try:
            _, leader_epoch = cluster.leader(where)
        except BrokerError:
            return None
        return cluster.topics[where.topic].topic_id, leader_epoch

    def _check_logs(self) -> None:
        """Where the leader is a new one, its log must reach as far as was read (KIP-320)."""
        moved: dict[TopicPartition, _Log] = {}
        for where, (topic_id, leader_epoch) in self._unchecked().items():
            each = self.positions[where]
            if each.is_elsewhere(topic_id):
                self._made_anew(each)
            elif leader_epoch < each.checked_epoch:
                # Who described the topic is behind those who wrote to it, or committed.
                self._client.cluster.forget_leaders()
                self._later(each)
            elif each.next is not None and each.next.leader_epoch >= 0:
                moved[where] = _Log(each.next.leader_epoch, leader_epoch)
            else:
                each.checked_epoch = leader_epoch
        self._log_lookups.ask(moved)

    def _find_ends(
        self,
        client: KafkaClient,
        logs: Mapping[TopicPartition, _Log],
        found: dict[TopicPartition, int],
    ) -> None:
        epochs = {where: log.reached_epoch for where, log in logs.items()}
        woken = self._lookups.done.wake
        epoch_end_offsets(client, epochs, timeout_ms=_LOOKUP_MS, found=found, on_answer=woken)

    def _is_current(self, position: Position, log: _Log) -> bool:
        """Whether neither the position nor the leader has moved on to another epoch since."""
        if position.next is None or position.next.leader_epoch != log.reached_epoch:
            return False
        found = self._log(position)
        return found is not None and found[1] == log.leader_epoch

    def _compare(self, position: Position, end: int) -> None:
        """`end` is that of the epoch of the position, in the log that the leader has."""
        if position.next is not None and 0 <= end < position.next.offset:
            where = position.topic_partition
            self._truncated(position, LogTruncatedError(where, position.next.offset, end))
        elif 0 <= end < position.fetch_offset:
            position.refetch()  # What was fetched ahead may be of the log that was cut.
        log = self._log(position)
        if log is not None:
            position.checked_epoch = log[1]

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
        """Goes on by the policy; without one, finds out what there is to read instead."""
        if position.fetched:
            return  # What is here comes first, and this will be asked for again.
        where, offset = position.topic_partition, position.fetch_offset
        if self._reset.is_none:
            self._loss_lookups.ask({where: offset})
            self._later(position)
            return
        logger.warning("%s: offset %d is not in the log; going on by the policy", where, offset)
        position.reset(self._reset)

    def _lost(self, _: Position, error: RecordsLostError) -> None:
        raise error


def _is_unknown(position: Position, policy: ResetPolicy | None) -> bool:
    return position.next is None and position.reset_to is policy


def _is_there(position: Position, offset: int) -> bool:
    return position.next is not None and position.next.offset == offset


def _find_losses(
    client: KafkaClient,
    offsets: Mapping[TopicPartition, int],
    found: dict[TopicPartition, RecordsLostError],
) -> None:
    for where, offset in offsets.items():
        found[where] = out_of_range(client, where, offset)


def _may_heal(error: KafkaError) -> bool:
    is_unknown = isinstance(error, BrokerError) and error.error in UNKNOWN_TOPIC
    return error.retriable or is_unknown or isinstance(error, KafkaTimeoutError)
