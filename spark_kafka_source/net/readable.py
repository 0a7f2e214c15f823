"""Waits for several connections at once."""

import selectors
from collections.abc import Iterable
from typing import Protocol, TypeVar

from spark_kafka_source.net.deadline import Deadline


class HasFileno(Protocol):
    """A socket, or what has one."""

    def fileno(self) -> int:
        """Its descriptor, or -1 where it is closed."""
        ...


F = TypeVar("F", bound=HasFileno)


def readable(waited_for: Iterable[F], deadline: Deadline) -> list[F]:
    """Those that can be read from, or are closed, once there are any; none at the deadline."""
    waited_for = list(waited_for)
    closed = [each for each in waited_for if each.fileno() < 0]
    if closed:
        return closed
    with selectors.DefaultSelector() as selector:
        for each in waited_for:
            selector.register(each, selectors.EVENT_READ, each)
        return [key.data for key, _ in selector.select(max(deadline.remaining_seconds(), 0))]
