"""Kafka's producer, which takes Arrow; the layer beside `consumer`."""

from spark_kafka_source.producer.buffer_memory import BufferFullError
from spark_kafka_source.producer.config import PRODUCER_OPTIONS, Acks, ProducerConfig
from spark_kafka_source.producer.delivery import (
    BatchMetadata,
    ColumnsFuture,
    RecordMetadata,
    SendFuture,
)
from spark_kafka_source.producer.errors import (
    ProducerFencedError,
    RefusedRowsError,
    TransactionAbortableError,
    UnsendableRecordError,
)
from spark_kafka_source.producer.kafka_producer import KafkaProducer
from spark_kafka_source.producer.partitioners import (
    CONSISTENT_RANDOM,
    MURMUR2,
    MURMUR2_RANDOM,
    NO_PARTITION,
    PARTITIONERS,
    PartitionRows,
    group_by_partition,
)
from spark_kafka_source.producer.sequences import PreparedTransaction, ProducerId
from spark_kafka_source.producer.sticky import StickyPartitioner
from spark_kafka_source.producer.topics import UnknownPartitionError
from spark_kafka_source.producer.transaction import (
    TransactionAbortedError,
    TransactionOpenError,
    TransactionStateError,
)
from spark_kafka_source.producer.transaction_coordinator import TransactionCoordinator

__all__ = [
    "CONSISTENT_RANDOM",
    "MURMUR2",
    "MURMUR2_RANDOM",
    "NO_PARTITION",
    "PARTITIONERS",
    "PRODUCER_OPTIONS",
    "Acks",
    "BatchMetadata",
    "BufferFullError",
    "ColumnsFuture",
    "KafkaProducer",
    "PartitionRows",
    "PreparedTransaction",
    "ProducerConfig",
    "ProducerFencedError",
    "ProducerId",
    "RecordMetadata",
    "RefusedRowsError",
    "SendFuture",
    "StickyPartitioner",
    "TransactionAbortableError",
    "TransactionAbortedError",
    "TransactionCoordinator",
    "TransactionOpenError",
    "TransactionStateError",
    "UnknownPartitionError",
    "UnsendableRecordError",
    "group_by_partition",
]
