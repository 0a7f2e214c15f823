"""Values that never change, asked for once however many threads want them at the same time."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

from spark_kafka_source.net import Deadline
from spark_kafka_source.registry.errors import RegistryUnavailableError

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Once(Generic[K, V]):
    """The values by their keys, the `most` that were used last.

    The first thread that wants one makes it; the others wait for that, and get what it got, be it
    an error. An error is not kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[K, V] = OrderedDict()
        self._under_way: dict[K, Future[V]] = {}

    def get(self, key: K, make: Callable[[], V], deadline: Deadline) -> V:
        """Return the value; raises what `make` raises."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
            under_way = self._under_way.get(key)
            if under_way is None:
                mine = self._under_way[key] = Future()
        if under_way is not None:
            return self._wait(key, under_way, deadline)
        try:
            value = make()
        except BaseException as error:
            self._end(key)
            mine.set_exception(error)
            raise
        self._end(key, value)
        mine.set_result(value)
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
