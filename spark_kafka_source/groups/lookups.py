"""Metadata for members: the partitions to divide, and the names of topics."""

import uuid
from collections.abc import Callable, Collection, Mapping

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.denials import refusal
from spark_kafka_source.groups.assignors import Cluster
from spark_kafka_source.net import Conversation, Deadline
from spark_kafka_source.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

LONGEST_LOOKUP_MS = 10_000
"""Timeout for a lookup, which may be of topics of other members only."""

TopicsOf = Callable[[Collection[str], Deadline], Conversation[Cluster]]
"""Returns the partitions of topics. Topics that do not exist (yet) are left out."""
NamesOf = Callable[[Collection[uuid.UUID], Deadline], Conversation[Mapping[uuid.UUID, str]]]
"""Returns the names of topics by their ids. Topics that are not known (yet) are left out."""


async def partitions_to_assign(
    client: KafkaClient, topics: Collection[str], deadline: Deadline
) -> Cluster:
    """Return the partitions of topics, with their brokers. Ask once.

    A topic that does not exist (yet), or has no leaders (yet), is left out. Raises `BrokerError` if
    the broker refuses to describe a topic, and the errors of a client.
    """
    described = await client.topics(sorted(topics), deadline) if topics else []
    for topic in described:
        if topic.error.code and not topic.error.retriable:
            what = f"Metadata of {topic.name}, to assign its partitions"
            raise refusal(topic.error, what, topic=topic.name)
    return {topic.name: topic.partition_infos for topic in described if not topic.error.code}


async def topic_names(
    client: KafkaClient, topic_ids: Collection[uuid.UUID], deadline: Deadline
) -> dict[uuid.UUID, str]:
    """Return the names of topics by their ids.

    Ask once, and leave out topics that do not exist (yet).
    """
    topics = [MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in topic_ids]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    response = await client.send_to_any(request, deadline)
    return {
        topic.topic_id: topic.name
        for topic in response.topics
        if topic.name and not topic.error_code
    }
