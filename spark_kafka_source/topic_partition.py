"""The name of one partition of one topic."""

from typing import NamedTuple

from spark_kafka_source.secret import printable


class TopicPartition(NamedTuple):
    """One partition of one topic. It prints as in Kafka: `events-0`."""

    topic: str
    partition: int

    def __str__(self) -> str:
        # A topic's name in an answer may hold anything, and this text goes to logs and terminals.
        return f"{printable(self.topic)}-{self.partition}"
