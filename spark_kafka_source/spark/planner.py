"""What a driver asks the brokers: which partitions there are, and what their offsets stand for."""

from collections.abc import Iterable

from spark_kafka_source.client import KafkaClient, Topic
from spark_kafka_source.consumer import earliest_offsets, latest_offsets
from spark_kafka_source.errors import (
    BrokerError,
    ConfigurationError,
    error_named,
)
from spark_kafka_source.net import Deadline
from spark_kafka_source.spark.conditions import start_does_not_match
from spark_kafka_source.spark.offsets import Offsets
from spark_kafka_source.spark.options import Bound, Extreme, SourceOptions
from spark_kafka_source.topic_partition import TopicPartition

_UNKNOWN_TOPIC = error_named("UNKNOWN_TOPIC_OR_PARTITION")


class OffsetPlanner:
    """Looks up partitions and offsets for one query; it connects at the first question."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self.client = KafkaClient(options.client)

    def close(self) -> None:
        """Closes the connections."""
        self.client.close()

    def topic_partitions(self) -> list[TopicPartition]:
        """What the subscription stands for now, asked afresh.

        Raises `ConfigurationError` for a topic or partition that does not exist.
        """
        return self._options.subscription.select(self._topics())

    def earliest(self, topic_partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset that each partition still has."""
        return earliest_offsets(self.client, topic_partitions)

    def latest(self, topic_partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The end of each partition, as far as the isolation level shows it."""
        return latest_offsets(self.client, topic_partitions, self._options.fetch.isolation_level)

    def resolve(self, option: str, bound: Bound, latest: Offsets) -> dict[TopicPartition, int]:
        """The offset that a bound stands for in each partition of `latest`.

        Raises `OffsetMismatchError` where the bound names others, `ConfigurationError` for an
        offset that its log does not have.
        """
        wanted = dict.fromkeys(latest, bound.value) if isinstance(bound, Extreme) else dict(bound)
        if wanted.keys() != latest.keys():
            raise start_does_not_match(option, wanted, latest)
        # An explicit offset is held against both ends of its log, so the start is asked for too.
        asked = [each for each, offset in wanted.items() if offset != Extreme.LATEST.value]
        earliest = self.earliest(asked)
        return {
            each: _resolved(option, each, offset, earliest.get(each, 0), latest[each])
            for each, offset in wanted.items()
        }

    def _topics(self) -> list[Topic]:
        subscription = self._options.subscription
        # It can take a moment until every broker has heard of a new topic.
        patience = Deadline.after_ms(self._options.topic_lookup_timeout_ms)

        def attempt(deadline: Deadline) -> list[Topic]:
            topics = self.client.topics(subscription.topic_names, deadline)
            for topic in topics:
                if topic.error == _UNKNOWN_TOPIC and patience.expired:
                    raise _unknown_topic(subscription.option, topic.name)
                if topic.error.code:
                    raise BrokerError(topic.error, f"Metadata of topic {topic.name!r}")
            return topics

        return self.client.retrying("Metadata", attempt)


def _unknown_topic(option: str, name: str) -> ConfigurationError:
    return ConfigurationError(
        option, f"topic {name!r} does not exist", "Create it, or name one that exists"
    )


def _resolved(
    option: str, topic_partition: TopicPartition, offset: int, earliest: int, latest: int
) -> int:
    if offset == Extreme.LATEST.value:
        return latest
    if offset == Extreme.EARLIEST.value:
        return earliest
    if not earliest <= offset <= latest:
        raise ConfigurationError(
            option,
            f"offset {offset} of {topic_partition} is not in its log",
            f"It has offsets {earliest} to {latest}",
        )
    return offset
