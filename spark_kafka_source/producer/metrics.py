"""Counts and rates of one producer, under Kafka's names.

https://kafka.apache.org/documentation/#producer_monitoring
"""

import time
from collections.abc import Collection

# The producers of Spark's tasks have no telemetry, and do not import what it needs.
from spark_kafka_source import telemetry
from spark_kafka_source.client import Cluster, Sensor
from spark_kafka_source.client.metrics import Measures
from spark_kafka_source.client.sensor import SensorConfig
from spark_kafka_source.client.traffic import Traffic
from spark_kafka_source.producer.batch import ProducerBatch
from spark_kafka_source.producer.buffer_memory import BufferMemory


class ProducerMetrics:
    """The sensors of one producer; `measures` reads them all."""

    def __init__(self, memory: BufferMemory, config: SensorConfig | None = None) -> None:
        self._memory = memory
        self.traffic = Traffic(config)
        self.throttled_ms = Sensor(config)
        """How long the broker throttles the client, by each answer."""
        self._records_by_request = Sensor(config)
        self._bytes = Sensor(config)
        self._batch_bytes = Sensor(config)
        self._queued_ms = Sensor(config)
        self.request_ms = Sensor(config)
        """The time until each answer."""
        self.written = Sensor(config)
        """Numbers of written records. `failed` has the numbers of failed records."""
        self.failed = Sensor(config)
        self.retries = Sensor(config)
        """1 for each batch that is sent again. The same holds for `splits`."""
        self.splits = Sensor(config)

    def sent(self, batches: Collection[ProducerBatch]) -> None:
        """Count a request with these batches, one or more."""
        now_seconds = time.monotonic()
        sizes = [0 if batch.encoded is None else batch.encoded.size for batch in batches]
        self._batch_bytes.record(*sizes)
        self._queued_ms.record(
            *((now_seconds - batch.created_at_seconds) * 1000 for batch in batches)
        )
        self._bytes.record(sum(sizes))
        self._records_by_request.record(sum(batch.record_count for batch in batches))

    @property
    def measures(self) -> Measures:
        """The functions of all metrics. Rates are per second, times in ms or as the name says."""
        return {
            "record-send-rate": lambda: self.written.rate,
            "record-send-total": lambda: self.written.total,
            "record-error-rate": lambda: self.failed.rate,
            "record-error-total": lambda: self.failed.total,
            "record-retry-rate": lambda: self.retries.rate,
            "record-retry-total": lambda: self.retries.total,
            "record-queue-time-avg": lambda: self._queued_ms.average,
            "record-queue-time-max": lambda: self._queued_ms.most,
            "records-per-request-avg": lambda: self._records_by_request.average,
            "batch-size-avg": lambda: self._batch_bytes.average,
            "batch-size-max": lambda: self._batch_bytes.most,
            "batch-split-rate": lambda: self.splits.rate,
            "batch-split-total": lambda: self.splits.total,
            "outgoing-byte-rate": lambda: self._bytes.rate,
            "outgoing-byte-total": lambda: self._bytes.total,
            "request-latency-avg": lambda: self.request_ms.average,
            "request-latency-max": lambda: self.request_ms.most,
            "request-rate": lambda: self.request_ms.frequency,
            "request-total": lambda: self.request_ms.count,
            "produce-throttle-time-avg": lambda: self.throttled_ms.average,
            "produce-throttle-time-max": lambda: self.throttled_ms.most,
            **self.traffic.measures,
            "bufferpool-wait-time-ns-total": lambda: self._memory.waited_ms.total * 1e6,
            "buffer-total-bytes": lambda: float(self._memory.size),
            "buffer-available-bytes": lambda: float(self._memory.free),
        }

    def figures(self, cluster: Cluster) -> "telemetry.Figures":
        """Return all metrics as brokers may ask for them (KIP-714)."""
        of_nodes = telemetry.node_figures("producer", self.traffic, cluster)
        return {**telemetry.figures_of("producer", "", self.measures), **of_nodes}
