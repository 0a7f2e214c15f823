"""Deletion of groups (DeleteGroups, KIP-229) and of some of their offsets (OffsetDelete)."""

from collections.abc import Iterable, Iterator

from spark_kafka_source.admin.committed import all_committed
from spark_kafka_source.admin.errors import unless_error
from spark_kafka_source.admin.questions import ask_groups
from spark_kafka_source.client import Broker, CoordinatorKey, KafkaClient, Told
from spark_kafka_source.denials import refusal
from spark_kafka_source.errors import KafkaError, ProtocolError
from spark_kafka_source.protocol.messages.group_admin import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from spark_kafka_source.topic_partition import TopicPartition, each_partition, partitions_by_topic


async def delete_groups(
    client: KafkaClient, group_ids: Iterable[str]
) -> dict[str, KafkaError | None]:
    """Delete groups. Return why each one still exists; None for a deleted group."""
    return await ask_groups(
        client, "DeleteGroups", group_ids, DeleteGroupsRequest, _deleted, wish="it can be deleted"
    )


def _deleted(answer: DeleteGroupsResponse, _: Broker) -> Iterator[Told[CoordinatorKey, None]]:
    for result in answer.results:
        key = CoordinatorKey.of_group(result.group_id)
        yield Told(key, None, result.error_code, result.error_message)


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
            OffsetDeleteRequestTopic(name, list(map(OffsetDeleteRequestPartition, numbers)))
            for name, numbers in partitions_by_topic(partitions).items()
        ],
    )

    def answers(
        answer: OffsetDeleteResponse, _: Broker
    ) -> Iterator[Told[CoordinatorKey, OffsetDeleteResponse]]:
        yield Told(CoordinatorKey.of_group(group_id), answer, answer.error_code)

    responses = await ask_groups(
        client,
        "OffsetDelete",
        [group_id],
        lambda _: request,
        answers,
        wish="its offsets can be deleted",
    )
    return _by_partition(group_id, partitions, unless_error(responses[group_id]))


async def _partitions(
    client: KafkaClient, group_id: str, topics: Iterable[str | TopicPartition]
) -> list[TopicPartition]:
    """Return the given partitions, and all committed ones of the given topics.

    A topic that no longer exists may still have committed offsets.
    """
    given = [topics] if isinstance(topics, str | TopicPartition) else list(topics)
    committed = unless_error((await all_committed(client, [group_id]))[group_id])
    partitions = {TopicPartition(*each) for each in given if not isinstance(each, str)}
    return sorted(partitions | {where for where in committed if where.topic in given})


def _by_partition(
    group_id: str, partitions: Iterable[TopicPartition], answer: OffsetDeleteResponse
) -> dict[TopicPartition, KafkaError | None]:
    codes = {where: row.error_code for where, row in each_partition(answer.topics)}
    errors: dict[TopicPartition, KafkaError | None] = {}
    for where in partitions:
        what = f"OffsetDelete of {where} for group {group_id!r}"
        if where not in codes:
            raise ProtocolError(f"{what}: the answer leaves it out")
        code = codes[where]
        errors[where] = refusal(code, what, topic=where.topic) if code else None
    return errors
