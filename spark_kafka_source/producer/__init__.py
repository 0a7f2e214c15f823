"""Kafka's producer for single records and Arrow columns. The layer beside `consumer`."""

from typing import TYPE_CHECKING

from spark_kafka_source.lazily import importing

if TYPE_CHECKING:
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
    from spark_kafka_source.producer.given_columns import UnknownColumnError
    from spark_kafka_source.producer.kafka_producer import KafkaProducer
    from spark_kafka_source.producer.sequences import PreparedTransaction, ProducerId
    from spark_kafka_source.producer.topics import UnknownPartitionError
    from spark_kafka_source.producer.transaction import (
        TransactionAbortedError,
        TransactionOpenError,
        TransactionStateError,
    )
    from spark_kafka_source.producer.transaction_coordinator import (
        TransactionCoordinator,
        end_each,
    )

__all__ = [
    "PRODUCER_OPTIONS",
    "Acks",
    "BatchMetadata",
    "BufferFullError",
    "ColumnsFuture",
    "KafkaProducer",
    "PreparedTransaction",
    "ProducerConfig",
    "ProducerFencedError",
    "ProducerId",
    "RecordMetadata",
    "RefusedRowsError",
    "SendFuture",
    "TransactionAbortableError",
    "TransactionAbortedError",
    "TransactionCoordinator",
    "TransactionOpenError",
    "TransactionStateError",
    "UnknownColumnError",
    "UnknownPartitionError",
    "UnsendableRecordError",
    "end_each",
]

if not TYPE_CHECKING:
    __getattr__ = importing(
        __name__,
        {
            "buffer_memory": "BufferFullError",
            "config": "Acks PRODUCER_OPTIONS ProducerConfig",
            "delivery": "BatchMetadata ColumnsFuture RecordMetadata SendFuture",
            "errors": (
                "ProducerFencedError RefusedRowsError TransactionAbortableError "
                "UnsendableRecordError"
            ),
            "given_columns": "UnknownColumnError",
            "kafka_producer": "KafkaProducer",
            "sequences": "PreparedTransaction ProducerId",
            "topics": "UnknownPartitionError",
            "transaction": "TransactionAbortedError TransactionOpenError TransactionStateError",
            "transaction_coordinator": "TransactionCoordinator end_each",
        },
    )
