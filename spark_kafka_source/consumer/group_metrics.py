"""Metrics of a group member: joins, heartbeats and rebalances, with failed ones.

https://kafka.apache.org/documentation/#consumer_group_monitoring
"""

import time
from collections.abc import Mapping
from typing import Any

from spark_kafka_source.client.sensor import Sensor
from spark_kafka_source.protocol import Request
from spark_kafka_source.protocol.messages.membership import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    SyncGroupRequest,
)

_NAMES: Mapping[type[Request[Any]], str] = {
    JoinGroupRequest: "join",
    SyncGroupRequest: "sync",
    HeartbeatRequest: "heartbeat",
    ConsumerGroupHeartbeatRequest: "heartbeat",
}


class GroupMetrics:
    """Sensors of one group member. `snapshot` reads all of them, in any thread.

    The thread that talks to the coordinator records. A rebalance begins when the member joins.
    With KIP-848 it begins with the first heartbeat, or when the member must give up partitions.
    It ends once the assignment is complete.
    """

    def __init__(self) -> None:
        self._done_ms = {name: Sensor() for name in _NAMES.values()}
        self._failed = {name: Sensor() for name in _NAMES.values()}
        self._rebalance_ms = Sensor()
        self._failed_rebalances = Sensor()
        self._rebalancing_since_seconds: float | None = None

    def requested(self, request: Request[Any], took_ms: float, error: Exception | None) -> None:
        """Record the end of a request to the coordinator."""
        name = _NAMES.get(type(request))
        if name is None:
            return
        if error is None:
            self._done_ms[name].record(took_ms)
        else:
            self._failed[name].record()

    def rebalance_began(self) -> None:
        """Record that a rebalance began. A second call in the same rebalance has no effect."""
        if self._rebalancing_since_seconds is None:
            self._rebalancing_since_seconds = time.monotonic()

    def rebalance_ended(self) -> None:
        """Record that the member has its assignment."""
        since_seconds = self._rebalancing_since_seconds or time.monotonic()
        self._rebalancing_since_seconds = None
        self._rebalance_ms.record((time.monotonic() - since_seconds) * 1000)

    def rebalance_failed(self) -> None:
        """Record that the member lost its partitions: a rebalance went on without it."""
        self._rebalancing_since_seconds = None
        self._failed_rebalances.record()

    def snapshot(self) -> dict[str, float]:
        """Return all current values. Times are in milliseconds, rates per second or hour."""
        found: dict[str, float] = {
            "last-heartbeat-seconds-ago": self._done_ms["heartbeat"].seconds_ago,
            "heartbeat-response-time-max": self._done_ms["heartbeat"].most,
            "join-time-avg": self._done_ms["join"].average,
            "join-time-max": self._done_ms["join"].most,
            "sync-time-avg": self._done_ms["sync"].average,
            "sync-time-max": self._done_ms["sync"].most,
            "rebalance-total": self._rebalance_ms.count,
            "rebalance-rate-per-hour": self._rebalance_ms.frequency * 3600,
            "rebalance-latency-avg": self._rebalance_ms.average,
            "rebalance-latency-max": self._rebalance_ms.most,
            "rebalance-latency-total": self._rebalance_ms.total,
            "last-rebalance-seconds-ago": self._rebalance_ms.seconds_ago,
            "failed-rebalance-total": self._failed_rebalances.count,
            "failed-rebalance-rate-per-hour": self._failed_rebalances.frequency * 3600,
        }
        for name, done in self._done_ms.items():
            found[f"{name}-rate"] = done.frequency
            found[f"{name}-total"] = done.count
            found[f"failed-{name}-total"] = self._failed[name].count
        return found
