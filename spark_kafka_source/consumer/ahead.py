"""A thread that goes ahead of the one that consumes, with a bound on what lies between the two."""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Ahead(Generic[T]):
    """Runs `source` in a thread of its own; iterate it once, in another, and close it.

    At most `max_size` lies between the two, by `size` of each item, or one item that is larger.
    What `source` raises is raised to the consumer, after the items before it. `interrupt` is
    called by `close` while the thread still runs, and must wake it from whatever it waits on.
    """

    def __init__(
        self,
        source: Iterator[T],
        *,
        size: Callable[[T], int],
        max_size: int,
        interrupt: Callable[[], None],
    ) -> None:
        self._source = source
        self._size = size
        self._max_size = max_size
        self._interrupt = interrupt
        self._changed = threading.Condition()
        self._items: deque[T] = deque()
        self._held = 0
        self._finished = False
        self._closed = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="fetch-ahead", daemon=True)
        self._thread.start()

    def __iter__(self) -> Generator[T, None, None]:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._items or self._finished)
                if not self._items:
                    break
                item = self._items.popleft()
                self._held -= self._size(item)
                self._changed.notify_all()
            yield item
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Ends the thread, in the middle of its work if need be, and waits for it."""
        with self._changed:
            self._closed = True
            running = not self._finished
            self._items.clear()
            self._changed.notify_all()
        if running:
            self._interrupt()
        self._thread.join()

    def _run(self) -> None:
        try:
            for item in self._source:
                if not self._put(item):
                    break
        except BaseException as error:
            self._error = error
        with self._changed:
            self._finished = True
            self._changed.notify_all()

    def _put(self, item: T) -> bool:
        size = self._size(item)
        with self._changed:
            self._changed.wait_for(
                lambda: self._closed or not self._items or self._held + size <= self._max_size
            )
            self._items.append(item)
            self._held += size
            self._changed.notify_all()
            return not self._closed
