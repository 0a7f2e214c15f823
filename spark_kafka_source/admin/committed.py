"""All that groups have committed: OffsetFetch without topics, several groups at once (KIP-709)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from spark_kafka_source.admin.coordinators import Told, ask_coordinators
from spark_kafka_source.client import Broker, KafkaClient
from spark_kafka_source.errors import BrokerError, UnsupportedVersionError
from spark_kafka_source.groups import OffsetAndMetadata, has_no_group
from spark_kafka_source.protocol.messages.groups import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)
from spark_kafka_source.topic_partition import TopicPartition

Committed = dict[TopicPartition, OffsetAndMetadata]
"""What one group has committed."""

# Topics have names up to v9, and ids from v10 on.
_BY_NAME = 9
_ONE_GROUP = 7
_WHAT = "OffsetFetch"


@dataclass
class _Partition:
    """The answer for one partition, in either form of the response."""

    topic: str
    said: OffsetFetchResponsePartition | OffsetFetchResponsePartitions


async def all_committed(
    client: KafkaClient, group_ids: Iterable[str]
) -> dict[str, Committed | BrokerError]:
    """Return what each group has committed, or the error.

    A group that does not exist has committed nothing.
    """
    group_ids = list(dict.fromkeys(group_ids))
    try:
        return await ask_coordinators(
            client, _WHAT, group_ids, _request, _of_several, max_version=_BY_NAME
        )
    except UnsupportedVersionError:
        found: dict[str, Committed | BrokerError] = {}
        for each in group_ids:
            found |= await ask_coordinators(
                client,
                _WHAT,
                [each],
                lambda mine: OffsetFetchRequest(group_id=mine[0], topics=None),
                partial(_of_one, each),
                max_version=_ONE_GROUP,
            )
        return found


def _request(group_ids: list[str]) -> OffsetFetchRequest:
    return OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(each, topics=None) for each in group_ids]
    )


def _of_several(answer: OffsetFetchResponse, _: Broker) -> Iterator[tuple[Told, Committed]]:
    for group in answer.groups:
        parts = [
            _Partition(topic.name, each) for topic in group.topics for each in topic.partitions
        ]
        yield _told(group.group_id, group.error_code, parts)


def _of_one(
    group_id: str, answer: OffsetFetchResponse, _: Broker
) -> Iterator[tuple[Told, Committed]]:
    parts = [_Partition(topic.name, each) for topic in answer.topics for each in topic.partitions]
    yield _told(group_id, answer.error_code, parts)


def _told(group_id: str, code: int, parts: list[_Partition]) -> tuple[Told, Committed]:
    if any(map(has_no_group, [code, *(each.said.error_code for each in parts)])):
        return Told(group_id, 0), {}
    failed = [each for each in parts if each.said.error_code]
    detail = None
    if failed and not code:
        code = failed[0].said.error_code
        detail = f"at {TopicPartition(failed[0].topic, failed[0].said.partition_index)}"
    committed = {
        TopicPartition(topic, said.partition_index): OffsetAndMetadata(
            said.committed_offset, said.committed_leader_epoch, said.metadata or ""
        )
        for topic, said in ((each.topic, each.said) for each in parts)
        if said.committed_offset >= 0
    }
    return Told(group_id, code, detail), committed
