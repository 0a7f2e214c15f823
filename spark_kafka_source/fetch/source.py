"""One broker as a source of records: the fetch in flight, and the fetch session."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from spark_kafka_source.client import LONGEST_SILENCE_MS, Asked, Broker, KafkaClient
from spark_kafka_source.fetch.config import FetchConfig
from spark_kafka_source.fetch.request import highest_version
from spark_kafka_source.fetch.session import FetchSession, SessionRequest, Wanted
from spark_kafka_source.fetch.size import FetchSize
from spark_kafka_source.net import Deadline
from spark_kafka_source.protocol.messages.fetch import FetchRequest, FetchResponse
from spark_kafka_source.topic_partition import TopicPartition


@dataclass(slots=True)
class Source:
    """A broker with at most one fetch in flight; `asked` is None without one."""

    broker: Broker
    session: FetchSession
    size: FetchSize
    asked: Asked[FetchResponse] | None = None
    wanted: Mapping[TopicPartition, Wanted] = field(default_factory=dict)
    asked_at_seconds: float = 0.0
    overdue_at_seconds: float = 0.0
    tries: int = 0
    not_before_seconds: float = 0.0

    def is_free(self, now_seconds: float) -> bool:
        """Return whether a fetch can be sent."""
        return self.asked is None and self.not_before_seconds <= now_seconds

    def leave_for(self, seconds: float) -> None:
        """Send nothing for so many seconds at least."""
        if seconds:
            until_seconds = time.monotonic() + seconds
            self.not_before_seconds = max(self.not_before_seconds, until_seconds)

    def ask(
        self,
        client: KafkaClient,
        config: FetchConfig,
        wanted: Mapping[TopicPartition, Wanted],
        deadline: Deadline,
        *,
        most_bytes: int,
        rack_id: str,
    ) -> None:
        """Send a fetch for `wanted`, with at most `most_bytes` in all."""
        session = self.session.request(wanted)
        self.wanted = wanted
        self._send(client, config, session, deadline, most_bytes=most_bytes, rack_id=rack_id)

    def close(self, client: KafkaClient, config: FetchConfig, deadline: Deadline) -> None:
        """Drop the fetch in flight, and end the fetch session, if there is one."""
        self.asked = None
        if self.session.is_open and self.not_before_seconds < time.monotonic():
            # If an answer is still to come, this closes its connection and opens another.
            self.wanted = {}
            self._send(client, config, self.session.closing(), deadline)

    def add_time(self, seconds: float) -> None:
        """Move all deadlines by `seconds`."""
        self.overdue_at_seconds += seconds
        if self.asked is not None:
            at_seconds = self.asked.deadline.at_seconds + seconds
            self.asked.deadline = replace(self.asked.deadline, at_seconds=at_seconds)

    def _send(
        self,
        client: KafkaClient,
        config: FetchConfig,
        session: SessionRequest,
        deadline: Deadline,
        *,
        most_bytes: int = 0,
        rack_id: str = "",
    ) -> None:
        request = FetchRequest(
            max_wait_ms=config.fetch_max_wait_ms,
            min_bytes=config.fetch_min_bytes,
            max_bytes=most_bytes,
            isolation_level=config.isolation_level,
            rack_id=rack_id,
            session_id=session.session_id,
            session_epoch=session.session_epoch,
            topics=session.topics,
            forgotten_topics_data=session.forgotten_topics_data,
        )
        version = highest_version(each.topic_id for each in self.wanted.values())
        held_seconds = (config.fetch_max_wait_ms + LONGEST_SILENCE_MS) / 1000
        self.asked_at_seconds = time.monotonic()
        self.overdue_at_seconds = self.asked_at_seconds + held_seconds
        self.asked = client.ask(request, self.broker, deadline, max_version=version)
