"""Counts and rates of one consumer, by the names that Kafka's own gives them.

https://kafka.apache.org/documentation/#consumer_monitoring
"""

import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

_WINDOW_SECONDS = 30.0
_WINDOWS = 2
"""As many as `metrics.num.samples`, each as long as `metrics.sample.window.ms`, by default."""


class _Window(NamedTuple):
    began_seconds: float
    number: int
    total: float
    most: float


class Sensor:
    """What was recorded in the last minute or so, and in all."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._windows = deque([_Window(clock(), 0, 0.0, 0.0)], maxlen=_WINDOWS)
        self.count = 0
        self.total = 0.0

    def record(self, value: float = 1.0) -> None:
        """Something happened, of this size."""
        self._turn()
        began, count, total, most = self._windows[-1]
        self._windows[-1] = _Window(began, count + 1, total + value, max(most, value))
        self.count += 1
        self.total += value

    @property
    def rate(self) -> float:
        """The sum of the sizes, a second."""
        self._turn()
        seconds = max(self._clock() - self._windows[0].began_seconds, 1.0)
        return sum(each.total for each in self._windows) / seconds

    @property
    def frequency(self) -> float:
        """How often, a second."""
        self._turn()
        seconds = max(self._clock() - self._windows[0].began_seconds, 1.0)
        return sum(each.number for each in self._windows) / seconds

    @property
    def average(self) -> float:
        """The average size; 0.0 where there was nothing."""
        self._turn()
        count = sum(each.number for each in self._windows)
        return sum(each.total for each in self._windows) / count if count else 0.0

    @property
    def most(self) -> float:
        """The largest size; 0.0 where there was nothing."""
        self._turn()
        return max(each.most for each in self._windows)

    def _turn(self) -> None:
        now_seconds = self._clock()
        if now_seconds - self._windows[-1].began_seconds >= _WINDOW_SECONDS:
            if now_seconds - self._windows[-1].began_seconds >= _WINDOWS * _WINDOW_SECONDS:
                self._windows.clear()
            self._windows.append(_Window(now_seconds, 0, 0.0, 0.0))


class Metrics:
    """The sensors of one consumer; `snapshot` reads them all."""

    def __init__(self) -> None:
        self.fetch_ms = Sensor()
        self.fetched_bytes = Sensor()
        self.records = Sensor()
        self.commit_ms = Sensor()
        self.between_polls_ms = Sensor()
        self.waited_ms = Sensor()
        self._polled_at_seconds: float | None = None

    def poll_began(self) -> None:
        """A poll began."""
        now_seconds = time.monotonic()
        if self._polled_at_seconds is not None:
            self.between_polls_ms.record((now_seconds - self._polled_at_seconds) * 1000)
        self._polled_at_seconds = now_seconds

    def snapshot(self) -> dict[str, float]:
        """All of them now; times are in milliseconds, rates a second."""
        polled = self._polled_at_seconds
        return {
            "fetch-latency-avg": self.fetch_ms.average,
            "fetch-latency-max": self.fetch_ms.most,
            "fetch-rate": self.fetch_ms.frequency,
            "fetch-total": self.fetch_ms.count,
            "fetch-size-avg": self.fetched_bytes.average,
            "fetch-size-max": self.fetched_bytes.most,
            "bytes-consumed-rate": self.fetched_bytes.rate,
            "bytes-consumed-total": self.fetched_bytes.total,
            "records-consumed-rate": self.records.rate,
            "records-consumed-total": self.records.total,
            "records-per-request-avg": self.records.total / max(self.fetch_ms.count, 1),
            "commit-latency-avg": self.commit_ms.average,
            "commit-latency-max": self.commit_ms.most,
            "commit-rate": self.commit_ms.frequency,
            "commit-total": self.commit_ms.count,
            "time-between-poll-avg": self.between_polls_ms.average,
            "time-between-poll-max": self.between_polls_ms.most,
            "poll-idle-ratio-avg": min(1.0, self.waited_ms.rate / 1000),
            "last-poll-seconds-ago": -1.0 if polled is None else time.monotonic() - polled,
        }
