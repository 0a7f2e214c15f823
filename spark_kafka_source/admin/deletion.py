"""Deletion of groups (DeleteGroups, KIP-229) and of some of their offsets (OffsetDelete)."""

from collections.abc import Iterable, Iterator

from spark_kafka_source.admin.committed import all_committed
from spark_kafka_source.admin.coordinators import Told, ask_coordinators
from spark_kafka_source.admin.errors import typed
from spark_kafka_source.client import Broker, KafkaClient
from spark_kafka_source.denials import refusal
from spark_kafka_source.errors import BrokerError, KafkaError, ProtocolError
from spark_kafka_source.groups.assignors.subscription import partitions_by_topic
from spark_kafka_source.protocol.messages.group_admin import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from spark_kafka_source.topic_partition import TopicPartition

_DELETED = "it can be deleted"
_FORGOTTEN = "its offsets can be deleted"


async def delete_groups(
    client: KafkaClient, group_ids: Iterable[str]
) -> dict[str, KafkaError | None]:
    """Delete groups. Return why each one still exists; None for a deleted group."""
    found = await ask_coordinators(
        client,
        "DeleteGroups",
        group_ids,
        lambda mine: DeleteGroupsRequest(groups_names=mine),
        _deleted,
    )
    return {
        each: typed(error, each, _DELETED) if isinstance(error, BrokerError) else None
        for each, error in found.items()
    }


def _deleted(answer: DeleteGroupsResponse, _: Broker) -> Iterator[tuple[Told, None]]:
    for each in answer.results:
        yield Told(each.group_id, each.error_code), None


async def delete_offsets(
    client: KafkaClient, group_id: str, topics: Iterable[str | TopicPartition]
) -> dict[TopicPartition, KafkaError | None]:
    """Delete offsets. Return why each partition still has one; None for a deleted offset.

    Raises the error of the group, such as `GroupNotFoundError`.
    """
    partitions = await _partitions(client, group_id, topics)
    if not partitions:
        return {}
    request = OffsetDeleteRequest(
        group_id,
        [
            OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(each) for each in numbers])
            for name, numbers in partitions_by_topic(partitions).items()
        ],
    )

    def answers(
        answer: OffsetDeleteResponse, _: Broker
    ) -> Iterator[tuple[Told, OffsetDeleteResponse]]:
        yield Told(group_id, answer.error_code), answer

    found = await ask_coordinators(client, "OffsetDelete", [group_id], lambda _: request, answers)
    answer = found[group_id]
    if isinstance(answer, BrokerError):
        raise typed(answer, group_id, _FORGOTTEN)
    return _by_partition(group_id, partitions, answer)


async def _partitions(
    client: KafkaClient, group_id: str, topics: Iterable[str | TopicPartition]
) -> list[TopicPartition]:
    """Return the given partitions, and all committed ones of the given topics.

    A topic that no longer exists may still have committed offsets.
    """
    given = [topics] if isinstance(topics, str | TopicPartition) else list(topics)
    committed = (await all_committed(client, [group_id]))[group_id]
    if isinstance(committed, BrokerError):
        raise typed(committed, group_id, _FORGOTTEN)
    found = {TopicPartition(*each) for each in given if not isinstance(each, str)}
    return sorted(found | {each for each in committed if each.topic in given})


def _by_partition(
    group_id: str, partitions: Iterable[TopicPartition], answer: OffsetDeleteResponse
) -> dict[TopicPartition, KafkaError | None]:
    codes = {
        TopicPartition(topic.name, each.partition_index): each.error_code
        for topic in answer.topics
        for each in topic.partitions
    }
    found: dict[TopicPartition, KafkaError | None] = {}
    for where in partitions:
        what = f"OffsetDelete of {where} for group {group_id!r}"
        if where not in codes:
            raise ProtocolError(f"{what}: the answer leaves it out")
        code = codes[where]
        found[where] = refusal(code, what, topic=where.topic, group_id=group_id) if code else None
    return found
