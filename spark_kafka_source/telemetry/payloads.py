"""The payload of a push: the values that a subscription wants, up to a number of bytes."""

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from spark_kafka_source.telemetry import otlp
from spark_kafka_source.telemetry.figures import Figures, Tags
from spark_kafka_source.telemetry.otlp import Temporality
from spark_kafka_source.telemetry.subscription import Subscription

_TOTAL = ".total"
_NO_TAGS: Tags = {}

_AROUND_BYTES = 40
"""At most what is around a metric's name and points, and around the labels, in bytes."""

_KEY_BYTES = 4
"""The number and the length of a field, of less than 2 MiB."""


@dataclass(frozen=True, slots=True)
class Payload:
    """A payload, and the sums in it: the value and the time of each, by name."""

    data: bytes
    sums: dict[str, tuple[float, int]]


class Payloads:
    """The values of a client's metrics, and the sums that brokers have already.

    A delta covers the time since the last push that a broker took. So a lost push loses nothing.
    """

    def __init__(self, figures: Figures, clock_ns: Callable[[], int] = time.time_ns) -> None:
        """`clock_ns` returns the time in ns since 1970."""
        self.figures = figures
        self._clock_ns = clock_ns
        self._began_ns = clock_ns()
        self._accepted: dict[str, tuple[float, int]] = {}

    def payload(self, subscription: Subscription, labels: Tags) -> Payload:
        """Return the payload with the present values.

        What has no room is left out: the last metrics, and of a metric the last values. NaN is
        left out, too: it stands for a value that is not known.
        """
        at_ns = self._clock_ns()
        left_bytes = subscription.most_bytes - len(otlp.metrics_data(labels, ())) - _AROUND_BYTES
        metrics: list[bytes] = []
        sums: dict[str, tuple[float, int]] = {}
        for name, values in self.figures.items():
            if name not in subscription.names:
                continue
            room_bytes = left_bytes - len(name) - _AROUND_BYTES
            if name.endswith(_TOTAL):
                total = sum(value for _, value in values())
                metric = self._sum(name, total, at_ns, subscription.temporality, room_bytes)
                if metric:
                    sums[name] = total, at_ns
            else:
                metric = _gauge(name, values(), at_ns, room_bytes)
            if metric:
                metrics.append(metric)
                left_bytes -= len(metric) + _KEY_BYTES
        return Payload(otlp.metrics_data(labels, metrics), sums)

    def accepted(self, payload: Payload) -> None:
        """Note that a broker has taken this payload."""
        self._accepted |= payload.sums

    def _sum(
        self, name: str, total: float, at_ns: int, temporality: Temporality, room_bytes: int
    ) -> bytes:
        """Return a sum, or nothing if there is no room for it."""
        accepted, since_ns = 0.0, self._began_ns
        if temporality is Temporality.DELTA:
            accepted, since_ns = self._accepted.get(name, (accepted, since_ns))
        point = otlp.point(total - accepted, _NO_TAGS, at_ns, since_ns)
        return otlp.sum_of(name, point, temporality) if len(point) <= room_bytes else b""


def _gauge(name: str, values: Iterable[tuple[Tags, float]], at_ns: int, room_bytes: int) -> bytes:
    """Return a gauge with as many values as there is room for; nothing if there is no value."""
    points: list[bytes] = []
    for tags, value in values:
        if math.isnan(value):
            continue
        point = otlp.point(value, tags, at_ns)
        room_bytes -= len(point) + _KEY_BYTES
        if room_bytes < 0:
            break
        points.append(point)
    return otlp.gauge(name, points) if points else b""
