"""The name of one partition of one topic, as every layer uses it."""

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """One partition of one topic; prints as Kafka prints it, `events-0`."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
