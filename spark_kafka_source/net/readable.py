"""One wait for several connections, and its wakeup from another thread."""

import contextlib
import selectors
import socket
from collections.abc import Iterable
from typing import Protocol, TypeVar

from spark_kafka_source.net.deadline import Deadline


class Wakeup:
    """An object that `readable` waits for, until any thread calls `wake`."""

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)

    def wake(self) -> None:
        """End the wait, or the next one. Never raises, not even once it is closed."""
        with contextlib.suppress(OSError):  # A full buffer wakes the reader as well.
            self._writer.send(b"\0")

    def clear(self) -> None:
        """Forget all calls of `wake` so far."""
        with contextlib.suppress(OSError):
            while self._reader.recv(4096):
                pass

    def fileno(self) -> int:
        """Return a descriptor: readable once it is woken, -1 once it is closed."""
        return self._reader.fileno()

    def __del__(self) -> None:
        # Another thread may still wait while the owner closes everything. So the last user closes
        # the sockets.
        if hasattr(self, "_writer"):
            self.close()

    def close(self) -> None:
        """Close it. Wake a waiting thread first."""
        self._writer.close()
        self._reader.close()


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
    for waiting in waited_for:
        by_fileno.setdefault(waiting.fileno(), []).append(waiting)
    closed = [waiting for fileno in by_fileno if fileno < 0 for waiting in by_fileno[fileno]]
    if closed:
        return closed
    with selectors.DefaultSelector() as selector:
        for fileno, sharing in by_fileno.items():
            selector.register(fileno, _events(sharing), sharing)
        ready = selector.select(max(deadline.remaining_seconds(), 0))
        return [waiting for key, _ in ready for waiting in key.data]


def _events(sharing: list[F]) -> int:
    has_unsent = any(getattr(waiting, "has_unsent", False) for waiting in sharing)
    return selectors.EVENT_READ | (selectors.EVENT_WRITE if has_unsent else 0)
