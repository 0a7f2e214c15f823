"""The topics of Fetch requests, by id or by name, with a fetch offset for each partition."""

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import NamedTuple
from uuid import UUID

from spark_kafka_source.client import Cluster
from spark_kafka_source.protocol.messages.fetch import FetchPartition, FetchTopic
from spark_kafka_source.topic_partition import TopicPartition

# Up to v12 a request has topic names, from v13 on topic ids. Very old topics have none (KIP-516).
FETCH_BY_NAME = 12


class PartitionFetch(NamedTuple):
    """The fetch of one partition, with the id of its topic."""

    topic_id: UUID
    partition: FetchPartition


def partition_fetches(
    cluster: Cluster, offsets: Mapping[TopicPartition, int], partition_max_bytes: int
) -> dict[TopicPartition, PartitionFetch]:
    """Return the fetches of partitions from these offsets on, by the known leader epochs."""
    return {
        where: PartitionFetch(
            cluster.topics[where.topic].topic_id,
            FetchPartition(
                partition=where.partition,
                current_leader_epoch=cluster.leader(where)[1],
                fetch_offset=offset,
                partition_max_bytes=partition_max_bytes,
            ),
        )
        for where, offset in offsets.items()
    }


def fetch_topics(fetches: Mapping[TopicPartition, PartitionFetch]) -> list[FetchTopic]:
    """Return the topics of a request. The answer has the partitions in the same order."""
    return [
        FetchTopic(name, topic_id, [fetches[partition].partition for partition in partitions])
        for name, topic_id, partitions in by_topic(fetches)
    ]


def by_topic(
    fetches: Mapping[TopicPartition, PartitionFetch],
) -> Iterable[tuple[str, UUID, list[TopicPartition]]]:
    """Yield runs of partitions of one topic, in the given order."""
    for (name, topic_id), run in groupby(
        fetches, key=lambda partition: (partition.topic, fetches[partition].topic_id)
    ):
        yield name, topic_id, list(run)


def highest_version(topic_ids: Iterable[UUID]) -> int | None:
    """Return the newest version of Fetch for these topics, or None if each version will do."""
    return None if all(topic_id.int for topic_id in topic_ids) else FETCH_BY_NAME
