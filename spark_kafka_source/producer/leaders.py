"""The leaders of the partitions that have waiting batches, looked up in the background."""

import logging
from collections.abc import Iterable

from spark_kafka_source.client import (
    LOOKUP_MS,
    Broker,
    KafkaClient,
    NextTry,
    Topic,
)
from spark_kafka_source.denials import Access, refusal
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.net import Conversations, Deadline, Running
from spark_kafka_source.producer.topics import UNKNOWN_TOPIC, how_to_create
from spark_kafka_source.topic_partition import TopicPartition

logger = logging.getLogger(__name__)


class Leaders:
    """The known leaders and the look-ups of others. Only the producer's thread uses it."""

    def __init__(self, client: KafkaClient, conversations: Conversations) -> None:
        self._client = client
        self._conversations = conversations
        self._wanted: set[TopicPartition] = set()
        self._lookup: Running[list[Topic]] | None = None
        self._asked: set[TopicPartition] = set()
        # The pause keeps a broker with useless answers from being asked without end.
        self._next = NextTry(client.pause_seconds)
        self._errors: dict[str, KafkaError] = {}

    def of(self, topic_partition: TopicPartition) -> Broker | None:
        """Return the leader, or None if it must be looked up first."""
        if self._client.unknown_topics([topic_partition]):
            self._wanted.add(topic_partition)
            if self._client.cluster.missing([topic_partition]):
                return None
        return self._client.cluster.leader(topic_partition)[0]

    def error(self, topic: str) -> KafkaError | None:
        """Return the error of the last look-up of a topic's leaders, or None."""
        return self._errors.get(topic)

    def take_denials(self) -> dict[str, KafkaError]:
        """Return and forget the lasting errors of topics, by topic.

        Each error is returned once. A topic that is written to again is looked up again.
        """
        found = {topic: error for topic, error in self._errors.items() if is_lasting(error)}
        for topic in found:
            del self._errors[topic]
        return found

    def step(self) -> None:
        """Take the answer of a look-up, and begin another for the wanted partitions."""
        if self._lookup is not None and self._lookup.is_done:
            self._take(self._lookup)
            self._lookup = None
        if self._lookup is None and self._wanted and self._next.is_due:
            self._asked, self._wanted = self._wanted, set()
            names = _topics_of(self._asked)
            self._lookup = self._conversations.begin(
                self._client.topics(names, Deadline.after_ms(LOOKUP_MS))
            )

    @property
    def next_try_seconds(self) -> float | None:
        """The monotonic time in seconds of the next look-up, or None."""
        is_waiting = self._lookup is None and bool(self._wanted)
        return self._next.at_seconds if is_waiting else None

    def _take(self, lookup: Running[list[Topic]]) -> None:
        names = _topics_of(self._asked)
        try:
            topics = lookup.result()
        except KafkaError as error:
            logger.debug("The leaders of %s could not be asked for: %s", names, error)
            self._errors.update(dict.fromkeys(names, error))
            self._next.failed()
            return
        for name in names:
            self._errors.pop(name, None)
        for topic in topics:
            if topic.error.code:
                self._errors[topic.name] = refusal(
                    topic.error,
                    f"Metadata of {topic.name}",
                    advice=how_to_create(topic.name) if topic.error == UNKNOWN_TOPIC else None,
                    topic=topic.name,
                    access=Access.WRITE,
                )
        if self._client.cluster.missing(self._asked):
            self._next.failed()
        else:
            self._next.succeeded()


def _topics_of(topic_partitions: Iterable[TopicPartition]) -> list[str]:
    return sorted({each.topic for each in topic_partitions})


def is_lasting(error: KafkaError) -> bool:
    """Whether a new request cannot help."""
    return not error.retriable
