"""Cache of values that never change. Threads that ask for the same value share one request."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

from spark_kafka_source.net import Deadline
from spark_kafka_source.registry.errors import RegistryUnavailableError

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SharedCache(Generic[K, V]):
    """Cache of the `most` values that were used last, by key.

    The first thread that asks for a key makes its value. Other threads wait and get the same value
    or the same error. Errors are not kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[K, V] = OrderedDict()
        self._under_way: dict[K, Future[V]] = {}

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

    def _end(self, key: K, *values: V) -> None:
        with self._lock:
            del self._under_way[key]
            for value in values:
                self._kept[key] = value
                if len(self._kept) > self._most:
                    self._kept.popitem(last=False)
