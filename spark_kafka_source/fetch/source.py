"""One broker as a source of records: the fetch in flight, and the fetch session."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace

from spark_kafka_source.client import LONGEST_SILENCE_MS, Asked, Broker, KafkaClient, Log, NextTry
from spark_kafka_source.fetch.config import FetchConfig
from spark_kafka_source.fetch.positions import Position
from spark_kafka_source.fetch.request import PartitionFetch, highest_version
from spark_kafka_source.fetch.session import FetchSession
from spark_kafka_source.fetch.size import FetchSize
from spark_kafka_source.net import Deadline
from spark_kafka_source.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse
from spark_kafka_source.topic_partition import TopicPartition


class Source:
    """A broker with at most one fetch in flight; `asked` is None without one.

    With `keeps_session` the broker keeps a fetch session.
    """

    def __init__(
        self, client: KafkaClient, config: FetchConfig, broker: Broker, *, keeps_session: bool
    ) -> None:
        self.broker = broker
        self.session = FetchSession(is_kept=keeps_session)
        self.size = FetchSize(config)
        self.asked: Asked[FetchResponse] | None = None
        self.fetches: Mapping[TopicPartition, PartitionFetch] = {}
        self.asked_at_seconds = 0.0
        self.overdue_at_seconds = 0.0
        self.next_try = NextTry(client.pause_seconds)
        self._client = client
        self._config = config

    def ask(
        self,
        positions: Iterable[tuple[Position, Log]],
        deadline: Deadline,
        *,
        most_bytes: int,
        rack_id: str,
    ) -> None:
        """Send a fetch for as many positions as may fit, with at most `most_bytes` in all."""
        logs = {position.topic_partition: log for position, log in positions}
        chosen = list(self.size.first_of(position for position, _ in positions))
        self.fetches = {
            position.topic_partition: self._fetch_of(position, logs[position.topic_partition])
            for position in chosen
        }
        request = self.session.request(self.fetches)
        request.max_bytes = self.size.of_answer(chosen, most_bytes)
        request.rack_id = rack_id
        self._send(request, deadline)

    def close(self, deadline: Deadline) -> None:
        """Drop the fetch in flight, and end the fetch session, if there is one."""
        self.asked = None
        if self.session.is_open and self.next_try.is_due:
            # If an answer is still to come, this closes its connection and opens another.
            self.fetches = {}
            self._send(self.session.closing(), deadline)

    def add_time(self, seconds: float) -> None:
        """Move all deadlines by `seconds`."""
        self.overdue_at_seconds += seconds
        if self.asked is not None:
            at_seconds = self.asked.deadline.at_seconds + seconds
            self.asked.deadline = replace(self.asked.deadline, at_seconds=at_seconds)

    def _fetch_of(self, position: Position, log: Log) -> PartitionFetch:
        _, topic_id, leader_epoch = log
        return PartitionFetch(
            topic_id,
            FetchPartition(
                partition=position.topic_partition.partition,
                current_leader_epoch=leader_epoch,
                fetch_offset=position.fetch_offset,
                partition_max_bytes=self.size.of_partition(position),
            ),
        )

    def _send(self, request: FetchRequest, deadline: Deadline) -> None:
        request.max_wait_ms = self._config.fetch_max_wait_ms
        request.min_bytes = self._config.fetch_min_bytes
        request.isolation_level = self._config.isolation_level
        version = highest_version(fetch.topic_id for fetch in self.fetches.values())
        held_seconds = (self._config.fetch_max_wait_ms + LONGEST_SILENCE_MS) / 1000
        self.asked_at_seconds = time.monotonic()
        self.overdue_at_seconds = self.asked_at_seconds + held_seconds
        self.asked = self._client.ask(request, self.broker, deadline, max_version=version)
