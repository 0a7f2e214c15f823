"""Groups and topics from outside, in the terms of Kafka's Admin client."""

from spark_kafka_source.admin.errors import GroupNotEmptyError, GroupNotFoundError
from spark_kafka_source.admin.group_descriptions import (
    GroupDescription,
    GroupListing,
    MemberDescription,
)
from spark_kafka_source.admin.kafka_admin import KafkaAdmin
from spark_kafka_source.admin.lag import GroupLag, PartitionLag
from spark_kafka_source.admin.reset import OffsetReset, OffsetResets
from spark_kafka_source.admin.targets import Shift
from spark_kafka_source.admin.topics import PartitionDescription, TopicDescription

__all__ = [
    "GroupDescription",
    "GroupLag",
    "GroupListing",
    "GroupNotEmptyError",
    "GroupNotFoundError",
    "KafkaAdmin",
    "MemberDescription",
    "OffsetReset",
    "OffsetResets",
    "PartitionDescription",
    "PartitionLag",
    "Shift",
    "TopicDescription",
]
