"""Rate, frequency, average and maximum of one quantity, as in Kafka's metrics.

They cover the last windows of time: `metrics.num.samples` windows of `metrics.sample.window.ms`.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from spark_kafka_source.options.declaration import option
from spark_kafka_source.options.kinds import int32, int64

_LEAST_SECONDS = 0.001


@dataclass(frozen=True, slots=True)
class SensorConfig:
    """How long the values of metrics count, with Kafka's names and defaults."""

    metrics_num_samples: int = option("kafka.metrics.num.samples", int32(2, minimum=1))
    metrics_sample_window_ms: int = option(
        "kafka.metrics.sample.window.ms", int64(30_000, minimum=1)
    )


@dataclass(slots=True)
class _Window:
    began_seconds: float
    ended_seconds: float
    """Time of its last value."""
    number: int = 0
    total: float = 0.0
    most: float = 0.0


class Sensor:
    """Values recorded in the last windows, and in all. Any thread may use it.

    A window begins with a value, once the window before it is over. A window counts until its last
    value is as old as all windows are long, so the oldest may reach back further: there is one
    window more than is set. One that counts no more begins anew. All of this is Kafka's.
    """

    def __init__(
        self,
        config: SensorConfig | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        config = config or SensorConfig()
        self._samples = config.metrics_num_samples
        self._window_seconds = config.metrics_sample_window_ms / 1000
        self._clock = clock
        self._lock = threading.Lock()
        self._windows: list[_Window] = []
        self._place = 0
        self.count = 0
        self.total = 0.0
        self.last_seconds: float | None = None
        """Time of the last value on the clock; None if there is none."""

    def record(self, value: float = 1.0, *others: float) -> None:
        """Record one or more values."""
        number, total = 1 + len(others), value + sum(others)
        with self._lock:
            now_seconds = self._clock()
            window = self._current_window(now_seconds)
            window.ended_seconds = now_seconds
            window.number += number
            window.total += total
            window.most = max(window.most, value, *others)
            self.count += number
            self.total += total
            self.last_seconds = now_seconds

    @property
    def rate(self) -> float:
        """Sum of the recent values per second.

        The time is that of all windows but one at least, also in the first seconds.
        """
        recent, seconds = self._recent()
        return recent.total / seconds

    @property
    def frequency(self) -> float:
        """Number of recent values per second, over the time that `rate` has."""
        recent, seconds = self._recent()
        return recent.number / seconds

    @property
    def average(self) -> float:
        """Average of the recent values; 0.0 if there are none."""
        return self.average_by(self)

    def average_by(self, other: "Sensor") -> float:
        """Sum of the recent values divided by the number of another sensor's recent values."""
        return self._recent()[0].total / max(other._recent()[0].number, 1)

    @property
    def most(self) -> float:
        """Largest recent value; 0.0 if there are none."""
        return self._recent()[0].most

    @property
    def seconds_ago(self) -> float:
        """Seconds since the last value; -1.0 if there never was one."""
        return -1.0 if self.last_seconds is None else self._clock() - self.last_seconds

    def _current_window(self, now_seconds: float) -> _Window:
        """Return the window for a value that comes now."""
        if not self._windows:
            self._windows.append(_Window(now_seconds, now_seconds))
        elif now_seconds - self._windows[self._place].began_seconds >= self._window_seconds:
            self._place = (self._place + 1) % (self._samples + 1)
            self._windows[self._place : self._place + 1] = [_Window(now_seconds, now_seconds)]
        return self._windows[self._place]

    def _recent(self) -> tuple[_Window, float]:
        """Return all windows that count as one, and how many seconds they stand for."""
        with self._lock:
            now_seconds = self._clock()
            if not self._windows:
                self._current_window(now_seconds)
            kept_seconds = self._samples * self._window_seconds
            self._windows = [
                _Window(now_seconds, now_seconds)
                if now_seconds - window.ended_seconds >= kept_seconds
                else window
                for window in self._windows
            ]
            began_seconds = min(window.began_seconds for window in self._windows)
            number = sum(window.number for window in self._windows)
            total = sum(window.total for window in self._windows)
            most = max(window.most for window in self._windows)
        seconds = self._span_seconds(now_seconds - began_seconds)
        return _Window(began_seconds, now_seconds, number, total, most), seconds

    def _span_seconds(self, elapsed_seconds: float) -> float:
        lacking = self._samples - 1 - int(elapsed_seconds // self._window_seconds)
        return max(elapsed_seconds + max(lacking, 0) * self._window_seconds, _LEAST_SECONDS)
