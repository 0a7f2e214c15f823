"""The handler of a reader's errors: it moves positions, or raises."""

from collections.abc import Sequence
from typing import Protocol

from spark_kafka_source.client import Topic
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.fetch.losses import RecordsLostError, TopicGoneError
from spark_kafka_source.fetch.positions import Position


class ErrorHandler(Protocol):
    """The handler of errors of positions. Each method may raise instead."""

    def out_of_range(self, position: Position) -> bool:
        """Move a position whose offset is not in the log. Return False to look up the loss."""
        ...

    def made_anew(self, position: Position, error: TopicGoneError) -> None:
        """Move a position whose topic was deleted and made anew."""
        ...

    def lost(self, position: Position, error: RecordsLostError) -> None:
        """Move a position past its lost records, or raise the error."""
        ...

    def failed(self, error: KafkaError, position: Position | None = None) -> None:
        """Note an error that may heal. The reader tries again after a pause."""
        ...

    def described(self, topics: Sequence[Topic]) -> None:
        """Note topics that a broker has described, or could not describe."""
        ...
