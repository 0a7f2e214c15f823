"""Rate, frequency, average and maximum of one quantity, as in Kafka's metrics."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

_WINDOW_SECONDS = 30.0
_WINDOWS = 2
"""The defaults of `metrics.num.samples`, and of `metrics.sample.window.ms` for the seconds."""


class _Window(NamedTuple):
    began_seconds: float
    number: int
    total: float
    most: float


class Sensor:
    """Values recorded in the last minute or so, and in all. Any thread may use it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._windows = deque([_Window(clock(), 0, 0.0, 0.0)], maxlen=_WINDOWS)
        self.count = 0
        self.total = 0.0
        self.last_seconds: float | None = None
        """Time of the last value on the clock; None if there is none."""

    def record(self, value: float = 1.0) -> None:
        """Record a value."""
        with self._lock:
            self._turn()
            began, count, total, most = self._windows[-1]
            self._windows[-1] = _Window(began, count + 1, total + value, max(most, value))
            self.count += 1
            self.total += value
            self.last_seconds = self._clock()

    @property
    def rate(self) -> float:
        """Sum of the recent values per second."""
        windows = self._recent()
        return sum(each.total for each in windows) / self._span_seconds(windows)

    @property
    def frequency(self) -> float:
        """Number of recent values per second."""
        windows = self._recent()
        return sum(each.number for each in windows) / self._span_seconds(windows)

    @property
    def average(self) -> float:
        """Average of the recent values; 0.0 if there are none."""
        windows = self._recent()
        count = sum(each.number for each in windows)
        return sum(each.total for each in windows) / count if count else 0.0

    @property
    def most(self) -> float:
        """Largest recent value; 0.0 if there are none."""
        return max(each.most for each in self._recent())

    @property
    def seconds_ago(self) -> float:
        """Seconds since the last value; -1.0 if there never was one."""
        return -1.0 if self.last_seconds is None else self._clock() - self.last_seconds

    def _span_seconds(self, windows: Sequence[_Window]) -> float:
        return max(self._clock() - windows[0].began_seconds, 1.0)

    def _recent(self) -> Sequence[_Window]:
        with self._lock:
            self._turn()
            return tuple(self._windows)

    def _turn(self) -> None:
        now_seconds = self._clock()
        if now_seconds - self._windows[-1].began_seconds >= _WINDOW_SECONDS:
            if now_seconds - self._windows[-1].began_seconds >= _WINDOWS * _WINDOW_SECONDS:
                self._windows.clear()
            self._windows.append(_Window(now_seconds, 0, 0.0, 0.0))
