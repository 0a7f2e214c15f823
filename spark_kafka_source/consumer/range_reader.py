"""Reads one range of offsets of one partition, start included and end not, by sessionless fetches.

https://kafka.apache.org/protocol#The_Messages_Fetch
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from spark_kafka_source.client import Broker, KafkaClient
from spark_kafka_source.consumer.config import FetchConfig
from spark_kafka_source.consumer.offsets import earliest_offsets, latest_offsets
from spark_kafka_source.errors import (
    BrokerError,
    CorruptRecordError,
    KafkaTimeoutError,
    ProtocolError,
    RemoteError,
    error_code,
    error_named,
)
from spark_kafka_source.net import Deadline
from spark_kafka_source.protocol import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionData,
)
from spark_kafka_source.records import AbortedTransaction, Chunk, chunks
from spark_kafka_source.topic_partition import TopicPartition

# Topics go by name up to v12, by id from v13 on; topics made before ids were have none (KIP-516).
_FETCH_BY_NAME = 12
_OFFSET_OUT_OF_RANGE = error_named("OFFSET_OUT_OF_RANGE")
_INCONSISTENT_TOPIC_ID = error_named("INCONSISTENT_TOPIC_ID")
_UNKNOWN_TOPIC = {
    error_named("UNKNOWN_TOPIC_OR_PARTITION"),
    error_named("UNKNOWN_TOPIC_ID"),
    _INCONSISTENT_TOPIC_ID,
}
# With pauses that double from a tenth of a second, some two seconds.
_MOST_REFUSALS = 5

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The records of a partition from `start` to the one before `end`.

    `topic_id` is that of the topic that was planned, where it is known: another topic that took
    its name since is not read in its place.
    """

    topic_partition: TopicPartition
    start: int
    end: int
    topic_id: UUID | None = None

    def __str__(self) -> str:
        return f"{self.topic_partition} [{self.start}, {self.end})"


class RecordsLostError(RemoteError):
    """Records of a range are not there any more. `offset` is the first of those not read."""

    def __init__(self, wanted: OffsetRange, offset: int, *details: int) -> None:
        super().__init__(wanted, offset, *details)
        self.wanted, self.offset = wanted, offset


class OffsetOutOfRangeError(RecordsLostError):
    """The log no longer, or not yet, has the offset that was asked for."""

    def __init__(self, wanted: OffsetRange, offset: int, earliest: int, latest: int) -> None:
        super().__init__(wanted, offset, earliest, latest)
        self.earliest, self.latest = earliest, latest

    def __str__(self) -> str:
        return (
            f"Cannot read {self.wanted}: offset {self.offset} is not in the log, which has "
            f"offsets {self.earliest} to {self.latest}; records were deleted or the topic made anew"
        )


class TopicGoneError(RecordsLostError):
    """The topic was deleted, and perhaps another created by its name."""

    def __str__(self) -> str:
        return f"Cannot read {self.wanted} from offset {self.offset} on: its topic was deleted"


