"""Calls that block, in threads beside the loop. Those of one queue are made one after the other."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")

# So many queues go on at once. The others have their turn after one call of each.
_MOST_THREADS = 8


class OrderedCalls:
    """Queues of blocking calls. A queue is there while one of its calls waits or is under way.

    A call that is cancelled while it waits in its queue is not made. One that a thread makes
    already goes on, and the later ones of its queue wait for it.
    """

    def __init__(self) -> None:
        # Without work its threads end with this object.
        self._threads = ThreadPoolExecutor(_MOST_THREADS, "calls of a producer")
        self._lock = threading.Lock()
        self._queues: dict[str | None, deque[tuple[Future[Any], Callable[[], Any]]]] = {}

    def __contains__(self, name: str | None) -> bool:
        return name in self._queues

    async def call(self, name: str | None, call: Callable[[], T]) -> T:
        """Make a call after all earlier ones of its queue, and return its result."""
        result: Future[T] = Future()
        with self._lock:
            queue = self._queues.setdefault(name, deque())
            queue.append((result, call))
            if len(queue) == 1:
                self._threads.submit(self._make_first, name)
        return await asyncio.wrap_future(result)

    def _make_first(self, name: str | None) -> None:
        queue = self._queues[name]
        result, call = queue[0]
        tell: Callable[[], object] = result.cancel
        if result.set_running_or_notify_cancel():
            try:
                tell = partial(result.set_result, call())
            except BaseException as error:
                tell = partial(result.set_exception, error)
        with self._lock:
            queue.popleft()
            if queue:
                self._threads.submit(self._make_first, name)
            else:
                del self._queues[name]
        tell()  # Last: a caller that has the result finds the queue empty.
