"""The leaders of the partitions that have waiting batches, looked up in the background."""

from collections.abc import Iterable, Sequence
from contextlib import suppress

from spark_kafka_source.client import LOOKUP_MS, Broker, KafkaClient
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net import Conversation, Deadline
from spark_kafka_source.producer.topics import topic_error
from spark_kafka_source.topic_partition import TopicPartition

logger = logger_of(__name__)


class Leaders:
    """The known leaders and the look-ups of others. Only the producer's thread uses it."""

    def __init__(self, client: KafkaClient) -> None:
        self._client = client
        self._unknown: set[TopicPartition] = set()
        self._errors: dict[str, KafkaError] = {}

    def of(self, topic_partitions: Sequence[TopicPartition]) -> dict[TopicPartition, Broker]:
        """Return the known leaders. `ask` looks up unknown leaders, and too old ones."""
        cluster = self._client.cluster
        unknown = self._client.unknown_topics(topic_partitions)
        self._unknown.update(each for each in topic_partitions if each.topic in unknown)
        leaders: dict[TopicPartition, Broker] = {}
        for partition in topic_partitions:
            if partition.topic in unknown and cluster.missing([partition]):
                continue
            with suppress(KafkaError):  # Another thread has just forgotten the leader.
                leaders[partition] = cluster.leader(partition)[0]
        return leaders

    def error(self, topic: str) -> KafkaError | None:
        """Return the error of the last look-up of a topic's leaders, or None."""
        return self._errors.get(topic)

    def take_denials(self) -> dict[str, KafkaError]:
        """Return and forget the lasting errors of topics, by topic.

        Each error is returned once. A topic that is written to again is looked up again.
        """
        denials = {topic: error for topic, error in self._errors.items() if not error.retriable}
        for topic in denials:
            del self._errors[topic]
        return denials

    def ask(self) -> Conversation[bool] | None:
        """Look up the leaders that `of` misses, if any; see `keep_asking`."""
        partitions, self._unknown = self._unknown, set()
        return self._look_up(partitions) if partitions else None

    async def _look_up(self, topic_partitions: Iterable[TopicPartition]) -> bool:
        """Ask for these leaders. Return whether all of them are known."""
        names = sorted({each.topic for each in topic_partitions})
        try:
            topics = await self._client.topics(names, Deadline.after_ms(LOOKUP_MS))
        except KafkaError as error:
            logger.debug("The leaders of %s could not be asked for: %s", names, error)
            self._errors.update(dict.fromkeys(names, error))
            return False
        for name in names:
            self._errors.pop(name, None)
        for topic in topics:
            if topic.error.code:
                self._errors[topic.name] = topic_error(topic.error, topic.name)
        return not self._client.cluster.missing(topic_partitions)
