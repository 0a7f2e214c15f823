"""Counts and rates of one consumer, under the names of Kafka's consumer.

https://kafka.apache.org/documentation/#consumer_monitoring
"""

import math
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from spark_kafka_source.client import Cluster
from spark_kafka_source.client.metrics import Measures
from spark_kafka_source.client.sensor import Sensor, SensorConfig
from spark_kafka_source.client.traffic import Traffic
from spark_kafka_source.consumer.group_metrics import GroupMetrics
from spark_kafka_source.fetch.fetcher import FetchDone
from spark_kafka_source.fetch.positions import Position, Positions
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
        """Record the end of a poll: how much of the time since the one before was spent in it."""
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
        found = None if position is None else self.lag(position)
        return math.nan if found is None else float(found)

    def lags(self) -> dict[TopicPartition, float]:
        """Return the known lags."""
        found = {each.topic_partition: self.lag(each) for each in self._positions}
        return {each: float(lag) for each, lag in found.items() if lag is not None}

    def measures(self, typed: "TypedDecoding | None") -> Measures:
        """Return the functions of metrics that are not of one partition."""
        found: dict[str, Callable[[], float]] = {
            "assigned-partitions": lambda: len(self._positions)
        }
        if typed is not None:
            found["bad-records-skipped-total"] = lambda: typed.skipped
            found["bad-records-sent-total"] = lambda: typed.sent
        found["records-lag-max"] = lambda: max(self.lags().values(), default=0.0)
        return found


def consumer_figures(
    measures: Measures, of_partitions: PartitionMetrics, traffic: Traffic, cluster: Cluster
) -> Figures:
    """Return the metrics of a consumer as brokers may ask for them (KIP-714)."""
    found: dict[str, Callable[[], Iterable[tuple[Tags, float]]]] = {}
    for group, begins in _GROUPS.items():
        mine = {name: each for name, each in measures.items() if name.startswith(begins)}
        found |= figures_of("consumer", group, mine)
    found |= node_figures("consumer", traffic, cluster)
    found[metric_name("consumer", "fetch-manager", LAG)] = lambda: [
        ({"topic": each.topic, "partition": str(each.partition)}, lag)
        for each, lag in of_partitions.lags().items()
    ]
    return found
