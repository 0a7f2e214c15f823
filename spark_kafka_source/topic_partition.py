"""Name of one partition of one topic, as every layer uses it."""

from typing import NamedTuple

from spark_kafka_source.secret import printable


class TopicPartition(NamedTuple):
    """One partition of one topic. It prints as Kafka prints it: `events-0`."""

    topic: str
    partition: int

    def __str__(self) -> str:
        # A broker may give topics any name, and this text goes into logs and terminals.
        return f"{printable(self.topic)}-{self.partition}"
