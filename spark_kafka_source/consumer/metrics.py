"""Counts and rates of one consumer, under the names of Kafka's consumer.

https://kafka.apache.org/documentation/#consumer_monitoring
"""

import time

from spark_kafka_source.client.sensor import Sensor
from spark_kafka_source.consumer.group_metrics import GroupMetrics


class Metrics:
    """Sensors of one consumer. `snapshot` reads all of them."""

    def __init__(self) -> None:
        self.fetch_ms = Sensor()
        self.fetched_bytes = Sensor()
        self.records = Sensor()
        self.commit_ms = Sensor()
        self.between_polls_ms = Sensor()
        self.waited_ms = Sensor()
        self.group = GroupMetrics()
        self._polled_at_seconds: float | None = None

    def poll_began(self) -> None:
        """Record the start of a poll."""
        now_seconds = time.monotonic()
        if self._polled_at_seconds is not None:
            self.between_polls_ms.record((now_seconds - self._polled_at_seconds) * 1000)
        self._polled_at_seconds = now_seconds

    def snapshot(self) -> dict[str, float]:
        """Return all current values. Times are in milliseconds, rates per second."""
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
            **self.group.snapshot(),
        }
