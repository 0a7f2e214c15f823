"""The topics of Fetch requests, by id or by name, with a fetch offset for each partition."""

from collections.abc import Iterable, Mapping
from uuid import UUID

from spark_kafka_source.fetch.leaders import ByTopic
from spark_kafka_source.protocol.messages.fetch import FetchPartition, FetchTopic

# Up to v12 a request has topic names, from v13 on topic ids. Very old topics have none (KIP-516).
FETCH_BY_NAME = 12


def fetch_topics(
    positions: ByTopic[int], topic_ids: Mapping[str, UUID], partition_max_bytes: int
) -> list[FetchTopic]:
    """Return the topics of a request, with at most `partition_max_bytes` for each partition."""
    return [
        FetchTopic(
            topic=name,
            topic_id=topic_ids[name],
            partitions=[
                FetchPartition(
                    partition=partition,
                    current_leader_epoch=leader_epoch,
                    fetch_offset=position,
                    partition_max_bytes=partition_max_bytes,
                )
                for partition, leader_epoch, position in partitions
            ],
        )
        for name, partitions in positions.items()
    ]


def highest_version(topic_ids: Iterable[UUID]) -> int | None:
    """Return the newest version of Fetch for these topics, or None if each version will do."""
    return None if all(topic_id.int for topic_id in topic_ids) else FETCH_BY_NAME
