"""Waiting for several connections at once."""

import selectors
from collections.abc import Iterable
from typing import Protocol, TypeVar

from spark_kafka_source.net.deadline import Deadline


class HasFileno(Protocol):
    """A socket, or an object that has one.

    An object with a true `has_unsent` is also ready once its socket takes more bytes.
    """

    def fileno(self) -> int:
        """Return the descriptor, or -1 if it is closed."""
        ...


F = TypeVar("F", bound=HasFileno)


def readable(waited_for: Iterable[F], deadline: Deadline) -> list[F]:
    """Wait until some can be read or are closed, and return these. At the deadline, return none.

    Several objects may share a socket. One with bytes to send is also ready when it can send.
    """
    by_fileno: dict[int, list[F]] = {}
    for each in waited_for:
        by_fileno.setdefault(each.fileno(), []).append(each)
    closed = [each for fileno in by_fileno if fileno < 0 for each in by_fileno[fileno]]
    if closed:
        return closed
    with selectors.DefaultSelector() as selector:
        for fileno, sharing in by_fileno.items():
            selector.register(fileno, _events(sharing), sharing)
        ready = selector.select(max(deadline.remaining_seconds(), 0))
        return [each for key, _ in ready for each in key.data]


def _events(sharing: list[F]) -> int:
    has_unsent = any(getattr(each, "has_unsent", False) for each in sharing)
    return selectors.EVENT_READ | (selectors.EVENT_WRITE if has_unsent else 0)
