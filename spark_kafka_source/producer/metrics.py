"""Counts and rates of one producer, under Kafka's names.

https://kafka.apache.org/documentation/#producer_monitoring
"""

import time
from collections.abc import Iterable

from spark_kafka_source.client import Sensor
from spark_kafka_source.producer.batch import ProducerBatch
from spark_kafka_source.producer.buffer_memory import BufferMemory


class ProducerMetrics:
    """The sensors of one producer; `snapshot` reads them all."""

    def __init__(self, memory: BufferMemory) -> None:
        self._memory = memory
        self._request_ms = Sensor()
        self._records = Sensor()
        self._bytes = Sensor()
        self._batch_bytes = Sensor()
        self._queued_ms = Sensor()
        self._retries = Sensor()
        self._errors = Sensor()
        self._splits = Sensor()

    def sent(self, batches: Iterable[ProducerBatch]) -> None:
        """Count a request with these batches."""
        now_seconds = time.monotonic()
        size = 0
        for batch in batches:
            batch_bytes = 0 if batch.encoded is None else batch.encoded.size
            self._batch_bytes.record(batch_bytes)
            self._queued_ms.record((now_seconds - batch.created_at_seconds) * 1000)
            size += batch_bytes
        self._bytes.record(size)

    def answered(self, milliseconds: float) -> None:
        """Count an answer, and the time that it took."""
        self._request_ms.record(milliseconds)

    def delivered(self, record_count: int) -> None:
        """Count records that are written."""
        self._records.record(record_count)

    def failed(self, record_count: int) -> None:
        """Count records that failed."""
        self._errors.record(record_count)

    def retried(self) -> None:
        """Count a batch that is sent again."""
        self._retries.record(1)

    def split(self) -> None:
        """Count a batch that was too large and became two."""
        self._splits.record(1)

    def snapshot(self) -> dict[str, float]:
        """Return all metrics. Times are in milliseconds unless the name says ns; rates in 1/s."""
        return {
            "record-send-rate": self._records.rate,
            "record-send-total": self._records.total,
            "record-error-rate": self._errors.rate,
            "record-error-total": self._errors.total,
            "record-retry-rate": self._retries.rate,
            "record-retry-total": self._retries.total,
            "record-queue-time-avg": self._queued_ms.average,
            "record-queue-time-max": self._queued_ms.most,
            "records-per-request-avg": self._records.total / max(self._request_ms.count, 1),
            "batch-size-avg": self._batch_bytes.average,
            "batch-size-max": self._batch_bytes.most,
            "batch-split-rate": self._splits.rate,
            "batch-split-total": self._splits.total,
            "outgoing-byte-rate": self._bytes.rate,
            "outgoing-byte-total": self._bytes.total,
            "request-latency-avg": self._request_ms.average,
            "request-latency-max": self._request_ms.most,
            "request-rate": self._request_ms.frequency,
            "request-total": self._request_ms.count,
            "bufferpool-wait-time-ns-total": self._memory.waited_ms.total * 1e6,
            "buffer-total-bytes": float(self._memory.size),
            "buffer-available-bytes": float(self._memory.free),
        }
