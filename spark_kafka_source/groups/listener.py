"""Who is told what a member gets and what it must give up, in the thread that polls."""

from collections.abc import Callable, Collection
from typing import Protocol

from spark_kafka_source.topic_partition import TopicPartition

Partitions = Collection[TopicPartition]


class RebalanceListener(Protocol):
    """Told in the thread that polls; when it is, is that of Kafka's `ConsumerRebalanceListener`.

    What it raises comes out of `poll` once the member is in order again, and does not keep a
    rebalance from going on.
    """

    def revoked(self, partitions: Partitions) -> None:
        """These are to be given up: the last moment to commit. They are still in `assignment`."""

    def assigned(self, partitions: Partitions) -> None:
        """These are new, and in `assignment`; called after each rebalance, also with none."""

    def lost(self, partitions: Partitions) -> None:
        """These are another's already, maybe: nothing of them can be committed any more."""


class FirstError:
    """Calls one after another, and in the end raises what the first of them raised, if any."""

    def __init__(self) -> None:
        self._error: Exception | None = None

    def call(self, what: Callable[..., None], *arguments: object) -> None:
        """Calls it."""
        try:
            what(*arguments)
        except Exception as error:  # Whatever a user's code may raise.
            self._error = self._error or error

    def tell(self, what: Callable[[Partitions], None], partitions: Partitions) -> None:
        """Calls it with partitions in order."""
        self.call(what, tuple(sorted(partitions)))

    def reraise(self) -> None:
        """Raises it, as it was raised."""
        if self._error is not None:
            raise self._error
