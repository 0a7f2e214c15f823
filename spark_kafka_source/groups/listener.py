"""Listeners for partitions that a member gets or gives up, called in the thread that polls."""

from collections.abc import Awaitable, Callable, Collection
from inspect import isawaitable
from typing import Protocol

from spark_kafka_source.topic_partition import TopicPartition

Partitions = Collection[TopicPartition]


class RebalanceListener(Protocol):
    """A listener for rebalances, called like Kafka's `ConsumerRebalanceListener`.

    All calls come in the thread that polls. An error that the listener raises does not stop the
    rebalance: `poll` raises it at the end of the member's step. What a method returns is awaited if
    it can be.
    """

    def revoked(self, partitions: Partitions) -> Awaitable[None] | None:
        """Called before the member gives up `partitions`, which are still in `assignment`.

        This is the last moment to commit their offsets.
        """

    def assigned(self, partitions: Partitions) -> Awaitable[None] | None:
        """Called after each rebalance with the new partitions, also with none.

        They are in `assignment`.
        """

    def lost(self, partitions: Partitions) -> Awaitable[None] | None:
        """Called for partitions that others may own already.

        Their offsets can no longer be committed.
        """


class FirstError:
    """A chain of calls. After the last of them, `reraise` raises the first error, if any."""

    def __init__(self) -> None:
        self._error: Exception | None = None

    async def call(self, what: Callable[..., Awaitable[None] | None], *arguments: object) -> None:
        """Call `what`, and keep its error if it is the first."""
        try:
            returned = what(*arguments)
            if isawaitable(returned):
                await returned
        except Exception as error:  # A user's code may raise anything.
            self._error = self._error or error

    async def tell(
        self, what: Callable[[Partitions], Awaitable[None] | None], partitions: Partitions
    ) -> None:
        """Call `what` with the partitions in order."""
        await self.call(what, tuple(sorted(partitions)))

    def reraise(self) -> None:
        """Raise the first error, if there was one."""
        if self._error is not None:
            raise self._error
