"""One partition and how it is fetched from: by whom, how much at a time, and from which log.

https://kafka.apache.org/protocol#The_Messages_Fetch, by fetches without a session.
"""

import time
from dataclasses import dataclass
from uuid import UUID

from spark_kafka_source.client import LONGEST_SILENCE_MS, Asked, Broker, KafkaClient
from spark_kafka_source.consumer.config import FetchConfig
from spark_kafka_source.consumer.fetching import fetch_topics, highest_version
from spark_kafka_source.consumer.log_checks import out_of_range
from spark_kafka_source.consumer.losses import (
    INCONSISTENT_TOPIC_ID,
    OFFSET_OUT_OF_RANGE,
    UNKNOWN_TOPIC,
    LogTruncatedError,
    TopicGoneError,
    patient,
)
from spark_kafka_source.consumer.offsets import OffsetAndEpoch, epoch_end_offsets
from spark_kafka_source.denials import lacking
from spark_kafka_source.errors import (
    BrokerError,
    CorruptRecordError,
    ProtocolError,
    RemoteError,
    error_code,
    error_named,
)
from spark_kafka_source.net import Deadline
from spark_kafka_source.protocol import FetchRequest, FetchResponse, PartitionData
from spark_kafka_source.topic_partition import TopicPartition

# An answer that takes longer is not the broker's work, but the way there and back.
_LONG_WAIT_SECONDS = 0.01
# By default up to 2 MiB, and 8 MiB from afar; larger ones were slower again.
_NEAR_GROWTH, _FAR_GROWTH = 2, 8

_FENCED_LEADER_EPOCH = error_named("FENCED_LEADER_EPOCH")
_NOT_SAID = -1


@dataclass(frozen=True, slots=True)
class KnownLog:
    """What is known of the log that is to be read, from when the reading was planned.

    `topic_id` is None, and the leader epoch of `reached` is -1, where a broker does not tell them.
    """

    topic_id: UUID | None
    reached: OffsetAndEpoch
    """The log had all offsets below this one, in this leader epoch or those before it."""


@dataclass(frozen=True, slots=True)
class _Ahead:
    """A fetch that was asked for before its turn."""

    position: int
    broker: Broker
    asked: Asked[FetchResponse]


