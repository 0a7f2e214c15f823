"""Metrics of a group member: joins, heartbeats and rebalances, with failed ones.

https://kafka.apache.org/documentation/#consumer_group_monitoring
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

from spark_kafka_source.client.metrics import Measures
from spark_kafka_source.client.sensor import Sensor, SensorConfig
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
    """Sensors of one group member. `measures` reads all of them, in any thread.

    The thread that talks to the coordinator records. A rebalance begins when the member joins.
    With KIP-848 it begins with the first heartbeat, or when the member must give up partitions.
    It ends once the assignment is complete.
    """

    def __init__(
        self, config: SensorConfig | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._done_ms = {name: Sensor(config, clock) for name in _NAMES.values()}
        self._failed = {name: Sensor(config, clock) for name in _NAMES.values()}
        self._rebalance_ms = Sensor(config, clock)
        self._failed_rebalances = Sensor(config, clock)
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
            self._rebalancing_since_seconds = self._clock()

    def rebalance_ended(self) -> None:
        """Record that the member has its assignment."""
        began_seconds = self._rebalancing_since_seconds
        since_seconds = self._clock() if began_seconds is None else began_seconds
        self._rebalancing_since_seconds = None
        self._rebalance_ms.record((self._clock() - since_seconds) * 1000)

    def rebalance_failed(self) -> None:
        """Record that the member lost its partitions: a rebalance went on without it."""
        self._rebalancing_since_seconds = None
        self._failed_rebalances.record()

    @property
    def measures(self) -> Measures:
        """The functions of all metrics. Times are in milliseconds, rates per second or hour."""
        found: dict[str, Callable[[], float]] = {
            "last-heartbeat-seconds-ago": lambda: self._done_ms["heartbeat"].seconds_ago,
            "heartbeat-response-time-max": lambda: self._done_ms["heartbeat"].most,
            "join-time-avg": lambda: self._done_ms["join"].average,
            "join-time-max": lambda: self._done_ms["join"].most,
            "sync-time-avg": lambda: self._done_ms["sync"].average,
            "sync-time-max": lambda: self._done_ms["sync"].most,
            "rebalance-total": lambda: self._rebalance_ms.count,
            "rebalance-rate-per-hour": lambda: self._rebalance_ms.frequency * 3600,
            "rebalance-latency-avg": lambda: self._rebalance_ms.average,
            "rebalance-latency-max": lambda: self._rebalance_ms.most,
            "rebalance-latency-total": lambda: self._rebalance_ms.total,
            "last-rebalance-seconds-ago": lambda: self._rebalance_ms.seconds_ago,
            "failed-rebalance-total": lambda: self._failed_rebalances.count,
            "failed-rebalance-rate-per-hour": lambda: self._failed_rebalances.frequency * 3600,
        }
        for name, done in self._done_ms.items():
            found |= _of_requests(name, done, self._failed[name])
        return found


def _of_requests(name: str, done: Sensor, failed: Sensor) -> Measures:
    return {
        f"{name}-rate": lambda: done.frequency,
        f"{name}-total": lambda: done.count,
        f"failed-{name}-total": lambda: failed.count,
    }
