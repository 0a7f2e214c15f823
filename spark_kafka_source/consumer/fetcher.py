"""Fetches for many partitions at once: a request in flight to each broker, in a session with it.

https://kafka.apache.org/protocol#The_Messages_Fetch. Nothing here waits: see `Fetcher`.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from spark_kafka_source.client import LONGEST_SILENCE_MS, Asked, Broker, KafkaClient
from spark_kafka_source.consumer.fetch_session import FetchSession, Wanted
from spark_kafka_source.consumer.fetching import highest_version
from spark_kafka_source.consumer.losses import OFFSET_OUT_OF_RANGE
from spark_kafka_source.consumer.positions import Position, Positions
from spark_kafka_source.consumer.unread import Decoding, Unread
from spark_kafka_source.errors import BrokerError, KafkaError, RemoteError, error_code
from spark_kafka_source.net import Deadline
from spark_kafka_source.protocol import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from spark_kafka_source.records import next_offset
from spark_kafka_source.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

# Closing says goodbye to the brokers, but does not wait for those that are gone.
_GOODBYE_MS = 1_000
_MOST_FETCHED_AHEAD = 2
# As long as it takes a leader, by default, to see that a replica has fallen behind.
_WITHOUT_RACK_SECONDS = 30.0


@dataclass(slots=True)
class _Source:
    """One broker as a source of records."""

    broker: Broker
    session: FetchSession = field(default_factory=FetchSession)
    asked: Asked[FetchResponse] | None = None
    wanted: Mapping[TopicPartition, Wanted] = field(default_factory=dict)
    asked_at_seconds: float = 0.0
    overdue_at_seconds: float = 0.0
    tries: int = 0
    not_before_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class FetchDone:
    """One answer, for the metrics: how long it took and how many bytes of records it brought."""

    broker: Broker
    seconds: float
    size_bytes: int


class Fetcher:
    """Keeps each position's `fetched` filled, while the consumer hands out what is there.

    `ask` sends what there is to ask, `take` takes what has come in, and neither waits; the consumer
    waits until one of `in_flight` is readable, or until `next_try_seconds`. A partition is fetched
    ahead while what came before is handed out, and one that is paused is not.

    Connections are its own, one to each broker, since a broker answers nothing else on one while
    it waits for records. `on_out_of_range` is told of a position that the log does not have.
    """

    def __init__(
        self,
        client: KafkaClient,
        decoding: Decoding,
        positions: Positions,
        on_out_of_range: Callable[[Position], None],
        on_done: Callable[[FetchDone], None] = lambda _: None,
    ) -> None:
        self._client = client
        self._fetching = client.sibling()
        self._config = decoding.fetch
        self._decoding = decoding
        self._positions = positions
        self._on_out_of_range = on_out_of_range
        self._on_done = on_done
        self._sources: dict[int, _Source] = {}
        self._without_rack_until_seconds = 0.0

    def close(self) -> None:
        """Ends the sessions, as far as brokers listen, and closes the connections."""
        deadline = Deadline.after_ms(_GOODBYE_MS)
        for source in self._sources.values():
            source.asked = None
            if source.session.is_open and source.not_before_seconds < time.monotonic():
                # Where an answer is still awaited, this ends that connection and takes another.
                self._send(source, {}, deadline, closing=True)
        for asked in self.in_flight:
            with contextlib.suppress(KafkaError):
                asked.answer()
        self._fetching.close()

    @property
    def in_flight(self) -> list[Asked[FetchResponse]]:
        """The requests whose answers are still to come."""
        return [each.asked for each in self._sources.values() if each.asked is not None]

    def next_try_seconds(self, since_seconds: float) -> float | None:
        """The first moment after that one when there is something to do though nothing comes in.

        What failed is tried again then, what takes too long given up; on the monotonic clock.
        """
        moments = [each.not_before_seconds for each in (*self._sources.values(), *self._positions)]
        for each in self._sources.values():
            if each.asked is not None:
                moments += [each.asked.deadline.at_seconds, each.overdue_at_seconds]
        return min((moment for moment in moments if moment > since_seconds), default=None)

    def ask(self) -> None:
        """Asks each broker, that is not asked yet, for all that can be fetched from it.

        Partitions whose leaders are not known are left out.
        """
        now_seconds = time.monotonic()
        for broker, wanted in self._wanted(now_seconds).items():
            source = self._sources.setdefault(broker.node_id, _Source(broker))
            if source.asked is not None or source.not_before_seconds > now_seconds:
                continue
            if source.broker != broker:  # It is somewhere else now.
                source = self._sources[broker.node_id] = _Source(broker)
            deadline = Deadline.after_ms(self._client.config.connection.request_timeout_ms)
            self._send(source, wanted, deadline)

    def take(self) -> None:
        """Takes the answers that are here. Raises what cannot heal, naming the partition."""
        for source in self._sources.values():
            if source.asked is not None and source.asked.is_over():
                self._take(source, source.asked)

    def overdue_topics(self) -> set[str]:
        """Return topics whose fetches are overdue; each at most every two seconds.

        Their broker may have frozen, and another may lead its partitions by now. A replica that is
        not the leader is not waited for any longer.
        """
        now_seconds = time.monotonic()
        found: set[str] = set()
        for source in self._sources.values():
            if source.asked is None or now_seconds < source.overdue_at_seconds:
                continue
            source.overdue_at_seconds = now_seconds + LONGEST_SILENCE_MS / 1000
            if not source.asked.is_silent:
                continue
            self._client.contacts.failed(source.broker.address)
            found.update(each.topic for each in source.wanted)
            for where in source.wanted:
                position = self._positions.get(where)
                if position is not None and position.replica_id == source.broker.node_id:
                    self._leave_replica(position)
        return found

    def _take(self, source: _Source, asked: Asked[FetchResponse]) -> None:
        source.asked = None
        try:
            answer = asked.answer()
            found = source.session.answered(answer)
        except RemoteError as error:
            self._failed(source, error)
            return
        now_seconds = time.monotonic()
        # A broker over its quota expects silence (KIP-219), which must not keep others waiting.
        source.tries, source.not_before_seconds = 0, now_seconds + answer.throttle_time_ms / 1000
        took_seconds = now_seconds - source.asked_at_seconds
        size_bytes = sum(len(each.records or b"") for each in found.values())
        self._on_done(FetchDone(source.broker, took_seconds, size_bytes))
        first_error: KafkaError | None = None
        for where, data in found.items():
            position = self._positions.get(where)
            try:
                if position is not None:
                    self._put(position, source, data)
            except KafkaError as error:  # What came for the others is as good as ever.
                first_error = first_error or error
        if first_error is not None:
            raise first_error

    # -- what to ask -------------------------------------------------------------------------------

    def _wanted(self, now_seconds: float) -> dict[Broker, dict[TopicPartition, Wanted]]:
        found: dict[Broker, dict[TopicPartition, Wanted]] = {}
        for position in self._positions:
            if not _can_be_fetched(position, now_seconds):
                continue
            if not position.fetched:
                position.refetch()  # It may have gone back: see `Position.back_to`.
            try:
                leader, leader_epoch = self._client.cluster.leader(position.topic_partition)
            except BrokerError:
                continue
            topic_id = self._client.cluster.topics[position.topic_partition.topic].topic_id
            if not is_checked(position, topic_id, leader_epoch):
                continue
            broker = self._nearest(position, leader, now_seconds)
            by_partition = found.setdefault(broker, {})
            by_partition[position.topic_partition] = self._wanted_of(
                position, topic_id, leader_epoch
            )
        return found

    def _nearest(self, position: Position, leader: Broker, now_seconds: float) -> Broker:
        if position.replica_id is None or now_seconds > position.replica_until_seconds:
            position.replica_id = None
            return leader
        return self._client.cluster.brokers.get(position.replica_id, leader)

    def _wanted_of(self, position: Position, topic_id: UUID, leader_epoch: int) -> Wanted:
        return Wanted(
            topic_id,
            FetchPartition(
                partition=position.topic_partition.partition,
                current_leader_epoch=leader_epoch,
                fetch_offset=position.fetch_offset,
                partition_max_bytes=self._config.max_partition_fetch_bytes,
            ),
        )

    def _send(
        self,
        source: _Source,
        wanted: Mapping[TopicPartition, Wanted],
        deadline: Deadline,
        *,
        closing: bool = False,
    ) -> None:
        session = source.session.closing() if closing else source.session.request(wanted)
        config = self._config
        request = FetchRequest(
            max_wait_ms=config.fetch_max_wait_ms,
            min_bytes=config.fetch_min_bytes,
            max_bytes=config.fetch_max_bytes,
            isolation_level=config.isolation_level,
            rack_id=self._rack_id(),
            session_id=session.session_id,
            session_epoch=session.session_epoch,
            topics=session.topics,
            forgotten_topics_data=session.forgotten_topics_data,
        )
        version = highest_version(each.topic_id for each in wanted.values())
        source.asked_at_seconds = time.monotonic()
        source.overdue_at_seconds = (
            source.asked_at_seconds + (config.fetch_max_wait_ms + LONGEST_SILENCE_MS) / 1000
        )
        source.asked = self._fetching.ask(request, source.broker, deadline, max_version=version)
        source.wanted = wanted

    def _rack_id(self) -> str:
        is_left_out = time.monotonic() < self._without_rack_until_seconds
        return "" if is_left_out else self._config.client_rack

    # -- what came ---------------------------------------------------------------------------------

    def _put(self, position: Position, source: _Source, data: PartitionData) -> None:
        """Keeps what came for a position, if it is what is wanted next there."""
        where = position.topic_partition
        topic_id, asked = source.wanted[where].topic_id, source.wanted[where].partition
        if asked.fetch_offset != position.fetch_offset or position.next is None:
            return  # Somebody moved it meanwhile.
        if not is_checked(position, topic_id, asked.current_leader_epoch):
            return  # It was asked of a log that is not this one any more.
        if data.error_code:
            self._refused(position, source, data.error_code)
            return
        position.tries, position.not_before_seconds = 0, 0.0
        position.high_watermark = data.high_watermark
        position.last_stable_offset = data.last_stable_offset
        if topic_id.int:
            position.topic_id = topic_id
        if data.preferred_read_replica >= 0:
            self._prefer(position, data.preferred_read_replica)
        if data.records:
            leader_epoch = asked.current_leader_epoch
            unread = Unread(where, asked.fetch_offset, leader_epoch, data, self._decoding)
            position.fetched.append(unread)
            position.fetch_offset = next_offset(memoryview(data.records)) or asked.fetch_offset

    def _prefer(self, position: Position, node_id: int) -> None:
        if node_id not in self._client.cluster.brokers:  # It may be new.
            self._client.cluster.forget_leaders()
            self._leave_replica(position)
            return
        position.replica_id = node_id
        position.replica_until_seconds = (
            time.monotonic() + self._client.config.metadata_max_age_ms / 1000
        )

    def _leave_replica(self, position: Position) -> None:
        """For a while the leader is not told the rack: it would name the same replica again."""
        position.replica_id = None
        self._without_rack_until_seconds = time.monotonic() + _WITHOUT_RACK_SECONDS

    def _refused(self, position: Position, source: _Source, code: int) -> None:
        error = BrokerError(
            error_code(code), f"Fetch of {position.topic_partition} at {position.fetch_offset}"
        )
        if position.replica_id == source.broker.node_id:
            self._leave_replica(position)  # The leader knows better.
            self._client.recover(error)
            return
        if error.error == OFFSET_OUT_OF_RANGE:
            self._on_out_of_range(position)
            return
        if not error.retriable:
            raise error
        logger.debug("%s; trying again", error)
        self._client.recover(error)
        position.tries += 1
        position.not_before_seconds = self._not_before_seconds(position.tries)

    def _failed(self, source: _Source, error: RemoteError) -> None:
        """The next request to this broker waits a while; raises what cannot heal."""
        source.session.begin_anew()
        for position in self._positions:
            if position.replica_id == source.broker.node_id:
                self._leave_replica(position)
        if not error.retriable:
            raise error
        logger.debug("Fetch from %s: %s; trying again", source.broker.address, error)
        self._client.recover(error)
        source.tries += 1
        source.not_before_seconds = self._not_before_seconds(source.tries)

    def _not_before_seconds(self, tries: int) -> float:
        return time.monotonic() + self._client.pause_seconds(tries)


def is_checked(position: Position, topic_id: UUID, leader_epoch: int) -> bool:
    """Whether the leader's log is known to be the one that was read so far (KIP-320)."""
    if position.is_elsewhere(topic_id):
        return False
    if position.checked_epoch < 0 or leader_epoch < 0:
        return True
    # Without ids of topics an older epoch may well be that of another topic by this name.
    return leader_epoch == position.checked_epoch or (
        leader_epoch < position.checked_epoch and not topic_id.int
    )


def _can_be_fetched(position: Position, now_seconds: float) -> bool:
    return (
        position.next is not None
        and not position.paused
        and not position.is_held
        and len(position.fetched) < _MOST_FETCHED_AHEAD
        and position.not_before_seconds <= now_seconds
    )