class Cursor:
    """Fetches from one partition, and from no other log that took its place.

    Each fetch is one request to the leader, or to a replica nearer by that the leader named
    (KIP-392). Another topic of the same name is not read, nor a log that was cut below what is
    known of it, by an unclean leader election (KIP-320).

    The next fetch is asked for while this one is worked on, and where answers still have to be
    waited for, fetches grow: so a distant broker is read as fast as a near one.
    """

    def __init__(
        self,
        client: KafkaClient,
        topic_partition: TopicPartition,
        known: KnownLog,
        config: FetchConfig,
    ) -> None:
        self._client = client
        self._topic_partition = topic_partition
        self._known = known
        self._config = config
        self._fetch_bytes = config.max_partition_fetch_bytes
        self._rack_id = config.client_rack
        self._replica: Broker | None = None
        self._checked_epoch = known.reached.leader_epoch
        self._ahead: _Ahead | None = None
        self._last_asked: tuple[Broker, FetchRequest] | None = None

    def fetch(self, position: int) -> PartitionData:
        """What the log has from `position` on, as much as one fetch brings; perhaps nothing.

        Raises `OffsetOutOfRangeError`, `TopicGoneError`, `LogTruncatedError` where records are
        lost, `BrokerError` and `KafkaTimeoutError`.
        """
        what = f"Fetch of {self._topic_partition} at offset {position}"

        def attempt(deadline: Deadline) -> PartitionData:
            return self._asked_before(position, what) or self._fetch_once(position, deadline, what)

        started_seconds = time.monotonic()
        try:
            fetched = self._client.retrying(what, patient(attempt))
        except BrokerError as error:
            if error.error in UNKNOWN_TOPIC:
                raise TopicGoneError(self._topic_partition, position) from error
            if error.error == OFFSET_OUT_OF_RANGE:
                raise out_of_range(self._client, self._topic_partition, position) from error
            raise
        self._adapt(len(fetched.records or b""), time.monotonic() - started_seconds)
        return fetched

    def ask_ahead(self, position: int) -> None:
        """Asks for what comes at `position`, so that it is on its way until `fetch` wants it."""
        if self._last_asked is None:
            return
        broker, request = self._last_asked
        request = self._request(position, request.topics[0].topic_id, _leader_epoch(request))
        deadline = Deadline.after_ms(self._client.config.default_api_timeout_ms)
        # What goes wrong here will be found, and healed, when it is the turn of this fetch.
        self._ahead = _Ahead(position, broker, self._ask(broker, request, deadline))

    def ask_for(self, batch_bytes: int, position: int) -> None:
        """Makes fetches larger, where one did not bring even one whole batch.

        Since KIP-74 a broker sends the first batch whole, whatever was asked for: a batch that was
        cut all the same is a `CorruptRecordError`.
        """
        most_bytes = self._client.config.connection.max_response_bytes // 2
        if not self._fetch_bytes < batch_bytes <= most_bytes:
            raise CorruptRecordError(
                self._topic_partition,
                position,
                f"a record batch of {batch_bytes} bytes did not come whole; asked for "
                f"{self._fetch_bytes} bytes, and for at most {most_bytes}",
            )
        self._fetch_bytes = batch_bytes

    def _adapt(self, size: int, waited_seconds: float) -> None:
        """A full answer was too small, and the more so where it had to be waited for."""
        if size >= self._fetch_bytes // 2:
            growth = _FAR_GROWTH if waited_seconds > _LONG_WAIT_SECONDS else _NEAR_GROWTH
            most_bytes = min(
                self._config.max_partition_fetch_bytes * growth, self._config.fetch_max_bytes
            )
            self._fetch_bytes = max(self._fetch_bytes, min(2 * self._fetch_bytes, most_bytes))

    def _asked_before(self, position: int, what: str) -> PartitionData | None:
        """The answer to a request made ahead; None where there is none, or not a good one."""
        ahead, self._ahead = self._ahead, None
        if ahead is None or ahead.position != position:
            return None
        # Its time runs from now on: it may have been here long before somebody wanted it.
        timeout_ms = self._client.config.connection.request_timeout_ms
        ahead.asked.deadline = Deadline.after_ms(timeout_ms)
        try:
            fetched = self._partition(self._answer(ahead.asked, ahead.broker), what)
        except RemoteError:
            self._leave_replica()
            return None
        return self._of_replica(fetched) if ahead.broker == self._replica else fetched

    def _fetch_once(self, position: int, deadline: Deadline, what: str) -> PartitionData:
        where = self._topic_partition
        leader, leader_epoch = self._client.leaders([where], deadline)[where]
        topic_id = self._client.cluster.topics[where.topic].topic_id
        if self._known.topic_id not in (None, topic_id):
            raise BrokerError(INCONSISTENT_TOPIC_ID, what)
        self._check_log(position, leader_epoch, what)
        request = self._request(position, topic_id, leader_epoch)
        if self._replica is None:
            return self._fetch_from(leader, request, deadline, what)
        try:
            return self._of_replica(self._fetch_from(self._replica, request, deadline, what))
        except RemoteError:
            self._leave_replica()
            request = self._request(position, topic_id, leader_epoch)
            return self._fetch_from(leader, request, deadline, what)

    def _leave_replica(self) -> None:
        """It may be gone, or behind: from now on the leader is read from, and not asked for one."""
        if self._replica is not None:
            self._replica, self._rack_id = None, ""

    def _of_replica(self, fetched: PartitionData) -> PartitionData:
        """One that has nothing is behind: what was planned to be read, the leader has."""
        if not fetched.records and fetched.high_watermark != _NOT_SAID:
            self._leave_replica()
        return fetched

    def _check_log(self, position: int, leader_epoch: int, what: str) -> None:
        """A new leader may have another log: the old epoch must reach as far as it did."""
        reached = self._known.reached
        if reached.leader_epoch < 0 or leader_epoch in (-1, self._checked_epoch):
            return
        if leader_epoch < reached.leader_epoch:
            if self._known.topic_id is None:
                return  # It may be another topic of that name: such brokers cannot tell.
            # The broker that described the topic is behind the one that the driver asked.
            raise BrokerError(_FENCED_LEADER_EPOCH, what)
        where = self._topic_partition
        diverged = epoch_end_offsets(self._client, {where: reached.leader_epoch})[where]
        # Told once: who goes on all the same reads what is before that offset.
        self._checked_epoch = leader_epoch
        if 0 <= diverged < reached.offset:
            raise LogTruncatedError(where, max(position, diverged), diverged)

    def _fetch_from(
        self, broker: Broker, request: FetchRequest, deadline: Deadline, what: str
    ) -> PartitionData:
        answer = self._answer(self._ask(broker, request, deadline), broker)
        fetched = self._partition(answer, what)
        self._last_asked = (self._replica or broker, request)
        return fetched

    def _ask(
        self, broker: Broker, request: FetchRequest, deadline: Deadline
    ) -> Asked[FetchResponse]:
        version = highest_version([request.topics[0].topic_id])
        return self._client.ask(request, broker, deadline, max_version=version)

    def _answer(self, asked: Asked[FetchResponse], broker: Broker) -> FetchResponse:
        """Wait for it, unless the broker is silent and does not lead the partition any more."""
        # It may keep an answer back for so long on purpose.
        patience = Deadline.after_ms(self._config.fetch_max_wait_ms + LONGEST_SILENCE_MS)

        def is_still() -> bool:
            if not patience.expired:
                return True
            is_leader = broker != self._replica
            return is_leader and self._client.still_leads(broker, [self._topic_partition])

        return self._client.answer_while(asked, is_still)

    def _partition(self, answer: FetchResponse, what: str) -> PartitionData:
        if answer.error_code:
            raise BrokerError(error_code(answer.error_code), what)
        if not answer.responses and answer.throttle_time_ms > 0:
            # Who is over a quota is told how long to keep still, and nothing else (KIP-219).
            return PartitionData(self._topic_partition.partition, 0, high_watermark=_NOT_SAID)
        partitions = [partition for topic in answer.responses for partition in topic.partitions]
        wanted = [self._topic_partition.partition]
        if [partition.partition_index for partition in partitions] != wanted:
            raise ProtocolError(f"{what}: the answer is not of this partition")
        if partitions[0].error_code:
            error = error_code(partitions[0].error_code)
            raise BrokerError(error, what, lacking(error, topic=self._topic_partition.topic))
        # A replica in our rack, where the leader names one, costs less to read from (KIP-392).
        preferred = partitions[0].preferred_read_replica
        if preferred >= 0:
            self._replica = self._client.cluster.brokers.get(preferred)
            # One that nobody has told us of yet cannot be asked.
            self._rack_id = self._rack_id if self._replica else ""
        return partitions[0]

    def _request(self, position: int, topic_id: UUID, leader_epoch: int) -> FetchRequest:
        config = self._config
        topic, partition = self._topic_partition
        positions = {topic: [(partition, leader_epoch, position)]}
        return FetchRequest(
            max_wait_ms=config.fetch_max_wait_ms,
            min_bytes=config.fetch_min_bytes,
            max_bytes=max(config.fetch_max_bytes, self._fetch_bytes),
            isolation_level=config.isolation_level,
            rack_id=self._rack_id,
            topics=fetch_topics(positions, {topic: topic_id}, self._fetch_bytes),
        )


def _leader_epoch(request: FetchRequest) -> int:
    return request.topics[0].partitions[0].current_leader_epoch
