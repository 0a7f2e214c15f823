"""The bound on the bytes that a producer holds (`buffer.memory`). Senders wait in turn."""

import threading
import time
from collections import deque
from collections.abc import Callable

from spark_kafka_source.client import Sensor
from spark_kafka_source.errors import KafkaError, KafkaTimeoutError
from spark_kafka_source.net import Deadline


class BufferFullError(KafkaTimeoutError):
    """The buffer stayed full for `max.block.ms`: brokers take less than is sent, or nothing."""


class BufferMemory:
    """A number of bytes that any thread takes and gives back. Threads wait in turn."""

    def __init__(self, size: int, exhausted: Callable[[], object]) -> None:
        """`exhausted` is called when a thread begins to wait: then all batches must go out."""
        self.size = size
        self.waited_ms = Sensor()
        """How long senders waited for room."""
        self._exhausted = exhausted
        self._free = size
        self._waiting: deque[object] = deque()
        # Ctrl-C may interrupt a condition's own `with` and leave it locked. It cannot do so here.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._closed_by: KafkaError | None = None

    @property
    def free(self) -> int:
        """The number of free bytes."""
        return self._free

    @property
    def is_exhausted(self) -> bool:
        """Whether a thread waits for room: then no batch waits for more records."""
        return bool(self._waiting)

    def take(self, count: int, deadline: Deadline, block: int = 0) -> int:
        """Take `count` bytes, at most `size`, and wait for them until the deadline.

        If more bytes are free, take up to `block` bytes in all. Returns the number of bytes taken.
        Raises `BufferFullError`, or the error of `close`.
        """
        with self._lock:
            if self._waiting or self._free < count:
                self._wait_for(count, deadline)
            if self._closed_by is not None:
                raise self._closed_by.with_traceback(None)
            taken = max(count, min(block, self._free))
            self._free -= taken
        return taken

    def _wait_for(self, count: int, deadline: Deadline) -> None:
        began_seconds = time.monotonic()
        turn = object()
        try:
            self._waiting.append(turn)
            self._exhausted()
            while self._closed_by is None and (self._waiting[0] is not turn or self._free < count):
                if not self._changed.wait(deadline.remaining_seconds()) and deadline.expired:
                    raise BufferFullError(self._full(count, deadline))
        finally:
            self._waiting.remove(turn)
            self._changed.notify_all()
            self.waited_ms.record((time.monotonic() - began_seconds) * 1000)

    def give_back(self, count: int) -> None:
        """Give back `count` bytes."""
        with self._lock:
            self._free += count
            if self._waiting:
                self._changed.notify_all()

    def close(self, error: KafkaError) -> None:
        """End all waits with this error, and refuse later ones with it."""
        with self._lock:
            self._closed_by = self._closed_by or error
            self._changed.notify_all()

    def _full(self, count: int, deadline: Deadline) -> str:
        return (
            f"no room for {count} more bytes within {deadline.timeout_ms} ms ('kafka.max.block.ms')"
            f": {self.size - self._free} of the {self.size} of 'kafka.buffer.memory' wait for"
            " brokers. Send less at a time, or give more memory or time"
        )
