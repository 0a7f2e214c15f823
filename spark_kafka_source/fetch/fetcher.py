"""Fetches for many partitions at once: a request in flight to each broker.

https://kafka.apache.org/protocol#The_Messages_Fetch. Nothing here waits: see `Fetcher`.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from spark_kafka_source.client import LONGEST_SILENCE_MS, Asked, Broker, KafkaClient, Log
from spark_kafka_source.errors import KafkaError, RemoteError
from spark_kafka_source.fetch.answers import Answers
from spark_kafka_source.fetch.config import FetchConfig
from spark_kafka_source.fetch.error_handler import ErrorHandler
from spark_kafka_source.fetch.positions import Position, Positions
from spark_kafka_source.fetch.source import Source
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net import Deadline, together
from spark_kafka_source.protocol.messages.fetch import FetchResponse, PartitionData
from spark_kafka_source.topic_partition import TopicPartition

logger = logger_of(__name__)

# Closing ends the fetch sessions, but does not wait long for a broker that is gone.
_GOODBYE_MS = 1_000
_MOST_FETCHED_AHEAD = 2


@dataclass(frozen=True, slots=True)
class FetchDone:
    """One answer, for the metrics: its duration and its bytes of records."""

    broker: Broker
    seconds: float
    size_bytes: int


@dataclass(eq=False, slots=True)
class Fetcher:
    """The fetches that keep each position's `fetched` filled, while the reader hands out records.

    `ask` sends fetches and `take` takes answers; neither waits. The reader waits until one of
    `in_flight` is readable, or until `next_try_seconds`. Partitions that are not paused are fetched
    ahead. Each broker is asked for an even share of `fetch.max.bytes`, and not again while more
    than its share waits to be handed out. So a reader keeps about two times `fetch.max.bytes`, for
    any number of brokers. A larger batch comes whole, and paused partitions do not count.

    With `keeps_sessions`, for readers that go on for long, the brokers keep fetch sessions
    (KIP-227).
    """

    client: KafkaClient
    config: FetchConfig
    positions: Positions
    answers: Answers
    error_handler: ErrorHandler
    keeps_sessions: bool
    on_done: Callable[[FetchDone], None]
    sources: dict[int, Source] = field(default_factory=dict)
    asked_at_seconds: float = 0.0
    back_at_seconds: float = 0.0

    async def close(self) -> None:
        """End the sessions, if the brokers answer."""
        deadline = Deadline.after_ms(_GOODBYE_MS)
        for source in self.sources.values():
            source.close(deadline)
        await together(self.client.answer_of(asked) for asked in self.in_flight)

    @property
    def in_flight(self) -> list[Asked[FetchResponse]]:
        """The requests without an answer so far."""
        return [source.asked for source in self.sources.values() if source.asked is not None]

    def next_try_seconds(self, since_seconds: float) -> float | None:
        """Return the first moment after `since_seconds` at which a retry or a timeout is due.

        Both are on the monotonic clock. Returns None if nothing is due.
        """
        moments = [
            source.next_try.at_seconds for source in (*self.sources.values(), *self.positions)
        ]
        for source in self.sources.values():
            if source.asked is not None:
                moments += [source.asked.deadline.at_seconds, source.overdue_at_seconds]
        return min((moment for moment in moments if moment > since_seconds), default=None)

    def ask(self, deadline: Deadline | None = None) -> None:
        """Send a fetch to each broker that has none, for all partitions to fetch from it.

        Partitions with unknown leaders are left out.
        """
        self.asked_at_seconds = now_seconds = time.monotonic()
        fetchable = self._fetchable(now_seconds)
        if not fetchable:
            return
        share_bytes = max(self.config.fetch_max_bytes // len(fetchable), 1)
        kept_bytes = self._kept_bytes()
        most_ms = self.client.config.connection.request_timeout_ms
        for broker, positions in fetchable.items():
            source = self._source(broker)
            # A broker over its quota expects no request for this time (KIP-219); others go on.
            if throttled_seconds := self.client.connections.throttled_seconds(broker.address):
                until_seconds = now_seconds + throttled_seconds
                source.next_try.at_seconds = max(source.next_try.at_seconds, until_seconds)
            is_free = source.asked is None and source.next_try.at_seconds <= now_seconds
            if is_free and kept_bytes[broker.node_id] <= share_bytes:
                source.ask(
                    positions,
                    deadline.within_ms(most_ms) if deadline else Deadline.after_ms(most_ms),
                    most_bytes=share_bytes,
                    rack_id=self.answers.rack_id(),
                )

    def take(self) -> bool:
        """Take the answers that have come. Return whether one was more than an error.

        Raises lasting errors; those of a partition name it.
        """
        taken = [self._take_answer(source) for source in list(self.sources.values())]
        return any(taken)

    def extend_deadlines(self, least_seconds: float = 0.0) -> None:
        """Add the time since the last `ask` to all deadlines: the caller took no answers meanwhile.

        Do nothing if that is less than `least_seconds`.
        """
        now_seconds = time.monotonic()
        gap_seconds = now_seconds - self.asked_at_seconds
        if gap_seconds < least_seconds:
            return
        self.back_at_seconds = now_seconds
        for source in self.sources.values():
            source.add_time(gap_seconds)

    def overdue_topics(self) -> set[str]:
        """Return topics whose fetches are overdue; each at most every two seconds.

        Their broker may hang, and another broker may lead its partitions by now. Positions that
        fetch from a replica leave an overdue one.
        """
        now_seconds = time.monotonic()
        topics: set[str] = set()
        for source in self.sources.values():
            if source.asked is None or now_seconds < source.overdue_at_seconds:
                continue
            source.overdue_at_seconds = now_seconds + LONGEST_SILENCE_MS / 1000
            if not source.asked.is_silent:
                continue
            self.client.history.failed(source.broker.address)
            topics.update(partition.topic for partition in source.fetches)
            for position in self._on_replica(source):
                self.answers.leave_replica(position)
        return topics

    # -- what to ask -------------------------------------------------------------------------------

    def _fetchable(self, now_seconds: float) -> dict[Broker, list[tuple[Position, Log]]]:
        """Return what to fetch from each broker, in the order of the positions."""
        by_broker: dict[Broker, list[tuple[Position, Log]]] = defaultdict(list)
        learnt = self.client.cluster.learnt_at_seconds
        for position in self.positions:
            if not _can_be_fetched(position, now_seconds):
                continue
            if not position.fetched:
                position.refetch()  # The position may have gone back: see `Position.back_to`.
            log = self.client.cluster.log(position.topic_partition)
            learnt_at_seconds = learnt.get(position.topic_partition.topic, 0.0)
            is_doubted = learnt_at_seconds < position.doubted_at_seconds
            if log is not None and position.is_checked(log) and not is_doubted:
                broker = self.answers.nearest(position, log[0], now_seconds)
                by_broker[broker].append((position, log))
        return by_broker

    def _kept_bytes(self) -> dict[int, int]:
        """Return the bytes of each broker that wait to be handed out, without paused partitions."""
        by_node: dict[int, int] = defaultdict(int)
        for position in self.positions:
            if not position.paused and not position.is_held:
                for fetched in position.fetched:
                    by_node[fetched.node_id] += fetched.size_bytes
        return by_node

    def _source(self, broker: Broker) -> Source:
        source = self.sources.get(broker.node_id)
        if source is None or (source.broker != broker and source.asked is None):
            # The broker is new, or has another address now.
            source = Source(self.client, self.config, broker, keeps_session=self.keeps_sessions)
            self.sources[broker.node_id] = source
        return source

    def _on_replica(self, source: Source) -> list[Position]:
        """Return the positions for which the broker is not the leader, but a nearer replica."""
        return [
            position for position in self.positions if position.replica_id == source.broker.node_id
        ]

    # -- what came ---------------------------------------------------------------------------------

    def _take_answer(self, source: Source) -> bool:
        asked = source.asked
        if asked is None or not asked.is_over():
            return False
        source.asked = None
        try:
            answer = asked.answer()
            by_partition = source.session.answered(answer)
        except RemoteError as error:
            self._request_failed(source, error)
            return False
        now_seconds = time.monotonic()
        source.next_try.reset()
        size_bytes = sum(len(data.records or b"") for data in by_partition.values())
        waited_seconds = now_seconds - max(source.asked_at_seconds, self.back_at_seconds)
        source.size.answered(size_bytes, waited_seconds)
        self.on_done(FetchDone(source.broker, now_seconds - source.asked_at_seconds, size_bytes))
        self._put_answer(source, answer, by_partition)
        if by_partition and not size_bytes:
            # A replica may be behind. The leader has the planned records of ranges.
            for position in self._on_replica(source):
                if position.end is not None:
                    self.answers.leave_replica(position)
        return not by_partition or any(not data.error_code for data in by_partition.values())

    def _put_answer(
        self,
        source: Source,
        answer: FetchResponse,
        by_partition: Mapping[TopicPartition, PartitionData],
    ) -> None:
        errors: list[KafkaError] = []
        for where, data in by_partition.items():
            position = self.positions.get(where)
            if position is None:
                continue
            try:
                fetch = source.fetches[where]
                fetched = self.answers.put(position, source.broker, fetch, data, answer)
            except KafkaError as error:  # The records of other partitions are good.
                errors.append(error)
                continue
            if fetched is not None:
                offsets = position.fetch_offset - fetched.offset
                source.size.brought(position, fetched.size_bytes, offsets)
        if errors:
            raise errors[0]

    def _request_failed(self, source: Source, error: RemoteError) -> None:
        """Pause before the next request to this broker. Raises lasting errors."""
        source.session.begin_anew()
        left = self._on_replica(source)
        for position in left:
            self.answers.leave_replica(position)
        if not error.has_remedy and not left:
            raise error
        logger.debug("Fetch from %s: %s; trying again", source.broker.address, error)
        self.client.recover(error)
        source.next_try.failed()
        self.error_handler.failed(error)


def _can_be_fetched(position: Position, now_seconds: float) -> bool:
    return (
        position.next is not None
        and not position.paused
        and not position.is_held
        and not position.is_fetched_to_end
        and not position.is_stuck
        and len(position.fetched) < _MOST_FETCHED_AHEAD
        and position.next_try.at_seconds <= now_seconds
    )
