"""Counts and rates of one consumer and its group member, under the names of Kafka's consumer.

https://kafka.apache.org/documentation/#consumer_monitoring
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from spark_kafka_source.client import Cluster
from spark_kafka_source.client.metrics import Measures
from spark_kafka_source.client.sensor import Sensor, SensorConfig
from spark_kafka_source.client.traffic import Traffic
from spark_kafka_source.fetch.fetcher import FetchDone
from spark_kafka_source.fetch.positions import Position, Positions
from spark_kafka_source.protocol import Request
from spark_kafka_source.protocol.messages.membership import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    SyncGroupRequest,
)
from spark_kafka_source.records import IsolationLevel
from spark_kafka_source.telemetry import Figures, Tags, figures_of, metric_name, node_figures
from spark_kafka_source.topic_partition import TopicPartition

if TYPE_CHECKING:  # Most consumers do not need it.
    from spark_kafka_source.consumer.typed_decoding import TypedDecoding

LAG = "records-lag"

_GROUPS = {
    "": ("connection-", "poll-", "time-between-", "last-poll-"),
    "coordinator": (
        *("assigned-", "commit-", "rebalance-", "heartbeat-", "join-", "sync-"),
        *("failed-rebalance-", "last-heartbeat-", "last-rebalance-"),
    ),
    "fetch-manager": ("fetch-", "records-", "bytes-"),
}
"""How the names of metrics begin, by Kafka's group of metrics. Others are not Kafka's."""


_REQUESTS: Mapping[type[Request[Any]], str] = {
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
        self._done_ms = {name: Sensor(config, clock) for name in _REQUESTS.values()}
        self._failed = {name: Sensor(config, clock) for name in _REQUESTS.values()}
        self._rebalance_ms = Sensor(config, clock)
        self._failed_rebalances = Sensor(config, clock)
        self._rebalancing_since_seconds: float | None = None

    def requested(self, request: Request[Any], took_ms: float, error: Exception | None) -> None:
        """Record the end of a request to the coordinator."""
        name = _REQUESTS.get(type(request))
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
        measures: dict[str, Callable[[], float]] = {
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
            measures |= _of_group_requests(name, done, self._failed[name])
        return measures


def _of_group_requests(name: str, done: Sensor, failed: Sensor) -> Measures:
    return {
        f"{name}-rate": lambda: done.frequency,
        f"{name}-total": lambda: done.count,
        f"failed-{name}-total": lambda: failed.count,
    }


class Metrics:
    """Sensors of one consumer. `measures` reads all of them."""

    def __init__(
        self, config: SensorConfig | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.fetch_ms = Sensor(config, clock)
        self.fetched_bytes = Sensor(config, clock)
        self.records = Sensor(config, clock)
        self.commit_ms = Sensor(config, clock)
        self.between_polls_ms = Sensor(config, clock)
        self.idle_ratio = Sensor(config, clock)
        self.group = GroupMetrics(config, clock)
        self._clock = clock
        self._polled_at_seconds: float | None = None
        self._since_last_poll_seconds = 0.0

    def fetched(self, done: FetchDone) -> None:
        """Record a fetch."""
        self.fetch_ms.record(done.seconds * 1000)
        self.fetched_bytes.record(done.size_bytes)

    def poll_began(self) -> None:
        """Record the start of a poll."""
        now_seconds = self._clock()
        if self._polled_at_seconds is not None:
            self._since_last_poll_seconds = now_seconds - self._polled_at_seconds
            self.between_polls_ms.record(self._since_last_poll_seconds * 1000)
        self._polled_at_seconds = now_seconds

    def poll_ended(self) -> None:
        """Record the end of a poll, and its share of the time since the poll before it."""
        began_seconds = self._polled_at_seconds or 0.0
        took_seconds = self._clock() - began_seconds
        whole_seconds = took_seconds + self._since_last_poll_seconds
        self.idle_ratio.record(took_seconds / whole_seconds if whole_seconds else 1.0)

    def _last_poll_seconds_ago(self) -> float:
        polled = self._polled_at_seconds
        return -1.0 if polled is None else self._clock() - polled

    @property
    def measures(self) -> Measures:
        """The functions of all metrics. Times are in milliseconds, rates per second."""
        return {
            "fetch-latency-avg": lambda: self.fetch_ms.average,
            "fetch-latency-max": lambda: self.fetch_ms.most,
            "fetch-rate": lambda: self.fetch_ms.frequency,
            "fetch-total": lambda: self.fetch_ms.count,
            "fetch-size-avg": lambda: self.fetched_bytes.average,
            "fetch-size-max": lambda: self.fetched_bytes.most,
            "bytes-consumed-rate": lambda: self.fetched_bytes.rate,
            "bytes-consumed-total": lambda: self.fetched_bytes.total,
            "records-consumed-rate": lambda: self.records.rate,
            "records-consumed-total": lambda: self.records.total,
            "records-per-request-avg": lambda: self.records.average_by(self.fetch_ms),
            "commit-latency-avg": lambda: self.commit_ms.average,
            "commit-latency-max": lambda: self.commit_ms.most,
            "commit-rate": lambda: self.commit_ms.frequency,
            "commit-total": lambda: self.commit_ms.count,
            "time-between-poll-avg": lambda: self.between_polls_ms.average,
            "time-between-poll-max": lambda: self.between_polls_ms.most,
            "poll-idle-ratio-avg": lambda: self.idle_ratio.average,
            "last-poll-seconds-ago": self._last_poll_seconds_ago,
            **self.group.measures,
        }


class PartitionMetrics:
    """The metrics of a consumer's partitions."""

    def __init__(self, positions: Positions, isolation_level: IsolationLevel) -> None:
        self._positions = positions
        self._committed_only = isolation_level is IsolationLevel.READ_COMMITTED

    def lag(self, position: Position) -> int | None:
        """Return the number of offsets up to the last known end, or None."""
        end = position.last_stable_offset if self._committed_only else position.high_watermark
        return position.lag(end)

    def lag_or_nan(self, topic_partition: TopicPartition) -> float:
        """Return the lag in a partition; NaN if it is not known."""
        position = self._positions.get(topic_partition)
        lag = None if position is None else self.lag(position)
        return math.nan if lag is None else float(lag)

    def lags(self) -> dict[TopicPartition, float]:
        """Return the known lags."""
        lags = {position.topic_partition: self.lag(position) for position in self._positions}
        return {partition: float(lag) for partition, lag in lags.items() if lag is not None}

    def measures(self, typed: "TypedDecoding | None") -> Measures:
        """Return the functions of metrics that are not of one partition."""
        measures: dict[str, Callable[[], float]] = {
            "assigned-partitions": lambda: len(self._positions)
        }
        if typed is not None:
            measures["bad-records-skipped-total"] = lambda: typed.skipped
            measures["bad-records-sent-total"] = lambda: typed.sent
        measures["records-lag-max"] = lambda: max(self.lags().values(), default=0.0)
        return measures


def consumer_figures(
    measures: Measures, of_partitions: PartitionMetrics, traffic: Traffic, cluster: Cluster
) -> Figures:
    """Return the metrics of a consumer as brokers may ask for them (KIP-714)."""
    figures: dict[str, Callable[[], Iterable[tuple[Tags, float]]]] = {}
    for group, begins in _GROUPS.items():
        of_group = {name: measure for name, measure in measures.items() if name.startswith(begins)}
        figures |= figures_of("consumer", group, of_group)
    figures |= node_figures("consumer", traffic, cluster)
    figures[metric_name("consumer", "fetch-manager", LAG)] = lambda: [
        ({"topic": partition.topic, "partition": str(partition.partition)}, lag)
        for partition, lag in of_partitions.lags().items()
    ]
    return figures
