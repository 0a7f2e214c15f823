"""Stub until the real one lands."""
from typing import Any
import pyarrow as pa
from spark_kafka_source.producer.config import ProducerConfig
from spark_kafka_source.producer.delivery import ColumnsFuture

class KafkaProducer:
    """Stub."""
    @classmethod
    def of(cls, config: ProducerConfig) -> "KafkaProducer":
        """Stub."""
        raise NotImplementedError
    def send_columns(self, topic: str | None, columns: pa.RecordBatch | pa.Table) -> ColumnsFuture:
        """Stub."""
        raise NotImplementedError
    def flush(self, timeout_seconds: float | None = None) -> None:
        """Stub."""
    def close(self, timeout_seconds: float | None = None) -> None:
        """Stub."""
