"""Reading of a consumer's partitions: start offsets, fetches, records."""

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from spark_kafka_source.client import LOOKUP_MS, KafkaClient
from spark_kafka_source.consumer.consumer_records import PartitionRecords
from spark_kafka_source.consumer.decoding import Decoding, NotReadyYetError, UnreadRecords
from spark_kafka_source.consumer.reset import Resetting
from spark_kafka_source.consumer.start_offsets import Committed, StartOffsets, StartPolicies
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.fetch.fetcher import FetchDone
from spark_kafka_source.fetch.offset_reset import ResetPolicy
from spark_kafka_source.fetch.offsets import OffsetAndEpoch
from spark_kafka_source.fetch.partition_lookups import PartitionLookups
from spark_kafka_source.fetch.positions import Fetched, Position
from spark_kafka_source.fetch.reader import Describe, LogReader
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net import Conversations
from spark_kafka_source.topic_partition import TopicPartition

logger = logger_of(__name__)

# Each poll reads what has come. Only after a longer time without one does a broker seem silent.
_LONG_SECONDS = 1.0


class _KeptError(NamedTuple):
    """An error for the next call. It is about `position` at `at`, unless that is None."""

    error: Exception
    position: Position | None = None
    at: OffsetAndEpoch | None = None


class Reading:
    """Positions of a consumer, and the records fetched from there. No method waits."""

    def __init__(
        self,
        client: KafkaClient,
        decoding: Decoding,
        reset: ResetPolicy,
        committed: Committed,
        *,
        lookups: Conversations,
        on_fetch: Callable[[FetchDone], None] = lambda _: None,
        describe: Describe | None = None,
    ) -> None:
        self._client = client
        self._decoding = decoding
        self._reader = LogReader(
            client,
            decoding.fetch,
            Resetting(reset, client.history),
            lookups,
            limit=decoding.limit,
            keeps_sessions=True,
            on_fetch=on_fetch,
            describe=describe,
        )
        self.positions = self._reader.positions
        self._unread: WeakKeyDictionary[Fetched, UnreadRecords] = WeakKeyDictionary()
        self._last: TopicPartition | None = None
        self._kept: _KeptError | None = None
        self.start_offsets = StartOffsets(client, committed, reset, decoding.fetch.isolation_level)
        self._start_lookups: PartitionLookups[ResetPolicy | None, OffsetAndEpoch]
        self._start_lookups = PartitionLookups(
            lookups,
            self.positions,
            self._find_starts,
            is_current=_is_unknown,
            on_answer=self._begin,
        )

    async def close(self) -> None:
        """End the fetch sessions."""
        await self._reader.fetcher.close()

    def extend_deadlines(self) -> None:
        """Restart the timeouts of fetches if the last poll was long ago."""
        self._reader.fetcher.extend_deadlines(_LONG_SECONDS)

    def prepare(self) -> None:
        """Find missing leaders and positions, and fetch records. Do not wait.

        Takes the answers since the last call, and asks for what is still missing. Raises errors
        that cannot heal. A later call retries after errors that can.
        """
        self._reader.look()
        self._reader.step(self._start_lookups.take)
        self._reader.step(self._find_positions)
        self._reader.fetcher.ask()

    @property
    def waited_for(self) -> list[Any]:
        """The objects that become readable once there is something to take."""
        return list(self._reader.fetcher.in_flight)

    def next_try_seconds(self) -> float | None:
        """Return when `prepare` has something to do even if nothing comes in."""
        return self._reader.next_try_seconds()

    def next_records(self, max_records: int) -> list[PartitionRecords]:
        """Return up to `max_records` fetched records, and move the positions behind them.

        Partitions take turns. The next records are fetched. Raises `CorruptRecordError`,
        `BadRecordError` and `RecordDeserializationError` with the position before the bad record.
        If there are records before it, the next call raises, unless the consumer has left that
        position. After Ctrl-C all positions are as before the call, because no caller got the
        records.
        """
        self._raise_kept()
        self._keep_error(self._reader.fetcher.take)
        before = [(position, position.next) for position in self.positions]
        try:
            parts = self._next_records(max_records)
            self._keep_error(self._reader.fetcher.ask)
        except BaseException:
            for position, at in before:
                if position.next is not at:
                    position.next = at
                    position.refetch()
            raise
        if not parts:
            self._raise_kept()
        return parts

    def _next_records(self, max_records: int) -> list[PartitionRecords]:
        parts: list[PartitionRecords] = []
        left = max_records
        for position in self._in_turn():
            try:
                for part in self._hand_out(position, left):
                    parts.append(part)
                    left -= part.batch.num_rows
            except NotReadyYetError:
                continue
            except Exception as error:
                position.refetch()
                self._last = position.topic_partition
                self._kept = self._kept or _KeptError(error, position, position.next)
                break
            if left <= 0:
                break
        return parts

    def _keep_error(self, step: Callable[[], object]) -> None:
        """Keep an error of `step` until the records are returned: positions are behind them."""
        try:
            step()
        except KafkaError as error:
            self._kept = self._kept or _KeptError(error)

    def _raise_kept(self) -> None:
        kept, self._kept = self._kept, None
        if kept is not None and (kept.position is None or self._is_there(kept.position, kept.at)):
            raise kept.error

    def _is_there(self, position: Position, at: OffsetAndEpoch | None) -> bool:
        """Return whether the consumer still reads this position, and is at that offset."""
        is_read = any(other is position for other in self.positions)
        return is_read and not position.paused and position.next == at

    def _in_turn(self) -> list[Position]:
        """Return the positions with records, from the partition after the last read one on."""
        positions = list(self.positions)
        names = [position.topic_partition for position in positions]
        start = names.index(self._last) + 1 if self._last in names else 0
        in_turn = positions[start:] + positions[:start]
        return [position for position in in_turn if self._reader.is_ready(position)]

    def _hand_out(self, position: Position, max_records: int) -> Iterator[PartitionRecords]:
        while max_records > 0 and position.fetched:
            fetched = position.fetched[0]
            unread = self._unread_of(position, fetched)
            if position.next is None or unread.next_offset != position.next.offset:
                position.refetch()
                return
            try:
                records = unread.next_records(max_records)
            finally:  # `next_records` may have passed records that are not shown.
                position.handed_out(unread.next_offset, unread.leader_epoch)
            if records is None:
                position.fetched.popleft()
                if unread.next_offset == unread.offset and unread.cut_batch_bytes:
                    self._reader.ask_for_more(position, fetched, unread.cut_batch_bytes)
                continue
            self._last = position.topic_partition
            max_records -= records.batch.num_rows
            yield records

    def _unread_of(self, position: Position, fetched: Fetched) -> UnreadRecords:
        """Return the unread rest of a fetch. It is dropped together with the fetch."""
        unread = self._unread.get(fetched)
        if unread is None:
            unread = UnreadRecords(position.topic_partition, fetched, self._decoding)
            self._unread[fetched] = unread
        return unread

    # -- where to begin ----------------------------------------------------------------------------

    def _find_positions(self) -> None:
        """Ask for the start offsets of partitions whose leader is known."""
        now_seconds = time.monotonic()
        self._start_lookups.ask(
            {
                position.topic_partition: position.reset_to
                for position in self.positions
                if position.next is None
                and position.next_try.at_seconds <= now_seconds
                and self._client.cluster.log(position.topic_partition) is not None
            }
        )

    async def _find_starts(
        self, policies: StartPolicies, offsets: dict[TopicPartition, OffsetAndEpoch]
    ) -> None:
        await self.start_offsets.find(policies, offsets, LOOKUP_MS)

    def _begin(self, position: Position, _: ResetPolicy | None, at: OffsetAndEpoch) -> None:
        position.seek(*at)
        logger.info("%s: begins at offset %d", position.topic_partition, at.offset)


def _is_unknown(position: Position, policy: ResetPolicy | None) -> bool:
    return position.next is None and position.reset_to is policy
