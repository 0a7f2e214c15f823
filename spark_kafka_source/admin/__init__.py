"""Groups, topics and transactions from outside, in the terms of Kafka's Admin client."""

from typing import TYPE_CHECKING

from spark_kafka_source.lazily import importing

if TYPE_CHECKING:
    from spark_kafka_source.admin.configs import AlterConfigOp, ConfigEntry, ConfigResource
    from spark_kafka_source.admin.errors import (
        GroupNotEmptyError,
        GroupNotFoundError,
        TopicExistsError,
        TransactionNotFoundError,
    )
    from spark_kafka_source.admin.group_descriptions import (
        GroupDescription,
        GroupListing,
        MemberDescription,
    )
    from spark_kafka_source.admin.held_up_partitions import HeldUpPartition, OpenWriter
    from spark_kafka_source.admin.kafka_admin import KafkaAdmin
    from spark_kafka_source.admin.lag import GroupLag, PartitionLag
    from spark_kafka_source.admin.new_topics import NewTopic
    from spark_kafka_source.admin.offset_specs import OffsetSpec
    from spark_kafka_source.admin.reset import OffsetReset, OffsetResets
    from spark_kafka_source.admin.reset_targets import Shift
    from spark_kafka_source.admin.topics import PartitionDescription, TopicDescription
    from spark_kafka_source.admin.transactions import TransactionDescription, TransactionListing

__all__ = [
    "AlterConfigOp",
    "ConfigEntry",
    "ConfigResource",
    "GroupDescription",
    "GroupLag",
    "GroupListing",
    "GroupNotEmptyError",
    "GroupNotFoundError",
    "HeldUpPartition",
    "KafkaAdmin",
    "MemberDescription",
    "NewTopic",
    "OffsetReset",
    "OffsetResets",
    "OffsetSpec",
    "OpenWriter",
    "PartitionDescription",
    "PartitionLag",
    "Shift",
    "TopicDescription",
    "TopicExistsError",
    "TransactionDescription",
    "TransactionListing",
    "TransactionNotFoundError",
]

if not TYPE_CHECKING:
    __getattr__ = importing(
        __name__,
        {
            "configs": "AlterConfigOp ConfigEntry ConfigResource",
            "errors": (
                "GroupNotEmptyError GroupNotFoundError TopicExistsError TransactionNotFoundError"
            ),
            "group_descriptions": "GroupDescription GroupListing MemberDescription",
            "held_up_partitions": "HeldUpPartition OpenWriter",
            "kafka_admin": "KafkaAdmin",
            "lag": "GroupLag PartitionLag",
            "new_topics": "NewTopic",
            "offset_specs": "OffsetSpec",
            "reset": "OffsetReset OffsetResets",
            "reset_targets": "Shift",
            "topics": "PartitionDescription TopicDescription",
            "transactions": "TransactionDescription TransactionListing",
        },
    )
