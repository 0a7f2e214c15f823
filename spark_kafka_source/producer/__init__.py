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
    )
    from spark_kafka_source.producer.errors import (
        ProducerFencedError,
        RefusedRowsError,
        TransactionAbortableError,
        TransactionAbortedError,
        TransactionStateError,
        UnsendableRecordError,
    )
    from spark_kafka_source.producer.generation import Generation, generation_of
    from spark_kafka_source.producer.given_columns import UnknownColumnError
    from spark_kafka_source.producer.kafka_producer import KafkaProducer
    from spark_kafka_source.producer.parcel import SendFuture
    from spark_kafka_source.producer.sequences import (
        Place,
        PreparedTransaction,
        ProducerId,
        is_next,
    )
    from spark_kafka_source.producer.topics import UnknownPartitionError
    from spark_kafka_source.producer.transaction import Beginning
    from spark_kafka_source.producer.transaction_coordinator import (
        TransactionCoordinator,
        end_each,
    )

__all__ = [
    "PRODUCER_OPTIONS",
    "Acks",
    "BatchMetadata",
    "Beginning",
    "BufferFullError",
    "ColumnsFuture",
    "Generation",
    "KafkaProducer",
    "Place",
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
    "TransactionStateError",
    "UnknownColumnError",
    "UnknownPartitionError",
    "UnsendableRecordError",
    "end_each",
    "generation_of",
    "is_next",
]

if not TYPE_CHECKING:
    __getattr__ = importing(
        __name__,
        {
            "buffer_memory": "BufferFullError",
            "config": "Acks PRODUCER_OPTIONS ProducerConfig",
            "delivery": "BatchMetadata ColumnsFuture RecordMetadata",
            "errors": (
                "ProducerFencedError RefusedRowsError TransactionAbortableError "
                "TransactionAbortedError TransactionStateError UnsendableRecordError"
            ),
            "generation": "Generation generation_of",
            "given_columns": "UnknownColumnError",
            "kafka_producer": "KafkaProducer",
            "parcel": "SendFuture",
            "sequences": "Place PreparedTransaction ProducerId is_next",
            "topics": "UnknownPartitionError",
            "transaction": "Beginning",
            "transaction_coordinator": "TransactionCoordinator end_each",
        },
    )
