"""The bound on what a producer holds: senders wait for their turn (`buffer.memory`)."""

import threading
from collections import deque

from spark_kafka_source.errors import ClosedError, KafkaTimeoutError
from spark_kafka_source.net import Deadline


class BufferFullError(KafkaTimeoutError):
    """The buffer stayed full for `max.block.ms`: brokers take less than is sent, or nothing."""


class BufferMemory:
    """So many bytes, that any thread takes and gives back. Those that wait have their turns."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._free = size
        self._waiting: deque[object] = deque()
        self._changed = threading.Condition()
        self._is_closed = False

    @property
    def free(self) -> int:
        """How many bytes nobody has."""
        return self._free

    @property
    def is_exhausted(self) -> bool:
        """Whether somebody waits for room: then nothing is held back to become more."""
        return bool(self._waiting)

    def has_room(self, count: int) -> bool:
        """Whether so many bytes could be taken without a wait."""
        return not self._waiting and self._free >= count

    def take(self, count: int, deadline: Deadline) -> None:
        """Take so many bytes, at most `size`; wait for them until the deadline.

        Raises `BufferFullError`, and `ClosedError` once it is closed.
        """
        turn = object()
        with self._changed:
            self._waiting.append(turn)
            try:
                while not self._is_closed and (self._waiting[0] is not turn or self._free < count):
                    if not self._changed.wait(deadline.remaining_seconds()) and deadline.expired:
                        raise BufferFullError(self._full(count, deadline))
                if self._is_closed:
                    raise ClosedError("the producer is closed")
                self._free -= count
            finally:
                self._waiting.remove(turn)
                self._changed.notify_all()

    def give_back(self, count: int) -> None:
        """Give back so many bytes."""
        with self._changed:
            self._free += count
            if self._waiting:
                self._changed.notify_all()

    def close(self) -> None:
        """End all waits, and those to come."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _full(self, count: int, deadline: Deadline) -> str:
        return (
            f"no room for {count} more bytes within {deadline.timeout_ms} ms ('kafka.max.block.ms')"
            f": {self.size - self._free} of the {self.size} of 'kafka.buffer.memory' wait for"
            " brokers. Send less at a time, or give more memory or time"
        )
