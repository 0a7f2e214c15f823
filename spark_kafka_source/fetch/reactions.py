"""What a reader does where a position cannot go on as it is."""

from collections.abc import Sequence
from typing import Protocol

from spark_kafka_source.client import Topic
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.fetch.losses import RecordsLostError, TopicGoneError
from spark_kafka_source.fetch.positions import Position


class Reactions(Protocol):
    """Decides what becomes of positions; each method may raise instead."""

    def out_of_range(self, position: Position) -> bool:
        """Move a position whose offset is not in the log; return False to have it looked up."""
        ...

    def made_anew(self, position: Position, error: TopicGoneError) -> None:
        """Move a position whose topic was deleted, and another one made by its name."""
        ...

    def lost(self, position: Position, error: RecordsLostError) -> None:
        """Move a position to after the records that are lost, or raise the error."""
        ...

    def failed(self, error: KafkaError, position: Position | None = None) -> None:
        """Take note of what may heal; it is tried again after a pause."""
        ...

    def described(self, topics: Sequence[Topic]) -> None:
        """Take note of topics that a broker has described, or could not describe."""
        ...
