"""A group's committed offsets, read and written without being a member of the group.

https://kafka.apache.org/protocol#The_Messages_OffsetCommit
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from types import MappingProxyType

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import BrokerError, ProtocolError, error_code, lacking
from spark_kafka_source.net import Deadline
from spark_kafka_source.protocol import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from spark_kafka_source.topic_partition import TopicPartition

# Topics go by name up to v9, by id from v10 on.
_COMMIT_BY_NAME = 9
# Groups are asked for one at a time up to v7, several at once from v8 on (KIP-709).
_FETCH_ONE_GROUP = 7


def commit_offsets(
    client: KafkaClient,
    group_id: str,
    offsets: Mapping[TopicPartition, int],
    *,
    leader_epochs: Mapping[TopicPartition, int] = MappingProxyType({}),
    metadata: str = "",
    timeout_ms: int | None = None,
) -> None:
    """Commits the next offset to read of each partition to the group.

    `leader_epochs`, where they are known, let who goes on from there see a truncated log
    (KIP-320); `metadata` is a short text for people, which tools show. The group must have no
    members, or Kafka answers UNKNOWN_MEMBER_ID. Coordinator errors are tried again until
    `timeout_ms` (`default.api.timeout.ms` unless given); raises `BrokerError` naming the group
    and partition, or `KafkaTimeoutError`.
    """
    request = _commit_request(group_id, offsets, leader_epochs, metadata)

    def attempt(deadline: Deadline) -> None:
        coordinator = client.coordinator(group_id, deadline)
        answer = client.send(request, coordinator, deadline, max_version=_COMMIT_BY_NAME)
        committed = set()
        for topic in answer.topics:
            for partition in topic.partitions:
                where = TopicPartition(topic.name, partition.partition_index)
                _check(partition.error_code, "OffsetCommit", group_id, where)
                committed.add(where)
        _check_all_answered("OffsetCommit", offsets, committed)

    client.retrying(f"OffsetCommit to group {group_id!r}", attempt, timeout_ms=timeout_ms)


def committed_offsets(
    client: KafkaClient, group_id: str, topic_partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """The group's committed offsets; a partition without one is left out."""
    topic_partitions = list(topic_partitions)
    topics = [
        OffsetFetchRequestTopic(name=name, partition_indexes=partitions)
        for name, partitions in _by_topic(topic_partitions).items()
    ]
    request = OffsetFetchRequest(group_id=group_id, topics=topics, require_stable=False)

    def attempt(deadline: Deadline) -> dict[TopicPartition, int]:
        coordinator = client.coordinator(group_id, deadline)
        answer = client.send(request, coordinator, deadline, max_version=_FETCH_ONE_GROUP)
        _check(answer.error_code, "OffsetFetch", group_id)
        found = {}
        for topic in answer.topics:
            for partition in topic.partitions:
                where = TopicPartition(topic.name, partition.partition_index)
                _check(partition.error_code, "OffsetFetch", group_id, where)
                found[where] = partition.committed_offset
        _check_all_answered("OffsetFetch", topic_partitions, found)
        return {where: found[where] for where in topic_partitions if found[where] >= 0}

    return client.retrying(f"OffsetFetch of group {group_id!r}", attempt)


def _commit_request(
    group_id: str,
    offsets: Mapping[TopicPartition, int],
    leader_epochs: Mapping[TopicPartition, int],
    metadata: str,
) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[
            OffsetCommitRequestTopic(
                name=name,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=offsets[TopicPartition(name, partition)],
                        committed_leader_epoch=leader_epochs.get(
                            TopicPartition(name, partition), -1
                        ),
                        committed_metadata=metadata,
                    )
                    for partition in partitions
                ],
            )
            for name, partitions in _by_topic(offsets).items()
        ],
    )


def _by_topic(topic_partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    by_topic: dict[str, list[int]] = defaultdict(list)
    for name, partition in topic_partitions:
        by_topic[name].append(partition)
    return by_topic


def _check_all_answered(
    what: str, asked: Iterable[TopicPartition], answered: Container[TopicPartition]
) -> None:
    for where in asked:
        if where not in answered:
            raise ProtocolError(f"{what} of {where}: the answer leaves it out")


def _check(code: int, api: str, group_id: str, where: TopicPartition | None = None) -> None:
    if code:
        error = error_code(code)
        what = f"{api} of {where} for" if where else f"{api} of"
        detail = lacking(error, topic=where.topic if where else "", group_id=group_id)
        raise BrokerError(error, f"{what} group {group_id!r}", detail)
