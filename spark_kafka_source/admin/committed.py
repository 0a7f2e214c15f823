"""All that groups have committed: OffsetFetch without topics, several groups at once (KIP-709)."""

from collections.abc import Iterable, Iterator
from functools import partial

from spark_kafka_source.admin.questions import ask_groups
from spark_kafka_source.client import Broker, CoordinatorKey, KafkaClient, Told
from spark_kafka_source.errors import KafkaError, UnsupportedVersionError
from spark_kafka_source.groups import OffsetAndMetadata, has_no_group
from spark_kafka_source.protocol.messages.groups import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from spark_kafka_source.topic_partition import TopicPartition

Committed = dict[TopicPartition, OffsetAndMetadata]
"""What one group has committed."""

# Topics have names up to v9, and ids from v10 on.
_BY_NAME = 9
_ONE_GROUP = 7


async def all_committed(
    client: KafkaClient, group_ids: Iterable[str]
) -> dict[str, Committed | KafkaError]:
    """Return what each group has committed, or the error.

    A group that does not exist has committed nothing.
    """
    group_ids = list(dict.fromkeys(group_ids))
    ask = partial(ask_groups, client, "OffsetFetch")
    try:
        return await ask(group_ids, _request, _of_several, max_version=_BY_NAME)
    except UnsupportedVersionError:
        found: dict[str, Committed | KafkaError] = {}
        for each in group_ids:
            answers = partial(_of_one, each)
            found |= await ask([each], _request_of_one, answers, max_version=_ONE_GROUP)
        return found


def _request(group_ids: list[str]) -> OffsetFetchRequest:
    return OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(each, topics=None) for each in group_ids]
    )


def _request_of_one(group_ids: list[str]) -> OffsetFetchRequest:
    return OffsetFetchRequest(group_id=group_ids[0], topics=None)


def _of_several(
    answer: OffsetFetchResponse, _: Broker
) -> Iterator[Told[CoordinatorKey, Committed]]:
    for group in answer.groups:
        yield _told(group.group_id, group.error_code, group.topics)


def _of_one(
    group_id: str, answer: OffsetFetchResponse, _: Broker
) -> Iterator[Told[CoordinatorKey, Committed]]:
    yield _told(group_id, answer.error_code, answer.topics)


def _told(
    group_id: str,
    code: int,
    topics: Iterable[OffsetFetchResponseTopic | OffsetFetchResponseTopics],
) -> Told[CoordinatorKey, Committed]:
    key = CoordinatorKey.of_group(group_id)
    said = {
        TopicPartition(topic.name, each.partition_index): each
        for topic in topics
        for each in topic.partitions
    }
    if any(map(has_no_group, [code, *(each.error_code for each in said.values())])):
        return Told(key, {})
    committed = {
        where: OffsetAndMetadata(
            each.committed_offset, each.committed_leader_epoch, each.metadata or ""
        )
        for where, each in said.items()
        if each.committed_offset >= 0
    }
    for where, each in said.items():
        if each.error_code and not code:
            return Told(key, committed, each.error_code, f"at {where}")
    return Told(key, committed, code)
