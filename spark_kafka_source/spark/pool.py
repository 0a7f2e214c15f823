"""The connections that a Python worker keeps from one task or micro-batch to the next."""

import math
import os
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")

IDLE_SECONDS = 600.0
"""How long an unused item is kept: about as long as brokers keep idle connections."""

MOST_KEPT = 8
"""The number of items kept: a worker that uses more clusters by turns connects again."""


@dataclass(eq=False, slots=True)
class _Idle(Generic[Item]):
    item: Item
    until_seconds: float
    """The monotonic time until which it is kept."""


class Pool(Generic[Key, Item]):
    """Pool of healthy items that are not in use, by the keys that they were made for.

    An item is closed after `idle_seconds`; with infinity, no thread waits for that.
    """

    def __init__(
        self,
        make: Callable[[Key], Item],
        close: Callable[[Item], object],
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._make, self._close = make, close
        self._idle_seconds = idle_seconds
        self.forget()
        # The child of a fork makes its own.
        os.register_at_fork(after_in_child=self.forget)

    def forget(self) -> None:
        """Keep nothing, and close nothing."""
        # Amid a `take`, the garbage collector may end a dropped task, which puts its client back.
        self._lock = threading.RLock()
        self._idle: dict[Key, _Idle[Item]] = {}
        """The items in the order in which their times end."""
        self._timer: threading.Timer | None = None

    def take(self, key: Key) -> Item:
        """Return an item that only the caller uses until it is put back."""
        with self._lock:
            idle = self._idle.pop(key, None)
        return self._make(key) if idle is None else idle.item

    def put(self, key: Key, item: Item) -> None:
        """Keep an item after use without an error, or close it if enough are kept."""
        with self._lock:
            is_kept = key not in self._idle and len(self._idle) < MOST_KEPT
            if is_kept:
                self._idle[key] = _Idle(item, time.monotonic() + self._idle_seconds)
                self._watch()
        if not is_kept:
            self._close(item)

    def _watch(self) -> None:
        """Have one timer for all items: a thread for each task would cost more than its wait."""
        if self._timer is None and self._idle and self._idle_seconds < math.inf:
            until_seconds = next(iter(self._idle.values())).until_seconds
            timer = threading.Timer(until_seconds - time.monotonic(), self._close_idle)
            timer.daemon = True
            timer.start()
            self._timer = timer

    def _close_idle(self) -> None:
        """Close the items whose time is over, and wait for the next one."""
        with self._lock:
            self._timer = None
            now_seconds = time.monotonic()
            over = [key for key, idle in self._idle.items() if idle.until_seconds <= now_seconds]
            items = [self._idle.pop(key).item for key in over]
            self._watch()
        for item in items:
            self._close(item)

    @contextmanager
    def lent(self, key: Key) -> Iterator[Item]:
        """Take an item and put it back. After any error the item is closed."""
        item = self.take(key)
        try:
            yield item
        except BaseException:
            self._close(item)
            raise
        self.put(key, item)
