"""Reads one range of offsets of one partition, start included and end not."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.consumer.config import FetchConfig
from spark_kafka_source.consumer.cursor import Cursor, KnownLog
from spark_kafka_source.consumer.losses import (
    LogTruncatedError,
    OffsetOutOfRangeError,
    RecordsLostError,
)
from spark_kafka_source.consumer.offsets import OffsetAndEpoch
from spark_kafka_source.errors import KafkaTimeoutError
from spark_kafka_source.net import Deadline
from spark_kafka_source.protocol import PartitionData
from spark_kafka_source.records import (
    AbortedTransaction,
    Chunk,
    RecordLimit,
    RecordTooLargeError,
    chunks,
    next_offset,
)
from spark_kafka_source.topic_partition import TopicPartition

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The records of a partition from `start` to the one before `end`.

    `topic_id` is that of the topic that was planned, and `leader_epoch` the one in which its log
    reached `end`, where they are known: another topic that took its name since is not read in its
    place, nor what another leader wrote in place of records that it never had.
    """

    topic_partition: TopicPartition
    start: int
    end: int
    topic_id: UUID | None = None
    leader_epoch: int = -1

    @property
    def size(self) -> int:
        """How many offsets it spans; there may be fewer records."""
        return self.end - self.start

    def __str__(self) -> str:
        return f"{self.topic_partition} [{self.start}, {self.end})"


class RangeReader:
    """Fetches one range; `chunks` is iterated once, in any one thread.

    `poll_timeout_ms` bounds the wait for records that were promised: where the log stays short
    of the range's end for that long, `KafkaTimeoutError` names partition and offset. With
    `skip_lost` records that are gone are passed over and the loss is logged, instead of raising
    `RecordsLostError`, and records larger than `max_record_bytes`, instead of raising
    `RecordTooLargeError`. What is corrupt is never passed over.
    """

    def __init__(
        self,
        client: KafkaClient,
        wanted: OffsetRange,
        config: FetchConfig,
        *,
        poll_timeout_ms: int = 120_000,
        skip_lost: bool = False,
        max_record_bytes: int = 256 << 20,
    ) -> None:
        known = KnownLog(wanted.topic_id, OffsetAndEpoch(wanted.end, wanted.leader_epoch))
        self._cursor = Cursor(client, wanted.topic_partition, known, config)
        self._wanted = wanted
        self._end = wanted.end
        self._config = config
        self._poll_timeout_ms = poll_timeout_ms
        self._skip_lost = skip_lost
        self._limit = RecordLimit(max_record_bytes, self._too_large)

    def chunks(self) -> Iterator[Chunk]:
        """The range's records in order of offset, checked and decompressed.

        Raises `RecordsLostError`, `CorruptRecordError`, `KafkaTimeoutError`, `BrokerError`.
        """
        position = self._wanted.start
        patience = Deadline.after_ms(self._poll_timeout_ms)
        while position < self._end:
            try:
                fetched = self._cursor.fetch(position)
            except RecordsLostError as error:
                position = self._after_loss(error, position)
                continue
            following = next_offset(memoryview(fetched.records or b""))
            if following is not None and position < following < self._end:
                self._cursor.ask_ahead(following)
            before, cut_batch_bytes = position, 0
            for chunk in self._chunks(fetched, position):
                position, cut_batch_bytes = chunk.next_offset, chunk.cut_batch_bytes
                yield chunk
                del chunk  # A record may be large: it is not to be kept until the next is there.
            if position > before:
                patience = Deadline.after_ms(self._poll_timeout_ms)
            elif cut_batch_bytes:
                self._cursor.ask_for(cut_batch_bytes, position)
            elif patience.expired:
                raise self._starved(position, fetched)

    def _after_loss(self, error: RecordsLostError, position: int) -> int:
        """Where to go on: after what is gone, or where it is only what comes later, where we are.

        The range ends where nothing is left of it.
        """
        if not self._skip_lost:
            raise error
        lost_from, lost_to = error.offset, self._end
        if isinstance(error, OffsetOutOfRangeError) and error.offset < error.earliest:
            lost_to = min(error.earliest, self._end)
        logger.warning(
            "%s: %s; offsets %d to %d are skipped", self._wanted, error, lost_from, lost_to
        )
        if isinstance(error, LogTruncatedError):
            self._end = min(error.offset, self._end)
            return position
        return lost_to

    def _too_large(self, error: RecordTooLargeError) -> None:
        if not self._skip_lost:
            raise error
        logger.warning("%s: %s; skipped", self._wanted, error)

    def _chunks(self, fetched: PartitionData, position: int) -> Iterator[Chunk]:
        return chunks(
            memoryview(fetched.records or b""),
            topic_partition=self._wanted.topic_partition,
            position=position,
            end=self._end,
            check_crcs=self._config.check_crcs,
            isolation_level=self._config.isolation_level,
            limit=self._limit,
            aborted=[
                AbortedTransaction(aborted.producer_id, aborted.first_offset)
                for aborted in fetched.aborted_transactions or ()
            ],
        )

    def _starved(self, position: int, fetched: PartitionData) -> KafkaTimeoutError:
        return KafkaTimeoutError(
            f"Cannot read {self._wanted}: nothing at offset {position} within "
            f"{self._poll_timeout_ms} ms (kafkaConsumer.pollTimeoutMs); the partition's high "
            f"watermark is {fetched.high_watermark}, its last stable offset "
            f"{fetched.last_stable_offset}"
        )
