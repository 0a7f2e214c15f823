"""News of partitions, from fetches that the leaders hold back until there are records.

A broker answers a Fetch once there are `min_bytes`, or after `max_wait_ms`:
https://kafka.apache.org/protocol#The_Messages_Fetch.
"""

import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from spark_kafka_source.client import Asked, Broker, KafkaClient
from spark_kafka_source.denials import refusal
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.fetch.config import FetchConfig
from spark_kafka_source.fetch.request import fetch_topics, highest_version, partition_fetches
from spark_kafka_source.net import Deadline, refuses_login, wait_for
from spark_kafka_source.protocol.messages.fetch import FetchRequest, FetchResponse
from spark_kafka_source.topic_partition import TopicPartition

_HELD_PART_OF_TIMEOUT = 0.8
# Time to connect. It does not count as time waited for news.
_LONGEST_CONNECTING_MS = 1_000
# A broker sends one record batch at least, which is all that is needed here.
_AS_LITTLE_AS_POSSIBLE = 1


@dataclass(frozen=True, slots=True)
class _Held:
    """A fetch that a broker has not answered yet."""

    request: FetchRequest
    asked: Asked[FetchResponse]
    since_seconds: float


class Watch:
    """A wait until partitions may have more records than the caller knows.

    A watch keeps one connection to each leader: a broker that holds a fetch back answers nothing
    else on that connection. `useful` becomes False if a broker does not hold fetches back, or
    refuses the login.
    """

    def __init__(self, client: KafkaClient, config: FetchConfig) -> None:
        self._client = client
        self._config = config
        self._held_ms = int(client.config.connection.request_timeout_ms * _HELD_PART_OF_TIMEOUT)
        self._held: dict[Broker, _Held] = {}
        self._ends: Mapping[TopicPartition, int] | None = None
        self._requests: dict[Broker, FetchRequest] = {}
        self.useful = True

    def close(self) -> None:
        """Give up the fetches that are held back, and close their connections."""
        self._held.clear()

    def news(self, ends: Mapping[TopicPartition, int], seconds: float) -> bool:
        """Wait for `seconds`, or until there may be records after `ends`. Return whether there may.

        Returns False only if all leaders have held their fetches back. Never raises a `KafkaError`.
        After an error the caller should look for itself, so the method returns True, but only once
        the time is over: otherwise a lasting error would be news again and again.
        """
        deadline = Deadline.after_ms(int(seconds * 1000))
        if self.useful:
            try:
                return self._client.run(self._news(ends, seconds))
            except KafkaError as error:
                # A broker would refuse the same login each time.
                self.useful = not refuses_login(error)
                self.close()
        time.sleep(deadline.remaining_seconds())
        return True

    async def _news(self, ends: Mapping[TopicPartition, int], seconds: float) -> bool:
        await self._hold(ends)
        deadline = Deadline.after_ms(int(seconds * 1000))  # The time to connect does not count.
        while not (over := [held for held in self._held.values() if held.asked.is_over()]):
            if deadline.expired or not self._held:
                break
            waiting = [held.asked for held in self._held.values()]
            await wait_for(waiting, Deadline.first(deadline, *(held.deadline for held in waiting)))
        self._held = {broker: held for broker, held in self._held.items() if held not in over}
        has_news = False
        for held in over:
            if _has_news(held.asked.answer()):
                has_news = True
            elif (time.monotonic() - held.since_seconds) * 1000 < self._held_ms / 2:
                self.useful = False
                self.close()
        is_asked_everywhere = all(held.asked.is_sent for held in self._held.values())
        return has_news or not self.useful or not is_asked_everywhere

    async def _hold(self, ends: Mapping[TopicPartition, int]) -> None:
        """Send a fetch to each leader that holds none for exactly these offsets."""
        deadline = Deadline.after_ms(self._client.config.connection.request_timeout_ms)
        if self._ends is not ends:
            led: dict[Broker, dict[TopicPartition, int]] = defaultdict(dict)
            for where, (leader, _) in (await self._client.leaders(ends, deadline)).items():
                led[leader][where] = ends[where]
            self._requests = {leader: self._request(offsets) for leader, offsets in led.items()}
            self._ends = ends
        for broker in self._held.keys() - self._requests.keys():
            del self._held[broker]
        for broker, request in self._requests.items():
            held = self._held.get(broker)
            if held is None or held.request != request:
                if held and held.asked.advance():
                    held.asked.answer()  # Then the connection is free again.
                version = highest_version(topic.topic_id for topic in request.topics)
                asked = self._client.ask(request, broker, deadline, max_version=version)
                self._held[broker] = _Held(request, asked, time.monotonic())
        connected_by = Deadline.after_ms(_LONGEST_CONNECTING_MS)
        asked_now = [held.asked for held in self._held.values()]
        while connecting := [held for held in asked_now if not (held.advance() or held.is_sent)]:
            if connected_by.expired:
                break
            await wait_for(connecting, connected_by)

    def _request(self, ends: Mapping[TopicPartition, int]) -> FetchRequest:
        fetches = partition_fetches(self._client.cluster, ends, _AS_LITTLE_AS_POSSIBLE)
        return FetchRequest(
            max_wait_ms=self._held_ms,
            min_bytes=1,
            max_bytes=_AS_LITTLE_AS_POSSIBLE,
            isolation_level=self._config.isolation_level,
            topics=fetch_topics(fetches),
        )


def _has_news(answer: FetchResponse) -> bool:
    partitions = [partition for topic in answer.responses for partition in topic.partitions]
    for code in (answer.error_code, *(partition.error_code for partition in partitions)):
        if code:
            raise refusal(code, "Fetch that waits for news")
    return any(partition.records for partition in partitions)
