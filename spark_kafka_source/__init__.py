"""Apache Kafka in Python, straight into Arrow, for Spark and for programs without Spark.

Read by `spark.read.format("pykafka")`, by `KafkaConsumer` or by `read_topic`. `KafkaAdmin` shows
groups from outside, and creates topics.
"""

from typing import TYPE_CHECKING

from spark_kafka_source.lazily import importing
from spark_kafka_source.version import VERSION

if TYPE_CHECKING:
    from spark_kafka_source.admin import (
        AlterConfigOp,
        ConfigResource,
        KafkaAdmin,
        NewTopic,
        OffsetSpec,
        Shift,
    )
    from spark_kafka_source.aio.aio_consumer import AIOConsumer
    from spark_kafka_source.aio.aio_producer import AIOProducer
    from spark_kafka_source.client.cluster import PartitionInfo
    from spark_kafka_source.client.metrics import KafkaMetric, MetricsReporter
    from spark_kafka_source.client.prometheus import PrometheusReporter
    from spark_kafka_source.consumer.consumer_records import (
        ConsumerRecord,
        ConsumerRecords,
        MixedColumnsError,
    )
    from spark_kafka_source.consumer.deserializers import RecordDeserializationError
    from spark_kafka_source.consumer.infer_schema import infer_schema
    from spark_kafka_source.consumer.kafka_consumer import KafkaConsumer
    from spark_kafka_source.consumer.read_topic import read_topic, read_topic_batches
    from spark_kafka_source.consumer.rebalance_listener import ConsumerRebalanceListener
    from spark_kafka_source.consumer.waiting import WakeupError
    from spark_kafka_source.dead_letters.writing import DeadLetterError
    from spark_kafka_source.errors import KafkaError
    from spark_kafka_source.fetch.losses import RecordsLostError
    from spark_kafka_source.fetch.offset_reset import NoOffsetError
    from spark_kafka_source.forks import ForkedError
    from spark_kafka_source.groups import CommitFailedError, OffsetAndMetadata
    from spark_kafka_source.groups.assignors import (
        Assignment,
        Assignor,
        RebalanceProtocol,
        Subscription,
    )
    from spark_kafka_source.net import Token, TokenProvider
    from spark_kafka_source.producer.buffer_memory import BufferFullError
    from spark_kafka_source.producer.delivery import RecordMetadata
    from spark_kafka_source.producer.errors import (
        ProducerFencedError,
        TransactionAbortableError,
        UnsendableRecordError,
    )
    from spark_kafka_source.producer.kafka_producer import KafkaProducer
    from spark_kafka_source.producer.parcel import SendFuture
    from spark_kafka_source.secret import Secret
    from spark_kafka_source.spark import (
        KafkaDataSource,
        LagListener,
        PrometheusLagListener,
        encode,
        register,
    )
    from spark_kafka_source.topic_partition import TopicPartition
    from spark_kafka_source.typed.errors import BadRecordError

__version__ = VERSION

__all__ = [
    "AIOConsumer",
    "AIOProducer",
    "AlterConfigOp",
    "Assignment",
    "Assignor",
    "BadRecordError",
    "BufferFullError",
    "CommitFailedError",
    "ConfigResource",
    "ConsumerRebalanceListener",
    "ConsumerRecord",
    "ConsumerRecords",
    "DeadLetterError",
    "ForkedError",
    "KafkaAdmin",
    "KafkaConsumer",
    "KafkaDataSource",
    "KafkaError",
    "KafkaMetric",
    "KafkaProducer",
    "LagListener",
    "MetricsReporter",
    "MixedColumnsError",
    "NewTopic",
    "NoOffsetError",
    "OffsetAndMetadata",
    "OffsetSpec",
    "PartitionInfo",
    "ProducerFencedError",
    "PrometheusLagListener",
    "PrometheusReporter",
    "RebalanceProtocol",
    "RecordDeserializationError",
    "RecordMetadata",
    "RecordsLostError",
    "Secret",
    "SendFuture",
    "Shift",
    "Subscription",
    "Token",
    "TokenProvider",
    "TopicPartition",
    "TransactionAbortableError",
    "UnsendableRecordError",
    "WakeupError",
    "__version__",
    "encode",
    "infer_schema",
    "read_topic",
    "read_topic_batches",
    "register",
]

if not TYPE_CHECKING:  # A consumer needs no PySpark, and a source needs no consumer.
    __getattr__ = importing(
        __name__,
        {
            "admin": "AlterConfigOp ConfigResource KafkaAdmin NewTopic OffsetSpec Shift",
            "aio.aio_consumer": "AIOConsumer",
            "aio.aio_producer": "AIOProducer",
            "client.cluster": "PartitionInfo",
            "client.metrics": "KafkaMetric MetricsReporter",
            "client.prometheus": "PrometheusReporter",
            "consumer.consumer_records": "ConsumerRecord ConsumerRecords MixedColumnsError",
            "consumer.deserializers": "RecordDeserializationError",
            "consumer.infer_schema": "infer_schema",
            "consumer.kafka_consumer": "KafkaConsumer",
            "consumer.read_topic": "read_topic read_topic_batches",
            "consumer.rebalance_listener": "ConsumerRebalanceListener",
            "consumer.waiting": "WakeupError",
            "dead_letters.writing": "DeadLetterError",
            "errors": "KafkaError",
            "fetch.losses": "RecordsLostError",
            "fetch.offset_reset": "NoOffsetError",
            "forks": "ForkedError",
            "groups": "CommitFailedError OffsetAndMetadata",
            "groups.assignors": "Assignment Assignor RebalanceProtocol Subscription",
            "net": "Token TokenProvider",
            "producer.buffer_memory": "BufferFullError",
            "producer.delivery": "RecordMetadata",
            "producer.errors": (
                "ProducerFencedError TransactionAbortableError UnsendableRecordError"
            ),
            "producer.kafka_producer": "KafkaProducer",
            "producer.parcel": "SendFuture",
            "secret": "Secret",
            "spark": "KafkaDataSource LagListener PrometheusLagListener encode register",
            "topic_partition": "TopicPartition",
            "typed.errors": "BadRecordError",
        },
    )
