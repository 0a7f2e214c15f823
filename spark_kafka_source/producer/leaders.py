"""Who leads the partitions that batches wait for, asked for in the background."""

import logging
import time

from spark_kafka_source.client import (
    LOOKUP_MS,
    Broker,
    KafkaClient,
    Lookup,
    Lookups,
    Topic,
)
from spark_kafka_source.denials import Access, lacking
from spark_kafka_source.errors import BrokerError, KafkaError, KafkaTimeoutError
from spark_kafka_source.net import Deadline
from spark_kafka_source.topic_partition import TopicPartition

logger = logging.getLogger(__name__)


class Leaders:
    """Belongs to the producer's thread."""

    def __init__(self, client: KafkaClient, lookups: Lookups) -> None:
        self._client = client
        self._lookups = lookups
        self._wanted: set[str] = set()
        self._lookup: Lookup[list[Topic]] | None = None
        self._asked: list[str] = []
        self._tries = 0
        self.next_try_seconds = 0.0
        """When the next look-up may begin, where the last one found no leader."""
        self._errors: dict[str, KafkaError] = {}

    def of(self, topic_partition: TopicPartition) -> Broker | None:
        """Return the leader, or None where it has to be looked up first."""
        if self._client.unknown_topics([topic_partition]):
            self._wanted.add(topic_partition.topic)
            if self._client.cluster.missing([topic_partition]):
                return None
        return self._client.cluster.leader(topic_partition)[0]

    def error(self, topic: str) -> KafkaError | None:
        """Return why the leaders of a topic could not be looked up, the last time."""
        return self._errors.get(topic)

    def denial(self, topic: str) -> KafkaError | None:
        """Return why a topic cannot be written to at all, if the brokers have said so."""
        error = self._errors.get(topic)
        return error if error is not None and is_lasting(error) else None

    def forget(self, topic: str) -> None:
        """Forget what was said of a topic: it is asked for anew where it is written to again."""
        self._errors.pop(topic, None)

    def step(self) -> None:
        """Take the answer of a look-up, and begin another if there is something to ask."""
        if self._lookup is not None and self._lookup.is_done:
            self._take(self._lookup)
            self._lookup = None
        if self._lookup is None and self._wanted and time.monotonic() >= self.next_try_seconds:
            names = self._asked = sorted(self._wanted)
            self._wanted.clear()
            self._lookup = self._lookups.ask(
                lambda client: client.topics(names, Deadline.after_ms(LOOKUP_MS))
            )

    @property
    def is_waiting(self) -> bool:
        """Whether there is something to ask that waits for its time."""
        return self._lookup is None and bool(self._wanted)

    def _take(self, lookup: Lookup[list[Topic]]) -> None:
        try:
            topics = lookup.result()
        except KafkaError as error:
            logger.debug("The leaders of %s could not be asked for: %s", self._asked, error)
            self._errors.update(dict.fromkeys(self._asked, error))
            self._later()
            return
        self._errors.clear()
        for topic in topics:
            if topic.error.code:
                lack = lacking(topic.error, topic=topic.name, access=Access.WRITE)
                self._errors[topic.name] = BrokerError(
                    topic.error, f"Metadata of {topic.name}", lack
                )
        led = all(not each.error.code and each.partitions for each in topics)
        if led and all(not part.error.code for each in topics for part in each.partitions.values()):
            self._tries = 0
        else:
            self._later()

    def _later(self) -> None:
        self._tries += 1
        self.next_try_seconds = time.monotonic() + self._client.pause_seconds(self._tries)


def is_lasting(error: KafkaError) -> bool:
    """Whether asking again is of no use. Brokers that are all down may come back."""
    return not error.retriable and not isinstance(error, KafkaTimeoutError)
