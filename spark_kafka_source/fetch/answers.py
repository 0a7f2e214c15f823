"""The answers to fetches: they bring records, a nearer replica or an error for each position.

https://kafka.apache.org/protocol#The_Messages_Fetch, KIP-392 for replicas, KIP-951 for leaders.
"""

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from spark_kafka_source.client import LEADER, Broker, KafkaClient
from spark_kafka_source.errors import Remedy, error_code
from spark_kafka_source.fetch.config import FetchConfig
from spark_kafka_source.fetch.error_handler import ErrorHandler
from spark_kafka_source.fetch.losses import OFFSET_OUT_OF_RANGE
from spark_kafka_source.fetch.positions import Fetched, Position
from spark_kafka_source.fetch.request import PartitionFetch
from spark_kafka_source.logs import logger_of
from spark_kafka_source.protocol.messages.fetch import FetchResponse, PartitionData
from spark_kafka_source.records import AbortedTransaction, Chunk, RecordLimit, chunks, next_offset
from spark_kafka_source.records.batch import MAX_OFFSET

logger = logger_of(__name__)

# A leader takes this long, by default, to see that a replica has fallen behind.
_WITHOUT_RACK_SECONDS = 30.0


@dataclass(eq=False, slots=True)
class Answers:
    """Puts answers into positions. `on_out_of_range` gets positions whose offset is gone."""

    client: KafkaClient
    config: FetchConfig
    limit: RecordLimit
    error_handler: ErrorHandler
    on_out_of_range: Callable[[Position], None]
    without_rack_until_seconds: float = 0.0

    def put(
        self,
        position: Position,
        broker: Broker,
        fetch: PartitionFetch,
        data: PartitionData,
        answer: FetchResponse,
    ) -> Fetched | None:
        """Put the data of one partition into its position. Return its records, or None.

        Data for another offset or another log than the position's is dropped. Raises `BrokerError`
        for lasting errors.
        """
        asked = fetch.partition
        if asked.fetch_offset != position.fetch_offset or position.next is None:
            return None  # The position has moved since the request.
        if not position.is_checked((broker, fetch.topic_id, asked.current_leader_epoch)):
            return None  # The leader or the topic is another one since the request.
        if data.error_code:
            self._handle_error(position, broker, data, answer)
            return None
        position.next_try.reset()
        position.high_watermark = data.high_watermark
        position.last_stable_offset = data.last_stable_offset
        if fetch.topic_id.int:
            position.topic_id = fetch.topic_id
        if data.preferred_read_replica >= 0:
            self._use_replica(position, data.preferred_read_replica)
        if not data.records:
            return None
        fetched = Fetched(
            asked.fetch_offset,
            asked.current_leader_epoch,
            self._chunks(position, data),
            size_bytes=len(data.records),
            asked_bytes=asked.partition_max_bytes,
            node_id=broker.node_id,
        )
        position.fetched.append(fetched)
        position.fetch_offset = next_offset(memoryview(data.records)) or asked.fetch_offset
        return fetched

    def _chunks(self, position: Position, data: PartitionData) -> Iterator[Chunk]:
        return chunks(
            memoryview(data.records or b""),
            topic_partition=position.topic_partition,
            position=position.fetch_offset,
            end=MAX_OFFSET if position.end is None else position.end,
            check_crcs=self.config.check_crcs,
            isolation_level=self.config.isolation_level,
            chunk_bytes=self.config.chunk_bytes,
            limit=self.limit,
            aborted=[
                AbortedTransaction(aborted.producer_id, aborted.first_offset)
                for aborted in data.aborted_transactions or ()
            ],
        )

    # -- replicas ----------------------------------------------------------------------------------

    def rack_id(self) -> str:
        """Return the rack to send to leaders; empty for a while after a replica was left."""
        is_left_out = time.monotonic() < self.without_rack_until_seconds
        return "" if is_left_out else self.config.client_rack

    def nearest(self, position: Position, leader: Broker, now_seconds: float) -> Broker:
        """Return the broker to fetch from: the leader, or the replica that the leader named."""
        if position.replica_id is None or now_seconds > position.replica_until_seconds:
            position.replica_id = None
            return leader
        return self.client.cluster.brokers.get(position.replica_id, leader)

    def leave_replica(self, position: Position) -> None:
        """Fetch from the leader, and send no rack for a while.

        With the rack the leader would name the same replica again.
        """
        position.replica_id = None
        self.without_rack_until_seconds = time.monotonic() + _WITHOUT_RACK_SECONDS

    def _use_replica(self, position: Position, node_id: int) -> None:
        if node_id not in self.client.cluster.brokers:  # The broker may be new.
            self.client.cluster.forget_leaders()
            self.leave_replica(position)
            return
        position.replica_id = node_id
        position.replica_until_seconds = (
            time.monotonic() + self.client.config.metadata_max_age_ms / 1000
        )

    # -- errors ------------------------------------------------------------------------------------

    def _handle_error(
        self, position: Position, broker: Broker, data: PartitionData, answer: FetchResponse
    ) -> None:
        where = position.topic_partition
        code = error_code(data.error_code)
        what = f"Fetch of {where} at offset {position.fetch_offset}"
        error = LEADER.refusal(data.error_code, what, where)
        if position.replica_id == broker.node_id:
            self.leave_replica(position)  # The leader may not have this error.
            self.client.recover(error)
        elif code == OFFSET_OUT_OF_RANGE:
            self.on_out_of_range(position)
        elif not error.retriable:
            raise error
        elif not self.client.cluster.learn_named(where, data, answer):
            is_first = code in LEADER.also_temporary and not position.next_try.tries
            logger.log(logging.WARNING if is_first else logging.DEBUG, "%s; trying again", error)
            if error.remedy is Remedy.REFRESH_METADATA:
                position.doubted_at_seconds = time.monotonic()
            self.client.recover(error)
            position.next_try.failed()
            self.error_handler.failed(error, position)