class RangeReader:
    """Fetches one range; `chunks` is iterated once, in any one thread.

    `poll_timeout_ms` bounds the wait for records that were promised: where the log stays short
    of the range's end for that long, `KafkaTimeoutError` names partition and offset. With
    `skip_lost` records that are gone are passed over and the loss is logged, instead of raising
    `RecordsLostError`.
    """

    def __init__(
        self,
        client: KafkaClient,
        wanted: OffsetRange,
        config: FetchConfig,
        *,
        poll_timeout_ms: int = 120_000,
        skip_lost: bool = False,
    ) -> None:
        self._client = client
        self._wanted = wanted
        self._config = config
        self._poll_timeout_ms = poll_timeout_ms
        self._skip_lost = skip_lost
        self._fetch_bytes = config.max_partition_fetch_bytes
        self._replica: Broker | None = None

    def chunks(self) -> Iterator[Chunk]:
        """The range's records in order of offset, checked and decompressed.

        Raises `RecordsLostError`, `CorruptRecordError`, `KafkaTimeoutError`, `BrokerError`.
        """
        position = self._wanted.start
        patience = Deadline.after_ms(self._poll_timeout_ms)
        while position < self._wanted.end:
            try:
                fetched = self._fetch(position)
            except RecordsLostError as error:
                position = self._after_loss(error)
                continue
            before, cut_batch_bytes = position, 0
            for chunk in self._chunks(fetched, position):
                position, cut_batch_bytes = chunk.next_offset, chunk.cut_batch_bytes
                yield chunk
            if position > before:
                patience = Deadline.after_ms(self._poll_timeout_ms)
            elif cut_batch_bytes:
                self._ask_for(cut_batch_bytes, position)
            elif patience.expired:
                raise self._starved(position, fetched)

    def _after_loss(self, error: RecordsLostError) -> int:
        """Where to go on after what is gone: the end of the range where nothing is left of it."""
        if not self._skip_lost:
            raise error
        position = self._wanted.end
        if isinstance(error, OffsetOutOfRangeError) and error.offset < error.earliest:
            position = min(error.earliest, position)
        logger.warning("%s; offsets %d to %d are skipped", error, error.offset, position)
        return position

    def _chunks(self, fetched: PartitionData, position: int) -> Iterator[Chunk]:
        return chunks(
            memoryview(fetched.records or b""),
            topic_partition=self._wanted.topic_partition,
            position=position,
            end=self._wanted.end,
            check_crcs=self._config.check_crcs,
            isolation_level=self._config.isolation_level,
            aborted=[
                AbortedTransaction(aborted.producer_id, aborted.first_offset)
                for aborted in fetched.aborted_transactions or ()
            ],
        )

    def _fetch(self, position: int) -> PartitionData:
        what = f"Fetch of {self._wanted.topic_partition} at offset {position}"
        refusals = 0

        def attempt(deadline: Deadline) -> PartitionData:
            nonlocal refusals
            try:
                return self._fetch_once(position, deadline, what)
            except BrokerError as error:
                # Brokers hear of a topic one after another: only if it stays unknown, it is gone.
                refusals += error.error in _UNKNOWN_TOPIC
                if refusals > _MOST_REFUSALS:
                    raise TopicGoneError(self._wanted, position) from error
                raise

        try:
            return self._client.retrying(what, attempt)
        except BrokerError as error:
            if error.error == _OFFSET_OUT_OF_RANGE:
                raise self._out_of_range(position) from error
            raise

    def _fetch_once(self, position: int, deadline: Deadline, what: str) -> PartitionData:
        topic_partition = self._wanted.topic_partition
        leader, leader_epoch = self._client.leaders([topic_partition], deadline)[topic_partition]
        topic_id = self._client.cluster.topics[topic_partition.topic].topic_id
        if self._wanted.topic_id not in (None, topic_id):
            raise BrokerError(_INCONSISTENT_TOPIC_ID, what)
        request = self._request(position, topic_id, leader_epoch)
        if self._replica is None:
            return self._ask(leader, request, deadline, what)
        try:
            return self._ask(self._replica, request, deadline, what)
        except RemoteError:
            # It may be gone, or behind: only the leader knows what there is.
            self._replica = None
            return self._ask(leader, request, deadline, what)

    def _ask(
        self, broker: Broker, request: FetchRequest, deadline: Deadline, what: str
    ) -> PartitionData:
        by_name = not request.topics[0].topic_id.int
        answer = self._client.send(
            request, broker, deadline, max_version=_FETCH_BY_NAME if by_name else None
        )
        if answer.error_code:
            raise BrokerError(error_code(answer.error_code), what)
        partitions = [partition for topic in answer.responses for partition in topic.partitions]
        wanted = [self._wanted.topic_partition.partition]
        if [partition.partition_index for partition in partitions] != wanted:
            raise ProtocolError(f"{what}: the answer is not of this partition")
        if partitions[0].error_code:
            raise BrokerError(error_code(partitions[0].error_code), what)
        # A replica in our rack, where the leader names one, costs less to read from (KIP-392).
        preferred = self._client.cluster.brokers.get(partitions[0].preferred_read_replica)
        self._replica = preferred or self._replica
        return partitions[0]

    def _request(self, position: int, topic_id: UUID, leader_epoch: int) -> FetchRequest:
        config = self._config
        partition = FetchPartition(
            partition=self._wanted.topic_partition.partition,
            current_leader_epoch=leader_epoch,
            fetch_offset=position,
            partition_max_bytes=self._fetch_bytes,
        )
        return FetchRequest(
            max_wait_ms=config.fetch_max_wait_ms,
            min_bytes=config.fetch_min_bytes,
            max_bytes=max(config.fetch_max_bytes, self._fetch_bytes),
            isolation_level=config.isolation_level,
            rack_id=config.client_rack,
            topics=[
                FetchTopic(
                    topic=self._wanted.topic_partition.topic,
                    topic_id=topic_id,
                    partitions=[partition],
                )
            ],
        )

    def _ask_for(self, batch_bytes: int, position: int) -> None:
        """Not one whole batch came back, though since KIP-74 a broker sends the first one whole."""
        most_bytes = self._client.config.connection.max_response_bytes // 2
        if not self._fetch_bytes < batch_bytes <= most_bytes:
            raise CorruptRecordError(
                self._wanted.topic_partition,
                position,
                f"a record batch of {batch_bytes} bytes did not come whole; asked for "
                f"{self._fetch_bytes} bytes, and for at most {most_bytes}",
            )
        self._fetch_bytes = batch_bytes

    def _starved(self, position: int, fetched: PartitionData) -> KafkaTimeoutError:
        return KafkaTimeoutError(
            f"Cannot read {self._wanted}: nothing at offset {position} within "
            f"{self._poll_timeout_ms} ms (kafkaConsumer.pollTimeoutMs); the partition's high "
            f"watermark is {fetched.high_watermark}, its last stable offset "
            f"{fetched.last_stable_offset}"
        )

    def _out_of_range(self, position: int) -> OffsetOutOfRangeError:
        where = self._wanted.topic_partition
        earliest = earliest_offsets(self._client, [where])[where]
        latest = latest_offsets(self._client, [where])[where].offset
        return OffsetOutOfRangeError(self._wanted, position, earliest, latest)
