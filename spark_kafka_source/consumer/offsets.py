"""Which offsets a partition has: one ListOffsets request to each leader.

https://kafka.apache.org/protocol#The_Messages_ListOffsets
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from spark_kafka_source.client import Broker, KafkaClient
from spark_kafka_source.errors import BrokerError, KafkaError, ProtocolError, error_code
from spark_kafka_source.net import Deadline
from spark_kafka_source.protocol import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from spark_kafka_source.records import IsolationLevel
from spark_kafka_source.topic_partition import TopicPartition

# Any other number asks as a follower, which is shown what consumers are not to see yet.
_CONSUMER = -1

LATEST_TIMESTAMP = -1
"""Stands for the high watermark, or with `read_committed` for the last stable offset."""
EARLIEST_TIMESTAMP = -2
"""Stands for the start of the log."""


def earliest_offsets(
    client: KafkaClient, topic_partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """The first offset that each partition still has."""
    return list_offsets(client, dict.fromkeys(topic_partitions, EARLIEST_TIMESTAMP))


def latest_offsets(
    client: KafkaClient,
    topic_partitions: Iterable[TopicPartition],
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> dict[TopicPartition, int]:
    """The offset after the last record that each partition shows at this isolation level."""
    return list_offsets(client, dict.fromkeys(topic_partitions, LATEST_TIMESTAMP), isolation_level)


def list_offsets(
    client: KafkaClient,
    timestamps: Mapping[TopicPartition, int],
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> dict[TopicPartition, int]:
    """The offset of the first record at or after each partition's timestamp, in epoch ms.

    `LATEST_TIMESTAMP` and `EARLIEST_TIMESTAMP` ask for the ends; -1 answers where no record is
    that late. Partitions whose leader has moved are asked for again until
    `default.api.timeout.ms`; raises `BrokerError` or `KafkaTimeoutError` naming the partition.
    """
    found: dict[TopicPartition, int] = {}

    def attempt(deadline: Deadline) -> dict[TopicPartition, int]:
        missing = {each: time for each, time in timestamps.items() if each not in found}
        leaders = client.leaders(missing, deadline)
        requests = _requests(missing, leaders, isolation_level)
        failures = []
        for answer in client.send_to_each(requests, deadline).values():
            if isinstance(answer, KafkaError):
                failures.append(answer)
            else:
                failures.extend(_take(answer, found))
        if failures:
            raise min(failures, key=_retriable)
        return {each: _found(each, found) for each in timestamps}

    return client.retrying("ListOffsets", attempt) if timestamps else found


def _requests(
    timestamps: Mapping[TopicPartition, int],
    leaders: Mapping[TopicPartition, tuple[Broker, int]],
    isolation_level: IsolationLevel,
) -> dict[Broker, ListOffsetsRequest]:
    by_leader: dict[Broker, dict[str, list[ListOffsetsPartition]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for (name, partition), timestamp in timestamps.items():
        leader, leader_epoch = leaders[TopicPartition(name, partition)]
        by_leader[leader][name].append(
            ListOffsetsPartition(
                partition_index=partition, current_leader_epoch=leader_epoch, timestamp=timestamp
            )
        )
    return {
        leader: ListOffsetsRequest(
            replica_id=_CONSUMER,
            isolation_level=isolation_level,
            topics=[
                ListOffsetsTopic(name=name, partitions=partitions)
                for name, partitions in topics.items()
            ],
        )
        for leader, topics in by_leader.items()
    }


def _take(answer: ListOffsetsResponse, found: dict[TopicPartition, int]) -> list[BrokerError]:
    failures = []
    for topic in answer.topics:
        for partition in topic.partitions:
            where = TopicPartition(topic.name, partition.partition_index)
            if partition.error_code:
                error = error_code(partition.error_code)
                failures.append(BrokerError(error, f"ListOffsets of {where}"))
            else:
                found[where] = partition.offset
    return failures


def _found(where: TopicPartition, found: Mapping[TopicPartition, int]) -> int:
    if where not in found:
        raise ProtocolError(f"ListOffsets of {where}: the answer leaves it out")
    return found[where]


def _retriable(error: KafkaError) -> bool:
    """What cannot heal comes first: it is not worth waiting for the rest."""
    return error.retriable
