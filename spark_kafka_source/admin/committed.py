"""All that groups have committed: OffsetFetch without topics, several groups at once (KIP-709).

The group of an exactly-once query keeps decisions in the metadata of its offsets.
"""

import json
from collections.abc import Iterable, Iterator
from functools import partial

from spark_kafka_source.admin.group_descriptions import GroupListing
from spark_kafka_source.admin.questions import ask_groups
from spark_kafka_source.client import Broker, CoordinatorKey, KafkaClient, Told
from spark_kafka_source.errors import KafkaError, UnsupportedVersionError
from spark_kafka_source.groups import OffsetAndMetadata, has_no_group
from spark_kafka_source.groups.offsets import CommittedRow
from spark_kafka_source.protocol.messages.groups import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from spark_kafka_source.topic_partition import TopicPartition, each_partition

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
        by_group: dict[str, Committed | KafkaError] = {}
        for group_id in group_ids:
            answers = partial(_of_one, group_id)
            by_group |= await ask([group_id], _request_of_one, answers, max_version=_ONE_GROUP)
        return by_group


def _request(group_ids: list[str]) -> OffsetFetchRequest:
    return OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id, topics=None) for group_id in group_ids]
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
    rows: dict[TopicPartition, CommittedRow] = dict(each_partition(topics))
    if any(map(has_no_group, [code, *(row.error_code for row in rows.values())])):
        return Told(key, {})
    offsets = {where: OffsetAndMetadata.of(row) for where, row in rows.items()}
    committed = {where: offset for where, offset in offsets.items() if offset.offset >= 0}
    for where, row in rows.items():
        if row.error_code and not code:
            return Told(key, committed, row.error_code, f"at {where}")
    return Told(key, committed, code)


_FIELDS = {"v", "query", "run", "batch", "number", "parts", "part", "tasks"}
_STATES = {"Empty", ""}  # Brokers before Kafka 2.6 tell no state.


def is_decision(metadata: str) -> bool:
    """Whether these are the metadata of a decision, of this version of the package or another."""
    if not metadata.startswith("{"):
        return False
    try:
        found = json.loads(metadata)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.keys() >= _FIELDS


async def groups_with_decisions(client: KafkaClient, groups: Iterable[GroupListing]) -> set[str]:
    """Return the ids of the groups that keep decisions.

    A group whose offsets this user may not see is not among them. Only groups that never had
    members are asked for.
    """
    asked = [
        group.group_id for group in groups if not group.protocol_type and group.state in _STATES
    ]
    return {
        group_id
        for group_id, committed in (await all_committed(client, asked)).items()
        if isinstance(committed, dict)
        and any(is_decision(each.metadata) for each in committed.values())
    }
