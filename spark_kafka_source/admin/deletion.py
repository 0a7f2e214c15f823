"""Deletes groups, or some of what they have committed: DeleteGroups (KIP-229), OffsetDelete."""

from collections.abc import Iterable, Iterator

from spark_kafka_source.admin.committed import all_committed
from spark_kafka_source.admin.coordinators import Told, ask_coordinators
from spark_kafka_source.admin.errors import typed
from spark_kafka_source.client import Broker, KafkaClient
from spark_kafka_source.errors import BrokerError, KafkaError, ProtocolError, error_code
from spark_kafka_source.groups.assignors.subscription import partitions_by_topic
from spark_kafka_source.protocol import (
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


def delete_groups(client: KafkaClient, group_ids: Iterable[str]) -> dict[str, KafkaError | None]:
    """Why each group is still there; None for one that is deleted."""
    found = ask_coordinators(
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


def delete_offsets(
    client: KafkaClient, group_id: str, topics: Iterable[str | TopicPartition]
) -> dict[TopicPartition, KafkaError | None]:
    """Why each partition is still committed; None for one that is not, any more.

    Raises what is wrong with the group, `GroupNotFoundError` among it.
    """
    partitions = _partitions(client, group_id, topics)
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

    found = ask_coordinators(client, "OffsetDelete", [group_id], lambda _: request, answers)
    answer = found[group_id]
    if isinstance(answer, BrokerError):
        raise typed(answer, group_id, _FORGOTTEN)
    return _by_partition(group_id, partitions, answer)


def _partitions(
    client: KafkaClient, group_id: str, topics: Iterable[str | TopicPartition]
) -> list[TopicPartition]:
    """Those given, and all that the group has committed of topics given, which may be gone."""
    given = [topics] if isinstance(topics, str | TopicPartition) else list(topics)
    committed = all_committed(client, [group_id])[group_id]
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
        found[where] = BrokerError(error_code(code), what) if code else None
    return found
