"""The rights of the client's user on a topic, as brokers tell them (KIP-430)."""

from dataclasses import replace
from enum import Enum

from spark_kafka_source.client.client import KafkaClient
from spark_kafka_source.errors import UnsupportedVersionError
from spark_kafka_source.net import Deadline
from spark_kafka_source.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponseTopic,
)

NOT_TOLD = -0x80000000
"""The value of the operations in an answer that does not tell them."""


class AclOperation(Enum):
    """Rights, by their bits in an answer: org.apache.kafka.common.acl.AclOperation."""

    READ = 3
    WRITE = 4

    def is_in(self, operations: int) -> bool:
        """Whether it is among the operations of an answer."""
        return bool(operations >> self.value & 1)


async def topic_with_rights(
    client: KafkaClient, topic: str, deadline: Deadline
) -> MetadataResponseTopic | None:
    """Ask once for a topic with the user's rights. None if the answer leaves the topic out.

    The topic is not created. Brokers before Kafka 2.3 do not tell rights. Raises the errors of
    `send_to_any`.
    """
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=topic)],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )
    try:
        answer = await client.send_to_any(request, deadline)
    except UnsupportedVersionError:
        request = replace(request, include_topic_authorized_operations=False)
        answer = await client.send_to_any(request, deadline)
    return next((each for each in answer.topics if each.name == topic), None)


def granted(topic: MetadataResponseTopic, operation: AclOperation) -> bool | None:
    """Whether the user has the right on the topic. None if the broker does not tell rights."""
    operations = topic.topic_authorized_operations
    return None if operations == NOT_TOLD else operation.is_in(operations)
