"""Cache of values that never change. Threads that ask for the same value share one request."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

from spark_kafka_source.logs import logger_of
from spark_kafka_source.net import Deadline
from spark_kafka_source.registry.errors import RegistryUnavailableError, SchemaNotFoundError

logger = logger_of(__name__)

MOST_UNKNOWN = 100
"""So many unknown keys are asked for at once. Garbage rows can hold any number of ids."""
UNKNOWN_A_SECOND = 50
"""So many, after those."""

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SharedCache(Generic[K, V]):
    """Cache of the `most` values that were used last, by key.

    The first thread that asks for a key makes its value. Other threads wait and get the same value
    or the same error. Errors are not kept. Many unknown keys are slowed down, so that they do not
    flood a registry.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[K, V] = OrderedDict()
        self._under_way: dict[K, Future[V]] = {}
        self._unknown_until_seconds = 0.0
        self._is_slow = False

    def get(self, key: K, make: Callable[[], V], deadline: Deadline) -> V:
        """Return the value, made by `make` if it is not cached. Raises the errors of `make`."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
            under_way = self._under_way.get(key)
            if under_way is None:
                own_future = self._under_way[key] = Future()
        if under_way is not None:
            return self._wait(key, under_way, deadline)
        try:
            value = make()
        except BaseException as error:
            self._end(key)
            own_future.set_exception(error)
            if isinstance(error, SchemaNotFoundError):
                self._slow_down(error)
            raise
        self._end(key, value)
        own_future.set_result(value)
        return value

    def _wait(self, key: K, under_way: "Future[V]", deadline: Deadline) -> V:
        try:
            return under_way.result(deadline.remaining_seconds())
        except TimeoutError as error:
            text = f"{key}: another thread asked for it, and has no answer yet"
            raise RegistryUnavailableError(text) from error

    def _slow_down(self, error: SchemaNotFoundError) -> None:
        now = time.monotonic()
        with self._lock:
            until = max(self._unknown_until_seconds, now) + 1 / UNKNOWN_A_SECOND
            self._unknown_until_seconds = until
        wait_seconds = until - now - MOST_UNKNOWN / UNKNOWN_A_SECOND
        if wait_seconds <= 0:
            return
        if not self._is_slow:
            self._is_slow = True
            text = "Unknown schema ids are asked for at %s a second from now on; the last: %s"
            logger.warning(text, UNKNOWN_A_SECOND, error)
        time.sleep(wait_seconds)

    def _end(self, key: K, *values: V) -> None:
        with self._lock:
            del self._under_way[key]
            for value in values:
                self._kept[key] = value
                if len(self._kept) > self._most:
                    self._kept.popitem(last=False)
